"""Turns pairs of unordered accesses into findings: both accesses, and the missing edge between them."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ptxsim.checks.diagnosis.missing_edge import missing
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.same_output import changed_by_many, read_before
from ptxsim.checks.diagnosis.unseen_arrival import unwritten_reads
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.carried_values import carried, placing_loads
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.data_loads import compared
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.guesses import guessed
from ptxsim.checks.race.shadow_order import (
    NO_FENCE_READ,
    NO_FENCE_WRITE,
    NO_TCGEN05_FENCE,
    OPEN_READ,
    OPEN_WRITE,
    READ_WRITE,
    SAME_VALUE,
    UNACQUIRED,
    UNORDERED,
    WRITE_READ,
    WRITE_WRITE,
)
from ptxsim.checks.race.told_by_exchange import told_by_exchange
from ptxsim.checks.race.unused_loads import unused
from ptxsim.checks.race.wording import instr_of, line_of, side_of, text_of
from ptxsim.checks.register_uses import never_read
from ptxsim.machine.register_files import WHOLE_WARP

_RACES = (WRITE_WRITE, WRITE_READ, READ_WRITE)


class _Verdict(NamedTuple):
    """What is said about a pair."""

    kind: str  # "race" or "proxy-fence"
    severity: str
    edge: Reason  # the cause, and what is missing between the two
    guess: Access | None  # the load whose value is only a guess, if that is what the pair is about
    harmless: str  # why the order of the two changes nothing; "" if it may
    changed: bool  # whether several outputs depend on it


def report(races: RaceDetector, pairs: dict[tuple, AccessPair]) -> None:
    """Adds a finding per pair, and one for tcgen05.st that nothing waits for."""
    _never_waited(races)
    said = set()  # findings that a race already covers
    for pair in sorted(pairs.values(), key=_weight):
        if _without_barrier(races, pair) or _told_otherwise(pairs, pair) or _misplaced(races, pairs, pair):
            continue
        verdict = _verdict(races, pair)
        kind, severity, edge = verdict[:3]
        message, key = _message(races, pair, verdict), _key(races, pair, verdict)
        place, evidence = _place(races, pair, edge), _evidence(races, pair, verdict)
        finding = races.reporter.add(kind, severity, message, edge.cause, place, key, **evidence)
        finding.count += pair.count - 1
        unread = kind == "race" and _loads_for_nobody(races, pair)
        if unread or (kind, severity) == ("race", "error") or pair.code > UNORDERED:
            said.update(unwritten_reads(races, pair))
    for identity in said:
        del races.reporter.by_identity[identity]


def _verdict(races: RaceDetector, pair: AccessPair) -> _Verdict:
    kind, severity = _class(pair)
    guess, harmless = guessed(races, pair), _harmless(races, pair, kind)
    told = kind == "race" and told_by_exchange(races, pair)
    beside = kind == "race" and _multiplied_in_vain(races, pair)
    if guess or harmless or told or beside:
        severity = "review"
    changed = (severity == "error" or pair.code == SAME_VALUE) and not told and changed_by_many(races, pair)
    edge = reason("beside-tile") if beside else missing(races, pair)
    return _Verdict(kind, "error" if changed else severity, edge, guess, harmless, changed)


def _message(races: RaceDetector, pair: AccessPair, verdict: _Verdict) -> str:
    earlier, later = (text_of(races, a, bool(pair.issuers)) for a in (pair.first, pair.second))
    if verdict.kind == "proxy-fence":
        verb = "may miss" if pair.code == NO_FENCE_READ else "may overtake"
        what = f"{later} {verb} {earlier}"
    elif verdict.severity == "review" or pair.code == OPEN_READ:
        what = f"{later} after {earlier}"
    else:
        what = f"{later} and {earlier} are not ordered"
    return f"{pair.place}: {what}: {verdict.edge.text}{verdict.harmless}"


def _evidence(races: RaceDetector, pair: AccessPair, verdict: _Verdict) -> dict:
    sides = {"first": side_of(races, pair.first), "second": side_of(races, pair.second)}
    equal = {"equal": pair.buffer} if pair.code == SAME_VALUE and not verdict.changed else {}
    return {"place": pair.place, "missing": verdict.edge.text, **sides, **equal}


def _place(races: RaceDetector, pair: AccessPair, edge: Reason) -> Any:
    """Where the finding stands, in a form that a Reporter can place."""
    if edge.warp is not None and edge.row is not None:
        return _standing(races, edge.warp, edge.row)
    return _split(races, pair.second)


def _key(races: RaceDetector, pair: AccessPair, verdict: _Verdict) -> tuple:
    """What this pair has in common with others that its finding tells, too."""
    if verdict.changed:
        return "changed", pair.buffer, pair.key[2]
    if pair.code > UNORDERED:
        return "unordered", pair.buffer
    if verdict.guess:
        return "guess", line_of(races, verdict.guess.row), pair.buffer
    return _alike(races, pair, verdict.edge)


def _alike(races: RaceDetector, pair: AccessPair, edge: Reason) -> tuple:
    """What pairs have in common that one finding tells. Where the source's lines are unknown, unrolling and
    inlining repeat an instruction in many lines of the text: the same cause in the same words counts.
    """
    both = [instr_of(races, access.row) for access in (pair.first, pair.second)]
    if any(instr is None or instr.src is not None for instr in both):
        return pair.key
    names = tuple(instr.name for instr in both)
    return pair.code, names, edge.cause.id, re.sub(r"\d+", "", edge.text), pair.buffer


def _told_otherwise(pairs: dict[tuple, AccessPair], pair: AccessPair) -> bool:
    """Whether another pair says more: the same two lines also store different values; what lanes left open is
    read; or their store races.
    """
    store, buffer = pair.key[1:3], pair.key[-1]
    if pair.code == SAME_VALUE:
        return (WRITE_WRITE, *pair.key[1:]) in pairs
    if pair.code == OPEN_READ:
        own = any((code, *store, *store, buffer) in pairs for code in _RACES)
        return own or (WRITE_READ, *pair.key[1:]) in pairs
    others = (key for key in pairs if key[-1] == buffer and store in (key[1:3], key[3:5]))
    return pair.code == OPEN_WRITE and any(code in (*_RACES, OPEN_READ) for code, *_ in others)


def _misplaced(races: RaceDetector, pairs: dict[tuple, AccessPair], pair: AccessPair) -> bool:
    """Whether a store goes where a load from shared memory sends it, and another pair says that this load
    races: then where it goes is luck.
    """
    if pair.space != "memory":
        return False
    sides = (a for other in pairs.values() if other.space == "shared" for a in _racing(other))
    loads = {access.row for access in sides if access.verb == "read"}
    stores = [a for a in (pair.first, pair.second) if a.verb == "write" and a.kind in ("thread", "other")]
    program = races.launch.program
    return bool(loads) and any(loads & placing_loads(program, store.row) for store in stores)


def _racing(pair: AccessPair) -> tuple[Access, ...]:
    return (pair.first, pair.second) if pair.code in _RACES else ()


def _never_waited(races: RaceDetector) -> None:
    """Reports tcgen05.st without a wait. A tcgen05.ld may go without one: a true dependence through its
    registers is kept even without other synchronisation (PTX ISA 9.7.16.6.4.5). If its columns are then
    reused or freed, a pair reports that: as an error, but as a review if a register was read first and
    only the wait is missing (`TensorMemoryAccesses.tells`), or if nothing ever reads one.
    """
    for kind, warp, op in races.tensor_memory.never_waited():
        if kind == "ld":
            continue
        who = f"warp {warp % races.cluster.warps_per_cta}"
        message = (
            f"tensor memory: nothing waits for tcgen05.{kind} by {who}: no tcgen05.wait::{kind} after it"
        )
        access = Access(kind, op.queue, op.epoch, op.row, "access")
        hint = f"tcgen05.{kind} is asynchronous: wait::{kind} before TMEM is handed on"
        races.reporter.add("race", "error", message, hint, _split(races, access), ("never", kind))


def _loads_for_nobody(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether one side is a tcgen05.ld whose registers nobody reads: then its value changes nothing."""
    loads = [access for access in (pair.first, pair.second) if access.kind == "ld"]
    return any(never_read(races.launch.program, load.row) for load in loads)


