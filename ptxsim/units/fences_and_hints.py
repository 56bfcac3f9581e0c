"""Fences and instructions that only order or hint: fence, membar, griddepcontrol, nanosleep, prefetch,
setmaxnreg.

They move no data; the happens-before checker (checks/) gives them their meaning.
"""

from __future__ import annotations

from ptxsim.units.registry import check_mods, refuse, unit

_FENCE_MODS = {
    "sc",
    "acq_rel",
    "acquire",
    "release",
    "cta",
    "cluster",
    "gpu",
    "sys",
    "proxy",
    "alias",
    "async",
    "async::generic",
    "async::global",
    "async::shared::cta",
    "async::shared::cluster",
    "global",
    "shared::cta",
    "shared::cluster",
    "mbarrier_init",
    "sync_restrict::shared::cta",
    "sync_restrict::shared::cluster",
    "tensormap::generic",
    "to_proxy::async",
    "from_proxy::generic",
    "proxy::async",
    "gl",
}


@unit("fence", "membar", section="9.7.13.4", observer_only=True)
def fence(instr):
    mods = check_mods(instr, _FENCE_MODS)
    if instr.mods[:1] == ("proxy",) and len(instr.mods) == 1:
        raise refuse(instr, "fence.proxy needs a proxy kind")

    def run(cluster, split, args):
        if cluster.checks:
            cluster.checks.fence(cluster, split, mods)

    return run


@unit(
    "nanosleep",
    "griddepcontrol",
    "prefetch",
    "prefetchu",
    "pmevent",
    "setmaxnreg",
    "createpolicy",
    "cp.async.bulk.prefetch",
    section="9.7.9",
    observer_only=True,
)
def hint(instr):
    def run(cluster, split, args):
        return None

    return run


@unit("discard", "applypriority", section="9.7.9", observer_only=True)
def cache_line(instr):
    """Both name a line of 128 bytes by its first address."""

    def run(cluster, split, args):
        pointer = next(a for a in args if hasattr(a, "slot"))
        if (cluster.addresses(split, pointer) % 128).any():
            cluster.reporter.add(
                "misaligned", "error", f"{instr.op} of an address that is not a multiple of 128", split=split
            )

    return run


@unit("trap", section="9.7.19.3")
def trap(instr):
    def run(cluster, split, args):
        cluster.reporter.add("illegal", "error", "the kernel executed trap", split=split)

    return run


@unit("brkpt", section="9.7.19.1")
def breakpoint_(instr):
    return hint(instr)
