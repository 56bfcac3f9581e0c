"""Instructions that only order others or give hints: fence, membar, griddepcontrol, nanosleep, prefetch.

They move no data; their effect on ordering is modelled by the happens-before checks (checks/).
"""

from __future__ import annotations

from ptxsim.events.records import Fence
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split, Wait
from ptxsim.units.registry import always, unit
from ptxsim.units.tensormap import acquired

_NO_GRID = ": the barrier of its grid exists only in a cooperative launch"
_COOPERATIVE = "launch it by cudaLaunchCooperativeKernel (or the attribute of cudaLaunchKernelEx)"


@unit(
    "fence {.sem}.scope",
    "fence .acquire.sync_restrict::shared::cluster.cluster",
    "fence .release.sync_restrict::shared::cta.cluster",
    "fence .mbarrier_init.release.cluster",
    "fence.proxy .alias",
    "fence.proxy .async{.where}",
    "fence.proxy .tensormap::generic.release.scope",
    "fence.proxy .tensormap::generic.acquire.scope [a], size",
    "fence.proxy .async::generic.acquire.sync_restrict::shared::cluster.cluster",
    "fence.proxy .async::generic.release.sync_restrict::shared::cta.cluster",
    "membar .level",
    "membar.proxy .alias",
    sem="sc acq_rel acquire release",
    where="global shared::cta shared::cluster",
    level="cta gl sys",
    section="9.7.13.4",
    observer_only=True,
)
def fence(instr):
    orders = meaning(instr.mods, instr.op)

    def run(cluster: Cluster, split: Split, args):
        cluster.bus.fence(cluster, split, orders)
        if args:
            acquired(cluster, split, cluster.addresses(split, args[0]))

    return run


def meaning(modifiers: tuple[str, ...], op: str = "fence") -> Fence:
    """What a fence with these modifiers orders. A proxy fence without a state space covers all of them."""
    if "proxy" not in modifiers:
        inits = "mbarrier_init" in modifiers
        near = not inits and bool({"cta", "cluster"} & set(modifiers))
        return Fence(not inits, False, False, inits, near, sc=op == "membar" or "sc" in modifiers)
    asynchronous = any(m.startswith("async") for m in modifiers)
    shared, everywhere = (any(space in m for m in modifiers) for space in ("shared", "global"))
    return Fence(False, asynchronous and (shared or not everywhere), asynchronous and not shared, False)


_EVICT = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"
_TENSOR = "cp.async.bulk.prefetch.tensor .dim.L2.global{.tile}{.hint}"


@unit(
    "nanosleep .u32 t",
    "griddepcontrol .action",
    "prefetch {.data}.level [a]",
    "prefetch .global.evict [a]",
    "prefetch {.constant}.tensormap [a]",
    "prefetchu .L1 [a]",
    "pmevent {.mask} a",
    "createpolicy.fractional .primary{.secondary}.b64 d{, fraction}",
    "createpolicy.range {.global}.primary{.secondary}.b64 d, [a], size, total",
    "createpolicy.cvt .L2.b64 d, access",
    "cp.async.bulk.prefetch .L2.global{.hint} [a], size{, policy}",
    f"{_TENSOR} [map]{{, policy}}",
    "cp.async.bulk.prefetch.tensor .2d.L2.global.tile::gather4{.hint} [map]{, policy}",
    "cp.async.bulk.prefetch.tensor .deep.L2.global.columns{.hint} [map], offsets{, policy}",
    deep="3d 4d 5d",
    columns="im2col im2col::w im2col::w::128",
    action="launch_dependents wait",
    data="global local",
    level="L1 L2",
    evict="L2::evict_last L2::evict_normal",
    constant="param const",
    primary=_EVICT,
    secondary="L2::evict_first L2::evict_unchanged",
    section="9.7.9",
    observer_only=True,
)
@always
def hint(cluster: Cluster, split: Split, args):
    """Does nothing: these instructions change nothing that a program can see."""


@unit(
    "discard {.global}.L2 [a], size",
    "applypriority {.global}.L2::evict_normal [a], size",
    section="9.7.9",
    observer_only=True,
)
def cache_line(instr):
    """discard and applypriority: the address must be the start of a 128-byte line."""

    def run(cluster: Cluster, split: Split, args):
        pointer = next(a for a in args if hasattr(a, "slot"))
        if (cluster.addresses(split, pointer) % 128).any():
            cluster.reporter.add(
                "misaligned", "error", f"{instr.op} of an address that is not a multiple of 128", split=split
            )

    return run


@unit("trap", section="9.7.19.3")
@always
def trap(cluster: Cluster, split: Split, args):
    alone = cluster.program.slots.meets_its_grid and not cluster.launch.grid_barrier
    message, hint = "the kernel executed trap" + _NO_GRID * alone, _COOPERATIVE * alone
    cluster.reporter.add("illegal", "error", message, hint, split, kills=True)
    return cluster.wait(split, Wait("trap", ("trap", split.index)))


unit("brkpt", section="9.7.19.1")(hint)
