"""The missing edge between two accesses: the wait, fence or phase flip that would order them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause
from ptxsim.checks.diagnosis.between_clusters import between_clusters, by_one_thread, one_asks
from ptxsim.checks.diagnosis.carriers import (
    awaited_by_peers,
    awaited_in_a_peer,
    carriers,
    likely,
    never_waited_for,
    own_signals,
    unawaited,
)
from ptxsim.checks.diagnosis.case import case_of
from ptxsim.checks.diagnosis.deadlock.nameless import array_names
from ptxsim.checks.diagnosis.handed_back import (
    freed_early,
    handed_back_early,
    handed_to_others,
    let_in_early,
    peers_unasked,
)
from ptxsim.checks.diagnosis.in_memory import (
    columns_stay,
    load_outside,
    loaded_too_soon,
    one_memory,
    other_columns,
    overtaken,
    product_unwaited,
)
from ptxsim.checks.diagnosis.last_wait import not_waited_for
from ptxsim.checks.diagnosis.misnamed import misnamed
from ptxsim.checks.diagnosis.missing_fence import missing_fence
from ptxsim.checks.diagnosis.more_arrivals import let_in_by_excess, one_too_many, too_many
from ptxsim.checks.diagnosis.old_phase import passed_again, passed_at_once
from ptxsim.checks.diagnosis.other_arrivals import arrival_unwaited, by_thread, slot_by_cta, uncounted
from ptxsim.checks.diagnosis.other_element import other_slot
from ptxsim.checks.diagnosis.out_of_step import (
    committed_early,
    load_over_load,
    loaded_twice,
    overlapping,
    product_too_early,
    read_less,
    sent_by_both,
    stage_handed_back_early,
    waits_less,
)
from ptxsim.checks.diagnosis.past_buffer import past_buffer, past_stage, shifted_loads
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.repairs import LATE, PHASE, only_repair
from ptxsim.checks.diagnosis.same_output import changed_by_many, same_output
from ptxsim.checks.diagnosis.sent_astray import place_stays, wrong_peer
from ptxsim.checks.diagnosis.thread_ring import out_of_ring
from ptxsim.checks.diagnosis.turns import out_of_turn
from ptxsim.checks.diagnosis.unseen_arrival import (
    arrives_alone,
    arrives_for_readers,
    awaits_groups,
    cleared_unordered,
    groups_pending,
    left_out,
    no_barrier,
    others_waited,
    stored_by_another_group,
    unguarded,
    unwritten_reads,
)
from ptxsim.checks.diagnosis.written_again import written_again
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.conflict import AccessPair, has_waited
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.guesses import guessed, tried
from ptxsim.checks.race.shadow_order import (
    OPEN_READ,
    OPEN_WRITE,
    SAME_VALUE,
    UNACQUIRED,
    UNORDERED,
    WRITE_WRITE,
)
from ptxsim.checks.race.told_by_exchange import told_by_exchange
from ptxsim.checks.race.wording import barrier_of, line_text, threads_of, work_of

_AWAITED_LATE = {"ld": "early", "st": "stored-early"}


def missing(races: RaceDetector, pair: AccessPair) -> Reason:
    """What would order the two accesses, with the hint that goes with it."""
    first = pair.first
    fence = missing_fence(races, pair)
    if fence is not None:
        return fence
    if pair.code in (SAME_VALUE, OPEN_WRITE, OPEN_READ) and not changed_by_many(races, pair):
        return _of_one_instruction(races, pair)
    if pair.code > UNACQUIRED:
        return reason("unordered-value" if pair.code > UNORDERED else "unacquired")
    if guessed(races, pair):
        return reason("guess")
    if told_by_exchange(races, pair):
        if pair.each_time.handed_back is None:
            return reason("by-exchange")
        place, row = pair.each_time.handed_back
        return reason("handed-for-warp", name=barrier_of(races, place), line=line_text(races, row))
    if tried(races, pair):
        return reason("tried")
    if pair.issuers:
        return _several_issue(races, pair)
    same = by_one_thread(races, pair) or out_of_turn(races, pair) or same_output(races, pair)
    if same is not None and not _means_more(races, pair, same):
        return same
    if first.kind == "other":
        return between_clusters(races, pair)
    if first.kind == "cp.async" and not pair.waited:
        return one_too_many(races, pair) or out_of_ring(races, pair) or _copy_pending(races, pair)
    if first.kind == "wgmma" and not pair.waited:
        return reason("products-pending")
    only = _only_read(races, pair) or _unreleased(races, pair)
    if only is not None:
        return only
    if pair.waited or first.kind == "st" and has_waited(races, first):
        return _wait(races, pair)
    if first.kind in ("ld", "st"):
        cause = "freed-in-use" if pair.second.kind == "thread" else _AWAITED_LATE[first.kind]
        return Reason(CAUSES[cause], f"its warp has not executed tcgen05.wait::{first.kind}")
    return _store_pending(races, pair)


def _means_more(races: RaceDetector, pair: AccessPair, same: Reason) -> bool:
    """Whether threads that use one word do so by turns, which another reason explains."""
    if same.cause is CAUSES["one-word"]:
        return one_asks(races, pair)
    return same.cause is CAUSES["word-moves-on"] and _handed_over(races, pair)


def _handed_over(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether one side signals an mbarrier that the other waits for, or that nobody waits for."""
    both = (pair.first, pair.second), (pair.second, pair.first)
    met = any(
        (other.warp(races), place) in pair.seen for one, other in both for place in own_signals(races, one)
    )
    return met or bool(unawaited(races, pair))


