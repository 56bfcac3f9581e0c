"""Edges that exist but in the wrong place: a product announced before it is complete, another consumer's
columns, a load over one that nobody waited for, a loop that waits less often than it is signalled.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.barrier_history import (
    held_at,
    history_of,
    ring_of,
    signals_by,
    times_signalled,
    times_waited,
)
from ptxsim.checks.diagnosis.case import case_of
from ptxsim.checks.diagnosis.deadlock.nameless import array_names
from ptxsim.checks.diagnosis.misnamed import missent
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import phase_name, source_line, times
from ptxsim.checks.race.barrier_record import MOST
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import barrier_of, line_text, work_of
from ptxsim.machine.register_files import WHOLE_WARP

Place = tuple[int, int]


def newest_wait(races: RaceDetector, pair: AccessPair) -> tuple[bool, Place | None]:
    """(whether it is on record, the barrier that the second access's thread waited for last before it)."""
    op = pair.issued[1]
    if pair.second.by is None or (op is not None and op.kind == "commit"):
        return False, None
    at = pair.at if op is None else op.at
    if not 0 <= at < MOST:
        return False, None
    warp = races.clocks.warp_of(pair.second.by)
    place = races.record.newest_wait(warp, at, op is not None and op.kind == "load")
    return True, place


def committed_early(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The reader has just waited for a commit that the issuer made in the middle of this product; or this MMA
    starts the next product, for which the issuer should have waited.
    """
    first, (_, place) = pair.first, newest_wait(races, pair)
    if (first.kind, pair.second.kind) != ("mma", "ld") or place is None:
        return None
    commits = races.transfers.commits.get(first.agent, ())
    early = max((at for at, p in commits if p == place and at < first.epoch), default=None)
    begun = races.transfers.begun.get(first.agent, ())
    if early is None:
        return None
    ahead = begun and min(at for at, p in commits if p == place) < begun[0]  # the first commit covers no MMA
    if not ahead and any(early < at <= first.epoch for at in begun):
        return _too_early(races, place, _let_pass(races, pair))
    wrong = missent(case_of(races))
    if wrong is not None:
        return wrong
    skipped = _skips_phases(races, pair, place)
    if skipped is not None:
        return skipped
    of_many = None if ahead else _phase_of_many(races, pair, place)
    if of_many is not None:
        return of_many
    warp = races.clocks.warp_of(pair.first.by)
    sources = history_of(races.cluster)[place].sources
    row = next((row for how, w, row in sources if how == "commit" and w == warp), None)
    line = "" if row is None else line_text(races, row)
    work = work_of(races, first.row)
    return reason("early-commit", name=barrier_of(races, place), line=line, work=work)


def product_too_early(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """This MMA starts a product where another is read whose commit the reader has waited for."""
    read, first, second = pair.issued[0], pair.first, pair.second
    if (first.kind, second.kind) != ("ld", "mma") or read is None or not 0 <= read.at < MOST:
        return None
    warp = races.clocks.warp_of(read.thread)
    place = races.record.newest_wait(warp, read.at)
    if place is None or races.record.refills(warp, place):
        return None
    commits = races.transfers.commits.get(second.agent, ())
    begun = races.transfers.begun.get(second.agent, ())
    read_ones = [at for at, p in commits if p == place and at < second.epoch]
    if not read_ones or begun and min(read_ones) < begun[0]:
        return None
    if any(min(read_ones) < at <= second.epoch for at in begun):
        return _too_early(races, place)
    return None


def _too_early(races: RaceDetector, place: Place, passed: str = "") -> Reason:
    text = "was waited for, but this MMA is of the next product: it came too early"
    return Reason(CAUSES["not-free"], f"{barrier_of(races, place)} {text}{passed}")


def stage_handed_back_early(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A load overwrites what an MMA reads, and that MMA was issued after the commit for this stage: the
    commit that the loader waited for covers only the MMAs before it.
    """
    sides = {access.kind: op for access, op in zip((pair.first, pair.second), pair.issued, strict=True)}
    product, load = sides.get("mma"), sides.get("bytes")
    if product is None or load is None or pair.space != "shared" or not 0 <= product.at <= MOST:
        return None
    freed = races.record.last_wait(races.clocks.warp_of(load.thread), load.at)
    warp = races.clocks.warp_of(product.thread)
    own = (s for s in reversed(races.clocks.steps[: product.at]) if s.warp == warp and s.kind != "use")
    last = next(own, None)
    if last is None or last.kind != "commit" or freed is None or freed not in last.places:
        return None
    line, work = line_text(races, last.row), work_of(races, product.row)
    return reason("early-commit", name=barrier_of(races, freed), line=line, work=work)


def sent_by_both(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Two CTAs each multicast the tile of one line to several CTAs, to the same place."""
    one, other = pair.issued
    if one is None or other is None or not one.kind == other.kind == "load" or one.row != other.row:
        return None
    copies = [op.copy for op in (one, other)]
    ctas = [races.clocks.warp_of(op.thread) // races.cluster.warps_per_cta for op in (one, other)]
    if ctas[0] == ctas[1] or any(copy is None or len(copy.ranks) < 2 for copy in copies):
        return None
    if len({copy.offset for copy in copies if copy is not None}) > 1:
        return None
    return reason("sent-by-both", one=f"CTA {min(ctas)}", other=f"CTA {max(ctas)}", buffer=pair.buffer)


def _skips_phases(races: RaceDetector, pair: AccessPair, place: Place) -> Reason | None:
    """The reader waits for one late phase, whose parity an earlier one shares; another warp waits for all."""
    reader, waits = races.clocks.warp_of(pair.second.by), history_of(races.cluster)[place].waits
    seen = pair.seen.get((reader, place))
    most = max((w for w in waits if w != reader), key=lambda w: waits[w].count, default=None)
    if seen is None or reader not in waits or most is None or waits[most].count <= waits[reader].count + 1:
        return None
    who = [role(races.cluster, {w: WHOLE_WARP}) for w in (reader, most)]
    return reason(
        "skips-phases",
        reader=who[0],
        passes=agree(who[0], "passes"),
        name=barrier_of(races, place),
        line=line_text(races, max(seen.rows)),
        phase=phase_name(seen.phase),
        other=who[1],
        waits=agree(who[1], "waits"),
    )


def _phase_of_many(races: RaceDetector, pair: AccessPair, place: Place) -> Reason | None:
    """Every MMA is committed to this barrier alone; the reader has waited for only a few of its phases."""
    commits, first = races.transfers.commits.get(pair.first.agent, ()), pair.first
    reader, history = races.clocks.warp_of(pair.second.by), history_of(races.cluster)[place]
    seen, done = pair.seen.get((reader, place)), [at for at, _ in commits]
    alone = all(p == place for _, p in commits) and any(at >= first.epoch for at in done)
    if seen is None or not alone or seen.count >= len(done):
        return None
    row = next(row for how, _, row in history.sources if how == "commit")
    return reason(
        "phase-of-many",
        name=barrier_of(races, place),
        line=line_text(races, row),
        phases=times(len(done)),
        waits=times(seen.count),
        at=line_text(races, max(seen.rows)),
    )


def _let_pass(races: RaceDetector, pair: AccessPair) -> str:
    """Which wait let the MMA's issuer pass: its last one for a barrier that the reader signals when done."""
    reader, issuer = (races.clocks.warp_of(access.by) for access in (pair.second, pair.first))
    for back in races.handshakes.handed_by(reader):
        seen, name = pair.seen.get((issuer, back)), barrier_of(races, back)
        if seen is not None:
            line, which = line_text(races, max(seen.rows)), phase_name(seen.phase)
            return f"; the wait for {name} before it{line} passed in {which}"
        if back in history_of(races.cluster) and issuer not in history_of(races.cluster)[back].waits:
            who = role(races.cluster, {issuer: WHOLE_WARP})
            return f"; {who}, which issued it, never waits for {name}"
    return ""


def others_columns(races: RaceDetector, pair: AccessPair, awaited: Place, theirs: set[int]) -> Reason | None:
    """The barrier that was waited for and the one that is signalled back both belong to one MMA warp, but the
    columns are another warp's.
    """
    reader, histories = races.clocks.warp_of(pair.second.by), history_of(races.cluster)
    mine = races.clocks.warp_of(pair.first.by)
    for back in races.handshakes.handed_by(reader):
        partners = set(histories[back].waits) if back in histories else set()
        if partners & theirs and mine not in partners:
            warps = {"theirs": min(theirs), "mine": mine}
            warps = {who: warp % races.cluster.warps_per_cta for who, warp in warps.items()}
            names = {"name": barrier_of(races, awaited), "back": barrier_of(races, back)}
            return reason("others-columns", **names, **warps)
    return None


def overlapping(pair: AccessPair, threads: str) -> Reason | None:
    """MMAs of several threads write overlapping columns, and are not one MMA that each of them issues."""
    known = [op for op in pair.issued if op is not None]
    spans = [op.columns for op in known if op.columns is not None]
    if len(spans) != 2:
        return None
    one, other = (f"columns {first} to {end - 1}" for first, end in sorted(spans))
    if one != other:
        return reason("overlap", threads=threads, one=one, other=other)
    alike = known[0].descriptors == known[1].descriptors
    return None if alike else reason("same-columns", threads=threads, columns=one)


def loaded_twice(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """One thread issues two loads to the same place, both signalling one barrier, with nothing in between."""
    one, other = sorted(pair.issued, key=lambda op: -1 if op is None else op.at)
    if one is None or other is None or not one.kind == other.kind == "load" or one.thread != other.thread:
        return None
    steps, warp = races.clocks.steps, races.clocks.warp_of(one.thread)
    if not 0 <= one.at <= other.at < len(steps):
        return None
    places = steps[one.at].places
    between = [s for s in steps[one.at : other.at + 1] if s.warp == warp]
    alone = all(s.kind in ("load", "arrive") and s.places == places for s in between)
    ring = ring_of(history_of(races.cluster), places[0], races.reporter.shared_array) if places else []
    lines = " and ".join(dict.fromkeys(source_line(races.launch.program, op.row) for op in (one, other)))
    others = {s.places for s in between if s.kind == "load"} - {places}
    beside = [_beside(races, op) for op in (one, other)]
    both = _one_box(*beside)  # parts of both tensors again: the next tile would share one
    again = _one_box(one.copy, other.copy) and (both or None in beside) and not _passed_twice(races, between)
    short = len(others) + 1 < len(ring) + both  # else the thread has gone round the ring
    if not alone and again and short and not case_of(races).never_waited():
        return reason("loaded-again", lines=lines)
    if not alone or not ring:
        return None
    if len(ring) > 1:
        return reason("loaded-twice", lines=lines, name=barrier_of(races, places[0]))
    return reason("loads-first", lines=lines)


def _one_box(one, other) -> bool:
    """Whether two copies bring the same part of one tensor."""
    return None not in (one, other) and one.tensor is other.tensor and tuple(one.start) == tuple(other.start)


def _passed_twice(races: RaceDetector, steps: list) -> bool:
    """Whether one of these waits let a phase pass a second time."""
    histories = history_of(races.cluster)
    waits = [
        histories[p].waits.get(s.warp) for s in steps if s.kind == "wait" for p in s.places if p in histories
    ]
    return any(of is not None and of.again is not None for of in waits)


def _beside(races: RaceDetector, load):
    """The copy from another tensor that the same thread issued next to this load."""
    known = [op for _, op in races.transfers.works_of(load.queue) if op.copy is not None]
    at = next((n for n, op in enumerate(known) if op is load), None)
    near = [known[n] for n in (at - 1, at + 1) if 0 <= n < len(known)] if at is not None else []
    others = [op for op in near if op.copy and op.copy.tensor is not load.copy.tensor]
    nearest = min(others, key=lambda op: abs(op.at - load.at), default=None)
    return nearest.copy if nearest is not None else None


def load_over_load(
    races: RaceDetector, pair: AccessPair, own: list[Place], forward: list[Place]
) -> Reason | None:
    """Nobody has waited for the first load, or this round lacks a wait that the issuer makes in others."""
    if not pair.first.kind == pair.second.kind == "bytes" or not own or pair.second.by is None:
        return None
    warp, array_of = races.clocks.warp_of(pair.second.by), races.reporter.shared_array
    awaited = {array_of(p[1]) for w, p in pair.seen if w == warp}
    if array_of(own[0][1]) in awaited:
        seen = pair.seen.get((warp, own[0]))
        text = f"the first load was not waited for: nobody had waited for {barrier_of(races, own[0])} by then"
        return Reason(CAUSES["unseen-load"], text) if seen is None else None
    array = next((a for p in forward if (a := array_of(p[1])) in awaited), None)
    return None if array is None else Reason(CAUSES["not-free"], f"{array} was not waited for between them")


def read_less(races: RaceDetector, pair: AccessPair, forward: list) -> Reason | None:
    """Those who read tensor memory wait less often for a barrier of its MMAs than it is signalled."""
    instrs = races.launch.program.instrs
    readers = {
        s.warp for s in races.clocks.steps if s.kind == "use" and instrs[s.row].name.startswith("tcgen05.ld")
    }
    histories = history_of(races.cluster)
    told = (p for p in forward if p in histories and readers & set(histories[p].waits))
    return next((less for place in told if (less := waits_less(races, pair, place)) is not None), None)


def waits_less(races: RaceDetector, pair: AccessPair, place: Place) -> Reason | None:
    """Tensor memory is freed, and its last user waits less often than the barrier was signalled."""
    history, barrier = history_of(races.cluster).get(place), races.cluster.mbarriers.get(place)
    if pair.space != "tmem" or pair.second.kind != "thread" or history is None or barrier is None:
        return None
    waits = max((w.count for w in history.waits.values()), default=0)
    if not 0 < waits < barrier.phase:
        return None
    return reason("fewer-waits", name=barrier_of(races, place), phases=barrier.phase, waits=times(waits))


def hands_back_more(
    races, warp: int | None, back: Place, ready: set[Place], in_advance: bool = True
) -> Reason | None:
    """A reader signals "done" more often than it waits for its data, by whole rounds.

    warp: the reader's; back: the barrier by which it hands the buffer back; ready: the barriers by which the
    other side reports that the buffer is full; in_advance: whether it may signal once before the first round.
    """
    histories = history_of(races.cluster)
    array_of = array_names(case_of(races))
    backs, readies = (_rings(histories, places, array_of) for places in ({back}, ready))
    waited = [p for p in readies if warp in histories[p].waits]
    if warp is None or not waited:
        return None
    signals, passed = times_signalled(histories, backs, warp), times_waited(histories, waited, warp)
    if signals <= passed + len(backs) * in_advance:
        return None
    name = barrier_of(races, waited[0])
    counts = {"times": times(signals), "passed": times(passed)}
    if _waits_again(races, warp, waited):
        row, _ = signals_by(histories, backs, warp)[0]
        line = line_text(races, row)
        return reason("answers-more", name=name, back=barrier_of(races, back), line=line, **counts)
    return reason("waits-less", name=name, back=barrier_of(races, back), **counts)


def _waits_again(races: RaceDetector, warp: int, places: list[Place]) -> bool:
    """Whether a warp has waited for these several times, or is held at such a wait again."""
    histories = history_of(races.cluster)
    return times_waited(histories, places, warp) > 1 or warp in held_at(races.cluster, places)


def _rings(histories: dict, places: set[Place], array_of) -> list[Place]:
    return sorted({other for place in places for other in ring_of(histories, place, array_of)})
