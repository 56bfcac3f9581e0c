"""Plain loads whose value a compare-and-swap then verifies.

    old = *p; do { assumed = old; old = atomicCAS(p, assumed, f(assumed)); } while (assumed != old);

By the text the load races with the atomics of other threads, because it is not strong (PTX ISA 8.7). But its
value is only compared, and used in what the same atom.cas stores: if the guess was wrong, nothing is stored.
All paths from the load are followed through the text; any other use of the value makes it an ordinary read.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ptxsim.checks.race.access import Access
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.shadow_order import READ_WRITE, WRITE_READ
from ptxsim.checks.static_flow import definitions, reachable, reads, targets
from ptxsim.frontend.ast import Imm, Instr, Mem, Reg, Sym, registers_of
from ptxsim.isa.operands import type_bits
from ptxsim.isa.scalar.table import OPCODES
from ptxsim.lowering.cfg import next_rows
from ptxsim.lowering.emit import Program

_MANY = 20_000  # states (row, what is known there); a load that needs more is not a guess
_NONE: frozenset = frozenset()


class _Known(NamedTuple):
    """What registers hold on one path from the load."""

    guess: frozenset[str]  # the value that the load got
    made: frozenset[str] = _NONE  # what was computed from that
    stale: frozenset[str] = _NONE  # both of an earlier iteration, or of another address
    answers: frozenset[str] = _NONE  # results of an atom.cas that compared with the guess
    tests: frozenset[tuple[str, bool]] = _NONE  # predicate, and its value if guess and answer are equal

    @property
    def held(self) -> frozenset[str]:
        return self.guess | self.made | self.stale

    def without(self, names: frozenset[str]) -> _Known:
        """What is known once these registers hold other values."""
        guess, made, stale, answers = (part - names for part in self[:4])
        tests = frozenset(test for test in self.tests if test[0] not in names)
        return _Known(guess, made, stale, answers, tests)


def guessed(races, pair: AccessPair) -> Access | None:
    """The plain load of a pair, if the other side is an atomic and an atom.cas verifies the value loaded."""
    read = _beside_atomics(races, pair)
    return read if read and verified(races.launch.program, read.row) else None


def tried(races, pair: AccessPair) -> bool:
    """Whether a plain load that races with atomics picks what an atom.cas then tries, as in a lock-free
    table.
    """
    read = _beside_atomics(races, pair)
    return read is not None and _leads_to_cas(races.launch.program, read.row)


def _beside_atomics(races, pair: AccessPair) -> Access | None:
    """The load of a pair of accesses by threads whose other side is an atomic; None: not such a pair."""
    sides = {access.verb: access for access in (pair.first, pair.second)}
    threads = all(access.kind in ("thread", "other") for access in sides.values())
    if pair.code not in (WRITE_READ, READ_WRITE) or not threads:
        return None
    writer = races.launch.program.instrs[sides["write"].row]
    return sides["read"] if writer is not None and writer.op in ("atom", "red") else None


@functools.lru_cache(maxsize=512)
def _leads_to_cas(program: Program, load: int) -> bool:
    """Whether a thread can get from a load to an atom.cas without a barrier."""
    rows = reachable(program, load, stops=_meets)
    return any(_is_cas(program.instrs[row]) for row in rows)


def _meets(instr: Instr | None) -> bool:
    return instr is not None and instr.op in ("bar", "barrier")


@functools.lru_cache(maxsize=512)
def verified(program: Program, load: int) -> bool:
    """Whether a loaded value only goes into atom.cas at its address, as the value compared and into what
    is stored.
    """
    instr = program.instrs[load]
    if instr is None or instr.op != "ld" or instr.pred or not isinstance(instr.operands[0], Reg):
        return False
    ways = _Ways(program, load)
    todo = [(row, _Known(frozenset(targets(instr)))) for row in next_rows(program, load)]
    seen = set()
    while todo:
        row, known = at = todo.pop()
        if at in seen or not known.held:
            continue
        seen.add(at)
        after = ways.step(row, known)
        if after is None or len(seen) > _MANY:
            return False
        todo += after
    return any(_is_cas(program.instrs[row]) for row, _ in seen)


class _Ways:
    """Follows the value of one load along all paths."""

    def __init__(self, program: Program, load: int):
        self.program, self.load = program, load
        self.defined = definitions(program)
        self.target = frozenset(targets(program.by_row[load]))
        self.bits = type_bits(program.by_row[load].mods[-1])
        self.root, self.offset = self.place(program.by_row[load].operands[1])

    def place(self, mem: Mem) -> tuple:
        """(register or symbol, offset from it) of an address, traced back while each step has one source."""
        base, offset = mem.base, mem.offset
        while isinstance(base, Reg) and len(self.defined[base.name]) == 1:
            instr = self.program.by_row[self.defined[base.name][0]]
            first, *rest = instr.operands[1:] or [None]
            added = rest[0] if instr.op == "add" else None
            constant = added.bits if isinstance(added, Imm) else None
            if (
                instr.pred
                or not (constant is not None or instr.op in ("mov", "cvta"))
                or not isinstance(first, Reg | Sym)
            ):
                break
            base, offset = first, offset + (constant or 0)
        return (base.name, offset + base.offset) if isinstance(base, Sym) else (base, offset)

    def step(self, row: int, known: _Known) -> list[tuple[int, _Known]] | None:
        """Where a thread may be next, and what is known there; None: the value is used for something else."""
        instr = self.program.instrs[row]
        if instr is not None:
            if row == self.load:
                known = _Known(self.target, stale=known.held - self.target)
            elif instr.op == "bra":
                return self.branch(row, instr, known)
            else:
                after = _cas(self, instr, known) if _is_cas(instr) else _other(self, instr, known)
                if after is None:
                    return None
                known = after
            if isinstance(self.root, Reg) and self.root.name in targets(instr):
                known = _Known(_NONE, stale=known.held)
        return [(after, known) for after in next_rows(self.program, row)]

    def branch(self, row: int, instr: Instr, known: _Known) -> list[tuple[int, _Known]] | None:
        """Follows both sides of a branch. A guess that was found in memory is as good as what an atomic
        reads.
        """
        if _guard(instr) & known.held:
            return None
        guard, ways = instr.pred, []
        for taken in (True, False) if guard else (True,):
            found = guard is not None and (guard.reg.name, taken != guard.negated) in known.tests
            there = _Known(_NONE, stale=known.stale) if found else known
            ways += [(after, there) for after in next_rows(self.program, row, lambda _, taken=taken: taken)]
        return ways


def _is_cas(instr: Instr | None) -> bool:
    return instr is not None and instr.op == "atom" and "cas" in instr.mods


def _guard(instr: Instr) -> frozenset[str]:
    return frozenset() if instr.pred is None else frozenset({instr.pred.reg.name})


def _cas(ways: _Ways, instr: Instr, known: _Known) -> _Known | None:
    """atom.cas d, [a], compare, new: what is used in `new` must be compared by `compare` as well."""
    mem, compare, new = instr.operands[1:4]
    compared = frozenset(registers_of([compare]))
    stored = known.held.intersection(registers_of([new]))
    here = ways.place(mem) == (ways.root, ways.offset) and type_bits(instr.mods[-1]) == ways.bits
    checks = bool(compared & known.guess)
    if _guard(instr).union(registers_of([mem])) & known.held or (compared | stored) & known.stale:
        return None
    if compared & known.made or (checks and not here) or (stored and not checks):
        return None
    written = frozenset(targets(instr))
    if instr.pred is not None:
        return _maybe(known, written, bool(stored))
    known = known.without(written)
    return known._replace(answers=known.answers | written) if checks else known


def _other(ways: _Ways, instr: Instr, known: _Known) -> _Known | None:
    """The effect of any other instruction on registers; only arithmetic may use those that are followed."""
    used, written = (reads(instr) | _guard(instr)) & known.held, frozenset(targets(instr))
    if used and (instr.op not in OPCODES or used & known.stale):
        return None
    if instr.pred is not None:
        return _maybe(known, written, bool(used))
    known, before = known.without(written), known
    sources = instr.operands[1:]
    if instr.op == "mov" and isinstance(sources[0], Reg) and type_bits(instr.mods[-1]) == ways.bits:
        for part in ("guess", "answers"):
            if sources[0].name in getattr(before, part):
                return known._replace(**{part: getattr(known, part) | written})
    if _compares(instr, before):
        return known._replace(tests=known.tests | {(instr.operands[0].name, "eq" in instr.mods)})
    return known._replace(made=known.made | written) if used else known


def _maybe(known: _Known, written: frozenset[str], used: bool) -> _Known:
    """After an instruction with a guard: registers hold its result, or what they held before."""
    tainted = written if used else written & known.held
    return known.without(written)._replace(made=(known.made - written) | tainted)


def _compares(instr: Instr, known: _Known) -> bool:
    """Whether this is setp.eq or .ne of the guess and the result of an atom.cas that compared with it."""
    if instr.op != "setp" or instr.mods[0] not in ("eq", "ne") or len(instr.operands) != 3:
        return False
    if instr.mods[-1][:1] not in ("b", "s", "u"):  # floats may be equal in other bits
        return False
    names = [operand.name if isinstance(operand, Reg) else "" for operand in instr.operands]
    pairs = ((names[1], names[2]), (names[2], names[1]))
    return bool(names[0]) and any(one in known.guess and two in known.answers for one, two in pairs)
