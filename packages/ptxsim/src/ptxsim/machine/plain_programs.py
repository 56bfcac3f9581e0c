"""Kernels of threads alone: no tensor core, copy or barrier of the chip works beside them."""

from __future__ import annotations

import functools

_KEEP_STATE = {"mbarrier", "tcgen05", "wgmma", "clusterlaunchcontrol"}


@functools.lru_cache(maxsize=64)
def is_plain(program) -> bool:
    """Whether no unit that it uses keeps a state which Python clears for each cluster."""
    return not any(instr is not None and _keeps_state(instr) for instr in program.instrs)


def _keeps_state(instr) -> bool:
    return instr.op in _KEEP_STATE or instr.op == "cp" and "bulk" in instr.mods
