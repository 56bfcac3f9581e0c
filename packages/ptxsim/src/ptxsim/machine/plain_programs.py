"""Kernels without asynchronous units: no tcgen05, wgmma, mbarrier, bulk copy or clusterlaunchcontrol."""

from __future__ import annotations

import functools

_KEEP_STATE = {"mbarrier", "tcgen05", "wgmma", "clusterlaunchcontrol"}


@functools.lru_cache(maxsize=64)
def is_plain(program) -> bool:
    """Whether the program uses no unit whose state Python must clear for each cluster."""
    return not any(map(_keeps_state, program.by_row.values()))


def _keeps_state(instr) -> bool:
    return instr.op in _KEEP_STATE or instr.op == "cp" and "bulk" in instr.mods
