"""Accesses by two clusters of a grid: only flags and atomics with fences can order them (PTX ISA 8.8)."""

from __future__ import annotations

import functools

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import source_line
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.other_clusters import Told
from ptxsim.checks.race.wording import thread_of
from ptxsim.checks.static_flow import reachable, way_without_barrier
from ptxsim.frontend.ast import Instr
from ptxsim.isa.memory_access import ordering
from ptxsim.lowering.emit import Program
from ptxsim.units.fences_and_hints import meaning

_UNORDERED = "they are in different clusters of the grid, which nothing orders"


def between_clusters(races: RaceDetector, pair: AccessPair) -> Reason:
    """What is missing between an access by an earlier cluster and one by this cluster."""
    program, first, second = races.launch.program, pair.first, pair.second
    teller = _teller(program, second.row) if (first.verb, second.verb) == ("write", "read") else None
    if teller is None:
        cause = CAUSES["variable-of-all" if pair.buffer in races.launch.variables else "other-cta"]
        return Reason(cause, _UNORDERED)
    missing = _broken_at(races, pair, teller)
    return reason("hands-nothing-on", line=source_line(program, teller), missing=missing)


def by_one_thread(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A thread signals, or asks for a flag, on behalf of its CTA, but no barrier has it wait for the others'
    accesses, or has these wait for its answer.
    """
    program, others = races.launch.program, races.history.others
    for access in (pair.second, pair.first) if pair.first.kind == "other" else ():
        if access.kind not in ("thread", "other"):
            continue
        for place, agent, row in others.signals:
            if (
                place in others.polled
                and access.agent != agent
                and way_without_barrier(program, access.row, row)
            ):
                return _alone(races, agent, row, access, "signals", "after")
        asking = sorted(set().union(*others.polled.values()))
        if (pair.first.verb, pair.second.verb) == ("write", "read") or access.agent in asking:
            continue  # what was acquired tells more
        for row in _asking(program) if asking else ():
            if row != access.row and way_without_barrier(program, row, access.row):
                return _alone(races, asking[0], row, access, "asks", "before")
    return None


def _alone(races: RaceDetector, agent: int, row: int, access: Access, does: str, when: str) -> Reason:
    program = races.launch.program
    missing = f"{thread_of(races, agent)} of a CTA {does} there for all its threads, with no barrier of the "
    missing += f"CTA {when} their {access.verb} ({source_line(program, access.row)})"
    return reason("hands-nothing-on", line=source_line(program, row), missing=missing)


def one_asks(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether the two are in different clusters, and the later one comes after a flag was asked for."""
    polled, program = races.history.others.polled, races.launch.program
    return pair.first.kind == "other" and bool(polled) and _teller(program, pair.second.row) is not None


def _broken_at(races: RaceDetector, pair: AccessPair, teller: int) -> str:
    """Where the way from a write by another cluster to a read by this one is broken."""
    first, second = pair.first, pair.second
    released, acquired = _told(races, pair)
    if not any(_covers(row, first) for row in released):
        if not released:
            return "nothing releases the write before it" + _near(races.launch.program)
        return (
            "what it releases does not include this write, which comes after the fence or release, or is "
            "by a thread with no barrier between" + _weak(races.launch.program)
        )
    told = [agent for agent, row in acquired.items() if _covers(row, first)]
    if not told:
        return "nothing acquires after it" + _near(races.launch.program)
    who, reader = (thread_of(races, a) for a in (told[0], second.agent if second.by is None else second.by))
    if not ordering(races.launch.program.instrs[teller]).acquires:
        return f"{who} acquires only after the barrier that should hand it on to {reader}"
    return f"{who} acquires, but no barrier after that hands it on to {reader}"


def _told(races: RaceDetector, pair: AccessPair) -> Told:
    """What was released and acquired when the two met; if one ran after the other, also later."""
    others = races.history.others
    return pair.told if others.together and pair.told else others.told_of(pair.first.cluster)


def _covers(row, access: Access) -> bool:
    return access.agent < len(row) and bool(row[access.agent] >= access.epoch)


def _in_global(instr: Instr | None) -> bool:
    return instr is not None and not any(mod.startswith("shared") for mod in instr.mods)


def _near(program: Program) -> str:
    """Names a scope that does not reach other clusters, if the program uses one in global memory."""
    instrs = [i for i in program.by_row.values() if i.op in ("fence", "membar")]
    near = any(meaning(i.mods).near for i in instrs)
    near = near or any(ordering(i).near and _in_global(i) for i in program.instrs)
    return ", or only at the scope of a CTA or cluster (.cta, __threadfence_block)" if near else ""


def _weak(program: Program) -> str:
    """Says that fences of other threads than the releasing one must be .sc, if the program has any other."""
    instrs = [i for i in program.by_row.values() if i.op == "fence"]
    weak = any(fence.threads and not fence.sc for fence in (meaning(i.mods) for i in instrs))
    return ", whose own fence counts only as fence.sc" if weak else ""


def _teller(program: Program, later: int) -> int | None:
    """The last instruction in the text that may tell a thread on its way to row `later` of other clusters."""
    rows = [row for row in _asking(program) if row != later]
    return next((row for row in reversed(rows) if later in reachable(program, row)), None)


@functools.lru_cache(maxsize=16)
def _asking(program: Program) -> list[int]:
    return [row for row, instr in enumerate(program.instrs) if _asks(instr)]


def _asks(instr: Instr | None) -> bool:
    """Whether an instruction reads a flag or counter that threads of other clusters may set."""
    how = ordering(instr)
    return how.strong and how.reads and _in_global(instr)
