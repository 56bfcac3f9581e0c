"""Accesses that an exchange between lanes puts after something that another lane of the warp knows of.

    @first atom.acq_rel old, [barrier], ..;  shfl.sync old, old, 0, ..;  ld.shared x, [p];

The first lane acquires, and by PTX it alone does: no exchange orders memory (PTX ISA 9.7.9.6). But the chips
that we know execute an exchange for all lanes of a warp together, and their loads and stores in program
order: cooperative_groups builds its tiles of several warps on that.

    ld.shared x, [p];  wgmma.wait_group.sync.aligned 0;  @first mbarrier.arrive [empty];

The same holds for reads before any other `.sync` instruction of the whole warp, after which one lane hands
the place back for all: DeepGEMM's FP8 kernels do that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ptxsim.checks.race.carried_values import EXCHANGES
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.shadow_order import READ_WRITE
from ptxsim.checks.static_flow import definitions, reachable
from ptxsim.frontend.ast import Imm, Instr, Reg
from ptxsim.lowering.cfg import next_rows
from ptxsim.lowering.emit import Program
from ptxsim.machine.register_files import WHOLE_WARP

_ACQUIRES = {"acquire", "acq_rel", "sc"}


def told_by_exchange(races, pair: AccessPair) -> bool:
    """Whether a lane of the later side's warp knows of the earlier access, and an exchange hands that on."""
    if pair.each_time.handed_back is not None:
        return True
    if not pair.each_time.in_warp or pair.code > READ_WRITE:
        return False
    program, (row, later) = races.launch.program, (pair.first.row, pair.second.row)
    if pair.first.warp(races) != pair.second.warp(races):
        sources = acquiring(program)
        return bool(sources) and not any(later in _before_exchange(program, source) for source in sources)
    return later not in _before_exchange(program, row) and _comes_to(program, row, later)


@functools.lru_cache(maxsize=8)
def acquiring(program: Program) -> frozenset[int]:
    """Rows at which a single lane may learn of what other threads did."""
    return frozenset(row for row, instr in program.by_row.items() if _acquires(instr))


def _acquires(instr: Instr) -> bool:
    return instr.op == "membar" or bool(_ACQUIRES & set(instr.mods)) or instr.op == "mbarrier"


@functools.lru_cache(maxsize=256)
def _before_exchange(program: Program, row: int) -> frozenset[int]:
    """Rows that the lane that was at `row` may reach before all lanes of its warp meet."""
    return _until(program, row, functools.partial(_all_meet, program))


@functools.lru_cache(maxsize=256)
def before_meeting(program: Program, row: int) -> frozenset[int]:
    """Rows that the lane that was at `row` may reach before an instruction that its warp executes together:
    an exchange, or one like wgmma, tcgen05.ld and mma.sync.
    """
    return _until(program, row, lambda instr: _all_meet(program, instr) or _of_warp(instr))


def _until(program: Program, row: int, meet: Callable) -> frozenset[int]:
    starts = next_rows(program, row)
    return frozenset().union(*(reachable(program, start, stops=meet) for start in starts))


def _of_warp(instr: Instr | None) -> bool:
    return instr is not None and "sync" in instr.mods and "aligned" in instr.mods


def _comes_to(program: Program, row: int, later: int) -> bool:
    """Whether a lane that was at `row` always reaches `later` too: then it keeps the two in order itself."""
    last = program.by_row[later]
    on = reachable(program, row, stops=lambda instr: instr is last)
    return last.pred is None and later in on and not any(_ends(program, other) for other in on - {later})


def _ends(program: Program, row: int) -> bool:
    return not next_rows(program, row)


def _all_meet(program: Program, instr: Instr | None) -> bool:
    """Whether all lanes of a warp execute an instruction together."""
    if instr is None or instr.op not in (*EXCHANGES, "bar", "barrier") or not instr.operands:
        return False
    if instr.op in ("bar", "barrier") and "warp" not in instr.mods:
        return True
    members = instr.operands[-1]
    if isinstance(members, Reg):
        rows = definitions(program)[members.name]
        return bool(rows) and all(_sets_whole(program.by_row[row]) for row in rows)
    return _is_whole(members)


def _is_whole(operand) -> bool:
    return isinstance(operand, Imm) and operand.bits & WHOLE_WARP == WHOLE_WARP


def _sets_whole(instr: Instr) -> bool:
    return instr.op == "mov" and _is_whole(instr.operands[1])