def _copy_pending(races: RaceDetector, pair: AccessPair) -> Reason:
    """A cp.async that its thread has not waited for: by its group or, in a program without such waits, by the
    mbarrier that it signals.
    """
    program, places = races.launch.program, carriers(races, pair.first)
    if places and not awaits_groups(program):
        return _not_waited_for(races, pair, places[0])
    return groups_pending(program, pair.first, pair.second)


def _store_pending(races: RaceDetector, pair: AccessPair) -> Reason:
    """A bulk store that its thread has not waited for."""
    first = pair.first
    crossed = None if pair.after_issue else no_barrier(races, pair)
    if crossed is not None:  # it should come before the store that it met, not after it
        return crossed
    owner = races.clocks.queue(first.agent).owner
    left, late = races.bulk.left_pending(owner, first.epoch), races.bulk.waited_late(owner, first.epoch)
    if left is None and late is not None and unguarded(races, pair, late):
        return reason("group-unguarded", line=line_text(races, late))
    if left is not None:
        cause = "group-unguarded" if unguarded(races, pair, left[1]) else "groups-allowed"
        return reason(cause, count=left[0], line=line_text(races, left[1]))
    text = "its thread has not waited for it (cp.async.bulk.commit_group, then wait_group)"
    return Reason(CAUSES["stores-pending"], text)


def _several_issue(races: RaceDetector, pair: AccessPair) -> Reason:
    """Several threads issue one instruction of the tensor core or one copy."""
    threads, what = threads_of(races, pair.issuers), work_of(races, pair.first.row)
    found = overlapping(pair, threads) if what == "MMA" else None
    what = f"{what}, and their columns overlap" if pair.first.kind == "mma" else "copy, to one place"
    return found or reason("issuers", threads=threads, what=what)


def _of_one_instruction(races: RaceDetector, pair: AccessPair) -> Reason:
    """Lanes that store different values at once; or stores of the same bytes, by two instructions by luck."""
    if pair.code != SAME_VALUE:
        return reason("lanes-differ", line=line_text(races, pair.first.row))
    if pair.first.kind == pair.second.kind in ("thread", "cp.async") and pair.first.row == pair.second.row:
        return reason("all-write")
    without = missing(races, replace(pair, code=WRITE_WRITE))
    return replace(without, text=f"{without.text}, but both write the same value in this run")


