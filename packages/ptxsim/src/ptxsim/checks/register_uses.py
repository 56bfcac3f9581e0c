"""What the program text does with registers of a tcgen05.ld or wgmma before its wait: where it reads results,
and where it writes a wgmma's A. A plain `mov` does not count as a use: ptxas merges such copies.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator

from ptxsim.checks.static_flow import reads, targets
from ptxsim.frontend.ast import Instr, Reg, Vec, registers_of
from ptxsim.lowering.cfg import jumps_of, next_rows
from ptxsim.lowering.emit import Program

_MANY = 8  # groups in flight that are counted; no wait_group has a larger operand


@functools.lru_cache(maxsize=16)
def early_uses(program: Program) -> dict[int, int]:
    """Row of a tcgen05.ld or wgmma -> first row found that reads one of its registers without a wait."""
    found = {}
    for row, instr in program.by_row.items():
        if (instr.op, instr.mods[:1]) not in _SOURCES:
            continue
        use = _first(program, row, frozenset(targets(instr)), _read)
        if use is not None:
            found[row] = use
    return found


@functools.lru_cache(maxsize=16)
def early_writes(program: Program) -> dict[int, int]:
    """Row of a wgmma that has A in registers -> first row found that writes one of them without a wait."""
    found = {}
    for row, instr in program.by_row.items():
        if (instr.op, instr.mods[:1]) != ("wgmma", ("mma_async",)):
            continue
        if isinstance(instr.operands[1], Vec):
            write = _first(program, row, frozenset(registers_of(instr.operands[1:2])), _written)
            if write is not None:
                found[row] = write
    return found


@functools.lru_cache(maxsize=16)
def carried_away(program: Program) -> frozenset[int]:
    """Rows of the tcgen05.ld with a register that is copied before a wait in a way that `Program.copies`
    does not follow: in another block, as at the end of a loop that loads ahead, or by a copy of a copy.
    """
    heads = {after for row in jumps_of(program) for after in (*next_rows(program, row), row + 1)}
    found = set()
    for row, instr in program.by_row.items():
        if (instr.op, instr.mods[:1]) == ("tcgen05", ("ld",)):
            end = next((r for r in range(row + 1, len(program.instrs)) if r in heads), row + 1)
            block = {id(i) for i in program.instrs[row:end]}
            follows = functools.partial(_followed, block, frozenset(targets(instr)))
            if _first(program, row, frozenset(targets(instr)), follows) is not None:
                found.add(row)
    return frozenset(found)


def _followed(block: set[int], loaded: frozenset, instr: Instr, pending: frozenset) -> frozenset | None:
    """What is pending after an instruction; None if it uses a pending register, or copies one other than a
    loaded register within the block.
    """
    if pending & reads(instr) <= (loaded if id(instr) in block else frozenset()):
        return _read(instr, pending)
    return None


_SOURCES = {("tcgen05", ("ld",)), ("wgmma", ("mma_async",))}


def _first(program: Program, start: int, names: frozenset, meets: Callable) -> int | None:
    """The first row that uses pending registers on any path from an instruction to its wait, or None. Follows
    the pending registers and the number of groups committed since.

    meets(instr, pending): what is still pending after an instruction; None if that instruction is the first
    use.
    """
    arriving = {row: (names, 0) for row in next_rows(program, start)}
    todo = deque(arriving)
    loads = program.by_row[start].op == "tcgen05"
    while todo:
        row = todo.popleft()
        instr, (pending, commits) = program.instrs[row], arriving[row]
        if instr is not None:
            if _is_wait(instr, loads, commits):
                continue
            commits = min(commits + (instr.op == "wgmma" and instr.mods[0] == "commit_group"), _MANY)
            pending = meets(instr, pending)
            if pending is None:
                return row
        for after in next_rows(program, row) if pending else ():
            known, fewest = arriving.get(after, (frozenset(), _MANY + 1))
            if not pending <= known or commits < fewest:
                arriving[after] = known | pending, min(commits, fewest)
                todo.append(after)
    return None


def _read(instr: Instr, pending: frozenset) -> frozenset | None:
    read, written = pending & reads(instr), frozenset(targets(instr))
    if read and not _copies(instr):
        return None
    return pending | written if read else pending - written if instr.pred is None else pending


def _written(instr: Instr, pending: frozenset) -> frozenset | None:
    return None if pending & frozenset(targets(instr)) else pending


@functools.lru_cache(maxsize=512)
def used_before_handed_over(program: Program, load: int) -> bool:
    """Whether every path from a tcgen05.ld reads one of its registers, or waits, before it signals any other
    thread.

    An instruction that reads a register stalls until the load has all its data, so on a chip no later access
    to the same columns can overtake the load. A tcgen05.st of the same warp signals no other thread.
    """
    rows = {load} | rows_before_use(program, load)
    return all(next_rows(program, row) and not _hands_over(program.instrs[row]) for row in rows)


@functools.lru_cache(maxsize=512)
def rows_before_use(program: Program, load: int) -> frozenset[int]:
    """Rows that a warp may reach before it has read a register of this tcgen05.ld or waited for it."""
    return frozenset(row for row, read in _ways(program, load) if not read)


@functools.lru_cache(maxsize=512)
def never_read(program: Program, load: int) -> bool:
    """Whether no path from a tcgen05.ld reads one of its registers, so that what it loads changes nothing."""
    return not any(read for _, read in _ways(program, load, past_waits=True))


def _ways(program: Program, load: int, past_waits: bool = False) -> Iterator[tuple[int, bool]]:
    """(row, whether it reads what was loaded) on all paths from a tcgen05.ld to a wait or to the first
    use.
    """
    todo = [(row, frozenset(targets(program.by_row[load]))) for row in next_rows(program, load)]
    seen = set()
    while todo:
        row, pending = at = todo.pop()
        instr = program.instrs[row]
        if at in seen or (instr is not None and _is_wait(instr, True, 0) and not past_waits):
            continue
        seen.add(at)
        left = pending if instr is None else _read(instr, pending)
        yield row, left is None
        if left:
            todo += [(after, left) for after in next_rows(program, row)]


def _copies(instr: Instr) -> bool:
    return instr.op == "mov" and instr.pred is None and isinstance(instr.operands[1], Reg)


_HANDS_OVER = {"bar", "barrier", "mbarrier", "atom", "red", "ret", "exit"}
_TCGEN05_HANDS_OVER = {"mma", "commit", "cp", "dealloc", "shift"}
_ASKS = {"try_wait", "test_wait"}  # these test an mbarrier and signal no other thread


def _hands_over(instr: Instr | None) -> bool:
    """Whether an instruction signals others that its thread has reached this point."""
    if instr is None:
        return False
    if instr.op == "tcgen05":
        return instr.mods[0] in _TCGEN05_HANDS_OVER
    return instr.op in _HANDS_OVER and instr.mods[:1] not in {(asks,) for asks in _ASKS}


def _is_wait(instr: Instr, loads: bool, commits: int) -> bool:
    """Whether an instruction waits for the load, or for the wgmma whose group is the `commits`-th youngest
    (0: still open).
    """
    if loads:
        return instr.op == "tcgen05" and instr.mods[0] == "wait::ld"
    return instr.op == "wgmma" and instr.mods[0] == "wait_group" and commits > instr.operands[0].bits