def _loads_in_vain(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether no thread that reads stores anything that depends on its load."""
    if not pair.each_time.readers or not pair.first.kind == pair.second.kind == "thread":
        return False
    return all(a >= 0 and races.idle_loads.in_vain(row, np.array([a])) for row, a in pair.each_time.readers)


def _multiplied_in_vain(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether tensor cores read, and no thread stores anything that depends on what they got there."""
    known = pair.multiplies and (pair.each_time.readers or pair.each_time.results is not None)
    return bool(known) and races.results.in_vain(pair.each_time.readers, pair.each_time.results)


def _harmless(races: RaceDetector, pair: AccessPair, kind: str) -> str:
    """Words that say why the order of the two changes nothing, unless their class says it; "" if it may."""
    if kind == "race" and _loads_for_nobody(races, pair):
        return "; nothing reads what it loads"
    if carried(races, pair):
        return "; what it stores comes from what was read"
    if pair.code == OPEN_WRITE:
        return "; nothing in this launch reads it"
    if pair.code == OPEN_READ and compared(races.launch.program, pair.second.row):
        return "; what is loaded is compared, as if one of them were elected"
    first, program = pair.first, races.launch.program
    if pair.code == OPEN_READ and placing_loads(program, first.row) and not read_before(program, first.row):
        return "; which lanes meet there depends on what was loaded, and perhaps any of them will do"
    writer = instr_of(races, first.row)
    if pair.relaxed is not None and writer is not None and writer.mods[:1] == ("alloc",):  # as DeepGEMM
        return "; tcgen05.alloc has been executed by then, and B200s read the address so"
    if kind == "race" and pair.each_time.in_group and pair.code == READ_WRITE:
        return "; all four warps have issued a wgmma between, which the later one has waited for"
    if kind == "race" and pair.each_time.in_group:
        return "; each wgmma waits for all four warps, and an H200 reads what they stored before it"
    if kind == "race" and _loads_in_vain(races, pair):
        return "; the threads that read there store nothing that depends on it, so it changes nothing"
    if kind == "race" and unused(races, pair):
        return "; what is read is used on no way to the next barrier, nor after it, so it changes nothing"
    return ""


def _without_barrier(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether a load reports to a barrier that nobody initialised: then that is the finding, not its
    races.
    """
    loads = [races.clocks.queue(a.agent).owner for a in (pair.first, pair.second) if a.kind == "bytes"]
    return any(p not in races.clocks.signals or races.clocks.signals[p].initialised is None for p in loads)


def _weight(pair: AccessPair) -> tuple:
    """Order of reports: races before fences, and shared memory before tensor and global memory, where its
    errors show up.
    """
    return (pair.code > READ_WRITE, ("shared", "tmem", "memory").index(pair.space), -pair.count)


def _class(pair: AccessPair) -> tuple[str, str]:
    if pair.code in (NO_FENCE_READ, NO_FENCE_WRITE):
        strict = pair.elsewhere is None and _unseen_without_fence(pair)
        return "proxy-fence", "error" if strict else "review"
    forgiven = pair.code in (NO_TCGEN05_FENCE, SAME_VALUE, OPEN_WRITE) or pair.code > UNACQUIRED
    return "race", "review" if forgiven or _same_store(pair) or _in_rounds(pair) else "error"


def _unseen_without_fence(pair: AccessPair) -> bool:
    """Whether the later access may miss the write. On an H200 a wgmma misses stores, but not a cp.async that
    was waited for (`research/chip/proxy_fence.cu`); a tcgen05.mma has read stores right on a B200.
    """
    if pair.code != NO_FENCE_READ or pair.second.kind == "mma":
        return False
    return pair.second.kind != "wgmma" or pair.first.kind == "thread"


def _same_store(pair: AccessPair) -> bool:
    """Whether several threads of a CTA store the same box from the same place: whichever is last, the
    contents are the same.
    """
    return bool(pair.issuers) and pair.first.kind == pair.second.kind == "result"


def _in_rounds(pair: AccessPair) -> bool:
    """Whether lanes of one warp store by one instruction, in different rounds of a loop: nothing keeps them
    together, but lanes that take the same branches are.
    """
    one = pair.first.row == pair.second.row and pair.each_time.of_warp
    return one and pair.code == WRITE_WRITE


def _standing(races: RaceDetector, warp: int, row: int) -> Any:
    """A whole warp at a row, in a form that a Reporter can place."""
    cta = warp // races.cluster.warps_per_cta
    return SimpleNamespace(cluster=races.cluster, cta=cta, warp=warp, mask=WHOLE_WARP, row=row)


def _split(races: RaceDetector, access: Access) -> Any:
    """The issuer of an access, in a form that a Reporter can place."""
    cluster, clocks, agent = races.cluster, races.clocks, access.agent
    whole = access.kind in ("ld", "st")  # these act as warps
    if access.kind == "thread":
        thread = agent * clocks.threads_per_agent
    else:
        owner = clocks.queue(agent).owner
        op = races.transfers.find(agent, access.epoch, access.row) if access.kind == "bytes" else None
        owner = op.thread if op is not None else owner
        thread = owner * (32 if whole else clocks.threads_per_agent) if isinstance(owner, int) else 0
    warp = thread // 32
    mask = WHOLE_WARP if whole or clocks.threads_per_agent > 1 else 1 << thread % 32
    return SimpleNamespace(
        cluster=cluster, cta=warp // cluster.warps_per_cta, warp=warp, mask=mask, row=access.row
    )
