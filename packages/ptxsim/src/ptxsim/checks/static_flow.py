"""What the program text says about barriers: which rows can signal or await which, and what control flow can
reach.

Addresses are traced backwards through the text as shared symbol + constant. Any part that is not constant
(the stage index) counts as 0, so a row is identified by the first element of the barrier array that it
signals.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from ptxsim.events.views import Launch
from ptxsim.frontend.ast import Imm, Instr, Mem, Pair, Reg, Sym, Vec, registers_of
from ptxsim.lowering.answers import PURE, questions
from ptxsim.lowering.cfg import jumps_of, next_rows
from ptxsim.lowering.emit import Program
from ptxsim.units.registry import signalled

_PASS = {"cvta", "cvt", "mov", "mapa", "shfl"}  # the address is in the first source
_DEPTH = 24


def signal_rows(launch: Launch) -> dict[int, set[int]]:
    """Row -> window offsets of the barriers that it signals, by an arrival or by a copy or commit that
    reports to them.
    """
    return _rows_of(launch.program, frozenset(launch.shared_offsets.items()), signalled)


def signal_ranks(launch: Launch) -> dict[int, int]:
    """Row -> CTA rank, for rows that signal a barrier of one fixed CTA of the cluster, whichever CTA executes
    them.
    """
    values = Values(launch.program, launch.shared_offsets)
    found = {}
    for row, instr in launch.program.by_row.items():
        operand = signalled(instr)
        rank = values.rank(operand.base) if operand is not None else None
        if rank is not None:
            found[row] = rank
    return found


def wait_rows(launch: Launch) -> dict[int, set[int]]:
    """Row -> window offsets of the barriers that it waits for."""
    return _rows_of(launch.program, frozenset(launch.shared_offsets.items()), _awaited)


def waits_for_phase(instr) -> bool:
    """Whether an instruction tests if a phase of an mbarrier is complete (test_wait, try_wait)."""
    return instr is not None and instr.op == "mbarrier" and instr.mods[:1] in (("test_wait",), ("try_wait",))


def _awaited(instr: Instr) -> Mem | None:
    if not waits_for_phase(instr):
        return None
    return next((operand for operand in instr.operands if isinstance(operand, Mem)), None)


@functools.lru_cache(maxsize=16)
def _rows_of(
    program: Program, offsets: frozenset, barrier_of: Callable[[Instr], Mem | None]
) -> dict[int, set[int]]:
    named = _one_name_a_value(program)
    values = Values(named, dict(offsets))
    found = {}
    for row, instr in named.by_row.items():
        operand = barrier_of(instr)
        if operand is not None:
            found[row] = {v + operand.offset for v in values.of(operand.base)}
    return {row: offsets for row, offsets in found.items() if offsets}


@dataclass(eq=False)
class _Renamed:
    """A program whose registers have other names."""

    by_row: dict[int, Instr]


@functools.lru_cache(maxsize=4)
def _one_name_a_value(program: Program) -> Program | _Renamed:
    """The program's instructions, with a name of its own for each value that is set and used in one block, if
    its register holds several: so hand-written PTX computes addresses.
    """
    sets = Counter(name for i in program.by_row.values() for name in targets(i))
    if max(sets.values(), default=0) < 2:
        return program
    starts = {to for row in range(len(program.code)) for to in next_rows(program, row) if to != row + 1}
    found, now = {}, dict[str, Reg]()
    for row, instr in enumerate(program.instrs):
        now = {} if row in starts else now
        if instr is not None and instr.operands:
            sources = [_with_names(operand, now) for operand in instr.operands]
            own = targets(instr)
            if own:
                sources[0] = instr.operands[0]
            for name in own:
                now.pop(name, None)
                if sets[name] > 1 and instr.pred is None and isinstance(sources[0], Reg):
                    sources[0] = now[name] = Reg(f"{name}#{row}")
            if any(new is not old for new, old in zip(sources, instr.operands, strict=True)):
                instr = replace(instr, operands=tuple(sources))
        if instr is not None:
            found[row] = instr
    return _Renamed(found)


def _with_names(operand, names: dict[str, Reg]):
    if isinstance(operand, Mem):
        base = _with_names(operand.base, names)
        return operand if base is operand.base else replace(operand, base=base)
    return names.get(operand.name, operand) if isinstance(operand, Reg) else operand


class Values:
    """Constant parts of register values, as window offsets. unknown: counts for any other part."""

    def __init__(self, program: Program | _Renamed, offsets: dict[str, int], unknown: int = 0):
        self.offsets, self.unknown = offsets, unknown
        self.by_row, self.rows = program.by_row, definitions(program)

    def _writers(self, operand) -> list[Instr]:
        """The instructions that write a register; none for another operand."""
        rows = self.rows.get(operand.name, ()) if isinstance(operand, Reg) else ()
        return [self.by_row[row] for row in rows]

    def of(self, operand, depth: int = 0, seen: frozenset = frozenset()) -> set[int]:
        """Window offsets that an operand may hold; empty if the text does not determine them."""
        if isinstance(operand, Sym):
            known = self.offsets.get(operand.name)
            return set() if known is None else {known + operand.offset}
        if not isinstance(operand, Reg) or depth > _DEPTH or operand.name in seen:
            return set()
        found: set[int] = set()
        for instr in self._writers(operand)[:8]:
            found |= self._written_by(instr, depth + 1, seen | {operand.name})
        return found

    def rank(self, operand, depth: int = 0) -> int | None:
        """The CTA rank that mapa mapped an address to, if it is a constant; None: unknown, or not mapped."""
        writers = self._writers(operand) if depth < _DEPTH else []
        if len(writers) != 1 or writers[0].op not in {*_PASS, "add"}:
            return None
        if writers[0].op != "mapa":
            return self.rank(writers[0].operands[1], depth + 1)
        return self._number(writers[0].operands[2])

    def _number(self, operand, depth: int = 0) -> int | None:
        if isinstance(operand, Imm):
            return operand.bits
        writers = self._writers(operand) if depth < _DEPTH else []
        if len(writers) != 1 or writers[0].op not in ("mov", "cvt"):
            return None
        return self._number(writers[0].operands[1], depth + 1)

    def _written_by(self, instr: Instr, depth: int, seen: frozenset) -> set[int]:
        sources = instr.operands[1:]
        if instr.op in _PASS:
            return self.of(sources[0], depth, seen)
        if instr.op == "and":  # clears the bit of the address that says which CTA of a pair
            return self.of(sources[0], depth, seen)
        if instr.op == "selp":
            return self.of(sources[0], depth, seen) | self.of(sources[1], depth, seen)
        if instr.op not in ("add", "sub", "mad", "or"):
            return set()
        terms = sources[2:] if instr.op == "mad" else sources
        bases = [self.of(t, depth, seen) for t in terms]
        constant = sum(self._constant(t, depth) for t, of in zip(terms, bases, strict=True) if not of)
        return {base + constant for offsets in bases for base in offsets}

    def _constant(self, operand, depth: int) -> int:
        if isinstance(operand, Imm):
            return operand.bits if operand.bits < 1 << 31 else operand.bits - (1 << 32)
        writers = self._writers(operand)
        if len(writers) == 1 and writers[0].op == "mov" and isinstance(writers[0].operands[1], Imm):
            return self._constant(writers[0].operands[1], depth)
        return self.unknown


def reachable(program: Program, row: int, decide=None, stops=None) -> set[int]:
    """Rows that a thread at `row` may still execute, `row` included.

    decide(row): whether the guard of a branch will be true; None if unknown. stops(instr): whether to follow
    nothing past an instruction.
    """
    seen: set[int] = set()
    todo, jumps, count = [row], [*jumps_of(program)], len(program.code)
    while todo:
        at = todo.pop()
        if at in seen or at >= count:
            continue
        following = bisect_left(jumps, at)
        last = jumps[following] if following < len(jumps) else count - 1
        if stops is not None:
            last = next((r for r in range(at, last) if stops(program.instrs[r])), last)
        if last not in seen and (stops is None or not stops(program.instrs[last])):
            todo += next_rows(program, last, decide)
        seen.update(range(at, last + 1))
    return seen


def unwaited_arrival(program: Program, *rows: int) -> int | None:
    """A barrier.cluster.arrive from which control can get to one of these rows without its wait."""
    arrivals = [r for r, i in program.by_row.items() if i.name.startswith("barrier.cluster.arrive")]
    ends = (reachable(program, r, stops=_awaits_cluster) for r in arrivals)
    return next((r for r, end in zip(arrivals, ends, strict=True) if end.intersection(rows)), None)


def _awaits_cluster(instr) -> bool:
    return instr is not None and instr.name.startswith("barrier.cluster.wait")


def targets(instr: Instr) -> list[str]:
    """Registers that an instruction writes: those of its first operand, unless that is an address."""
    if not instr.operands or instr.op in ("st", "bra", "red"):
        return []
    target = instr.operands[0]
    items = target.items if isinstance(target, Vec) else [target]
    items = [target.first, target.second] if isinstance(target, Pair) else items
    return [item.name for item in items if isinstance(item, Reg)]


@functools.lru_cache(maxsize=16)
def definitions(program: Program) -> dict[str, list[int]]:
    """Register -> rows that write it; a name that stands for one of its values counts as the register too."""
    found = defaultdict(list)
    for row, instr in program.by_row.items():
        for name in targets(instr):
            for known in {name, name.partition("#")[0]}:
                found[known].append(row)
    return found


def reads(instr: Instr) -> frozenset:
    """Registers that an instruction reads, except its guard."""
    written = targets(instr)
    sources = instr.operands[1:] if written else instr.operands
    return frozenset(registers_of(sources))


def follow(
    program: Program, known: set[str], computes: Callable[[int], bool] = lambda row: True
) -> Iterator[int]:
    """Rows that read these registers, as a guard too, or what is computed from them, which `known` then holds
    as well. computes: whether what the instruction at a row writes is computed from what it reads.
    """
    left = list(known)
    while left:
        for row in _readers(program).get(left.pop(), ()):
            yield row
            more = set(targets(program.by_row[row])) - known if computes(row) else ()
            known.update(more)
            left += more


@functools.lru_cache(maxsize=16)
def _readers(program: Program) -> dict[str, list[int]]:
    """Register -> rows that read it, as a guard too."""
    found: dict[str, list[int]] = {}
    for row, instr in program.by_row.items():
        for name in reads(instr) | ({instr.pred.reg.name} if instr.pred else set()):
            found.setdefault(name, []).append(row)
    return found


def way_without_barrier(program: Program, start: int, end: int, but: Collection[int] = ()) -> bool:
    """Whether control can get from row to row without a CTA or cluster barrier, an mbarrier wait, or any row
    of `but`.
    """
    stopping = {id(program.instrs[row]) for row in but}
    rows = next_rows(program, start)
    return any(
        end in reachable(program, row, stops=lambda i: id(i) in stopping or _synchronises(i)) for row in rows
    )


def comes_first(program: Program, rows: Collection[int], others: Collection[int]) -> bool:
    """Whether control can get to one of these rows, from the program's start, before any of the others."""
    stopping = {id(program.instrs[other]) for other in others}
    return not reachable(program, 0, stops=lambda instr: id(instr) in stopping).isdisjoint(rows)


def _synchronises(instr) -> bool:
    if instr is None:
        return False
    if instr.op in ("bar", "barrier"):
        return "warp" not in instr.mods
    return waits_for_phase(instr)


@functools.lru_cache(maxsize=16)
def ignored_questions(program: Program) -> frozenset[int]:
    """Rows of try_wait whose result decides nothing: no branch, no guard, nothing stored."""
    return frozenset(row for row in questions(program, {"try_wait"}) if _ignored(program, row))


def _ignored(program: Program, row: int) -> bool:
    """Whether no register that depends on the result guards anything, or is used by anything but
    arithmetic.
    """
    known = set(targets(program.by_row[row]))
    users = (program.by_row[user] for user in follow(program, known))
    return all(i.op in PURE and (i.pred is None or i.pred.reg.name not in known) for i in users)