def _only_read(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A bulk store whose thread has executed wait_group.read for it, where wait_group is needed."""
    for store, other in (pair.first, pair.second), (pair.second, pair.first):
        if store.kind != "result":
            continue
        owner = races.clocks.queue(store.agent).owner
        row = races.bulk.only_read(owner, store.epoch)
        if row is not None and (not pair.waited if store is pair.first else other.agent == owner):
            return reason("only-read", line=line_text(races, row))
    return None


def _unreleased(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """An arrival that releases nothing stands between the two."""
    if pair.relaxed is not None:
        return reason("relaxed-meeting", line=line_text(races, pair.relaxed))
    warp, first = pair.second.warp(races), pair.first
    weak = races.handshakes.met_unreleased(first.agent, first.epoch, [p for w, p in pair.seen if w == warp])
    if weak is None:
        return None
    return reason("arrival-weak", name=barrier_of(races, weak[0]), line=line_text(races, weak[1]))


def _wait(races: RaceDetector, pair: AccessPair) -> Reason:
    """The missing wait on an mbarrier: left out, passed because of an old phase, or without effect."""
    found = (detect(races, pair) for detect in _DETECTORS)
    return next((edge for edge in found if edge is not None), None) or _left_out(races, pair)


def _nobody_waits(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A barrier that would pass one of the accesses on has no wait at all."""
    queue = pair.first.kind in ("bytes", "mma", "ld")
    unused = unawaited(races, pair)
    if pair.first.kind == pair.second.kind == "thread":
        own = own_signals(races, pair.first) | own_signals(races, pair.second)
        unused = [place for place in unused if place in own]
    unused = unused or (never_waited_for(races) if queue else [])
    return _not_waited_for(races, pair, unused[0]) if unused else None


def _not_waited_for(races: RaceDetector, pair: AccessPair, place: tuple[int, int]) -> Reason:
    """A barrier passes one access on, and the thread of the other access should have waited for it, even if
    its access came first in this run. Where memory is freed, perhaps no thread is left to wait.
    """
    wrong = misnamed(case_of(races))
    if wrong is not None:
        return wrong
    name, first = barrier_of(races, place), pair.first
    peers = awaited_in_a_peer(races, place)
    if peers is not None:
        return reason("own-arrival", name=name, other=barrier_of(races, peers))
    freed = pair.space == "tmem" and pair.second.kind == "thread"
    if freed and place in never_waited_for(races):
        return reason("freed", name=name)
    text = not_waited_for(races, pair, place)
    warp = first.warp(races)
    if warp is None or place not in own_signals(races, pair.second) - own_signals(races, first):
        return Reason(_cause(races, pair), text)
    reads = (first.verb, pair.second.verb) == ("read", "write")
    return Reason(CAUSES["not-ready" if reads else "not-free"], text, first.row, warp)


def _no_wait_at_all(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Threads arrive on a barrier for which no wait stands in the program."""
    case = case_of(races)
    names = [] if pair.space == "tmem" else case.never_waited(array_names(case))
    arrays = {name.partition("[")[0] for name in names}
    arrives = {
        how
        for place, history in case.histories.items()
        if case.array(place) in arrays
        for how, _, _ in history.sources
    }
    if arrives != {"arrive"}:
        return None
    return misnamed(case) or reason("ahead-unwaited", names=" or ".join(names))


def _repaired(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A wait that comes too late or asks for the wrong phase, if that is the only repair that works."""
    repair = only_repair(races, pair)
    if repair is None or repair.family not in (LATE, PHASE):
        return None
    name, line = barrier_of(races, repair.place), line_text(races, repair.row)
    unwaited = _no_wait_at_all(races, pair)
    return unwaited or reason("wait-late" if repair.family == LATE else "wait-phase", name=name, line=line)


def _left_out(races: RaceDetector, pair: AccessPair) -> Reason:
    """The barrier that should have been waited for, and which thread waited for it instead of the reader."""
    first, second = pair.first, pair.second
    forward, backward = carriers(races, first), carriers(races, second)
    queue = first.kind in ("bytes", "mma", "ld")
    own = [races.clocks.queue(first.agent).owner] if first.kind == "bytes" else []
    over = load_over_load(races, pair, own, forward)
    if over is not None:
        return over
    chosen = (own or (likely(races, pair, forward) if queue else []) or [None])[0]
    fewer = read_less(races, pair, forward) if queue else None
    if fewer is not None:
        return fewer
    if chosen is not None:
        found = others_waited(races, pair, chosen) if first.verb == "write" else None
        found = found or arrives_alone(races, pair, chosen) or waits_less(races, pair, chosen)
        return found or Reason(_cause(races, pair), not_waited_for(races, pair, chosen))
    if first.kind == "source" and second.kind == "thread" and _one_group(races, first, second):
        return reason("group-late")
    if second.kind == "mma" and backward:
        handing_on = (awaited_by_peers(races, first, backward) or backward)[0]
        found = product_too_early(races, pair) or others_waited(races, pair, handing_on)
        text = f"no barrier between them, nor was {barrier_of(races, handing_on)} waited for"
        return found or Reason(_cause(races, pair), text)
    found = handed_to_others(races, pair) or stored_by_another_group(races, pair)
    found = found or written_again(races, pair)
    found = found or (reason("within-warp") if _within_warp(races, pair) else None)
    return found or Reason(_cause(races, pair), "no barrier between them")


def _within_warp(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether all conflicts in this buffer are between lanes of one warp: a barrier of the warp is enough."""
    here = (other for other in races.history.pairs.values() if other.buffer == pair.buffer)
    return all(other.each_time.of_warp for other in here)


def _one_group(races: RaceDetector, first: Access, second: Access) -> bool:
    """Whether both accesses are by warps of one warpgroup."""
    one, other = first.warp(races), second.warp(races)
    return one is not None and other is not None and one // 4 == other // 4


def _never_committed(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The program issues MMAs and has no tcgen05.commit."""
    works = [access for access in (pair.first, pair.second) if access.kind == "mma"]
    instrs = (i for i in races.launch.program.by_row.values() if i.op == "tcgen05")
    if not works or any(i.mods[0] == "commit" for i in instrs):
        return None
    work = work_of(races, works[0].row)
    return Reason(CAUSES["by-thread"], f"no tcgen05.commit tells when this {work} is complete")


def _cause(races: RaceDetector, pair: AccessPair) -> Cause:
    """What is missing if no record says more: the wait before a read or a write."""
    if pair.space == "tmem" and "thread" in (pair.first.kind, pair.second.kind):  # a dealloc
        return CAUSES["freed-in-use"]
    reads = pair.first.verb == "write" and pair.second.verb == "read"
    return CAUSES["not-ready" if reads or unwritten_reads(races, pair) else "not-free"]


_DETECTORS: tuple[Callable[[Any, AccessPair], Reason | None], ...] = (  # the first that answers
    _never_committed,
    load_outside,
    one_memory,
    past_buffer,
    past_stage,
    shifted_loads,
    place_stays,
    wrong_peer,
    loaded_twice,
    loaded_too_soon,
    other_columns,
    sent_by_both,
    columns_stay,
    stage_handed_back_early,
    product_unwaited,
    arrives_for_readers,
    left_out,
    uncounted,
    slot_by_cta,
    cleared_unordered,
    by_thread,
    too_many,
    out_of_ring,
    freed_early,
    peers_unasked,
    other_slot,
    no_barrier,
    passed_at_once,
    _repaired,
    let_in_early,
    _nobody_waits,
    passed_again,
    one_too_many,
    handed_back_early,
    committed_early,
    overtaken,
    let_in_by_excess,
    arrival_unwaited,
)
