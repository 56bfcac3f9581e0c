"""atom.cas.b128 and atom.exch.b128: 16 bytes per lane, in two 64-bit registers, low half first."""

from __future__ import annotations

import numpy as np

from ptxsim.machine.checked_access import checked_view
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split

_BYTES = 16


def exchange_pairs(instr, space: str):
    """The handler, which processes lanes in ascending order."""
    compares = "cas" in instr.mods

    def run(cluster: Cluster, split: Split, args):
        target, address, *values = args
        registers = cluster.registers[split.warp]
        for lane, at in zip(split.lanes.tolist(), cluster.addresses(split, address).tolist(), strict=True):
            view = checked_view(cluster, split, lane, at, _BYTES, space, write=True)
            if view is None:
                continue
            was = view.copy().view(np.uint64)
            expected, new = was, registers[list(values[-1]), lane]
            if compares:
                expected = registers[list(values[0]), lane]
            if (was == expected).all():
                changed = int((was != new).any())
                cluster.effects += changed
                cluster.published += changed
                view[:] = new.view(np.uint8)
            registers[list(target), lane] = was

    return run
