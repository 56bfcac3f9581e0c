"""st.bulk: a thread fills a range of shared memory with zeros (PTX ISA 9.7.9.13)."""

from __future__ import annotations

from ptxsim.machine.checked_access import checked_view
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.registry import unit

_STEP = 8  # bytes; address and size must be multiples of it


@unit("st.bulk {.weak}{.shared::cta} [a], size, 0", section="9.7.9.13")
def store_bulk(instr):
    space = "shared::cta" if "shared::cta" in instr.mods else "generic"

    def run(cluster: Cluster, split: Split, args):
        sizes, addresses = cluster.read(split, args[1]), cluster.addresses(split, args[0]).tolist()
        for lane, address in zip(split.lanes.tolist(), addresses, strict=True):
            size = int(sizes[lane])
            if size % _STEP:
                message = f"st.bulk of {size} B: the size must be a multiple of {_STEP}"
                cluster.reporter.add("illegal", "error", message, split=split)
                continue
            for start in range(address, address + size, _STEP):
                view = checked_view(cluster, split, lane, start, _STEP, space, write=True)
                if view is None:
                    break
                view[:] = 0

    return run
