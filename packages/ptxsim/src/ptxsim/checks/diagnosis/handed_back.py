"""A buffer that is handed on or back while it is still being stored or read."""

from __future__ import annotations

from dataclasses import replace

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.barrier_history import history_of, ring_of
from ptxsim.checks.diagnosis.carriers import carriers, own_signals
from ptxsim.checks.diagnosis.out_of_step import hands_back_more, newest_wait
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.diagnosis.unseen_arrival import arrives_alone, data_flow, others_waited
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.wording import UNITS, barrier_of, line_text, thread_of


def peers_unasked(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A load from another CTA overwrites what a warp reads: its thread has waited for its own CTA's barrier,
    on which nobody who reads here arrives; these arrive on the same barrier of their own CTA alone.
    """
    reader, load, per_cta = pair.first, pair.second, races.cluster.warps_per_cta
    warp, issuer = reader.warp(races), load.warp(races)
    if (reader.verb, load.kind) != ("read", "bytes") or warp is None or issuer is None:
        return None
    cta, other = warp // per_cta, issuer // per_cta
    handed = races.handshakes.handed_by(warp)
    if cta == other or any(rank != cta for rank, _ in handed):
        return None
    for place in handed:
        answer = other, place[1]
        if (issuer, answer) in pair.seen:
            names = {"name": barrier_of(races, place), "other": barrier_of(races, answer)}
            return reason("peers-unasked", line=line_text(races, handed[place].row), cta=other, **names)
    return None


def freed_early(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A buffer was passed on while it was still being read, by the very barrier that was waited for. Or
    tensor memory was, before tcgen05.wait::st.
    """
    if pair.early is not None and pair.first.kind == "st":
        place, row = pair.early
        return reason("stored-early", name=barrier_of(races, place), line=line_text(races, row))
    waited = pair.early is not None and newest_wait(races, pair)[1] == pair.early[0]
    return handed_back_early(races, pair) if waited else None


def let_in_early(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """The same, whatever was waited for last, if the reader waits for barriers that the writer signals."""
    both = (pair.first, pair.second)
    reader, writer = both if pair.second.verb == "write" else reversed(both)
    warp, histories = reader.warp(races), history_of(races.cluster)
    asks = any(p in histories and warp in histories[p].waits for p in own_signals(races, writer))
    return handed_back_early(races, pair) if asks else None


def handed_back_early(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A buffer was passed on while it was still being read."""
    if pair.early is None or pair.first.kind == "st":
        return None
    place, row = pair.early
    reader, writer = pair.first, pair.second
    if writer.verb == "read":
        reader, writer = writer, reader
    warp = reader.warp(races)
    more = hands_back_more(races, warp, place, own_signals(races, writer))
    if more is None and (reader.kind, writer.kind) == ("ld", "mma"):
        done = set(carriers(races, writer)[:1])  # nobody hands tensor memory back before it has been used
        more = hands_back_more(races, warp, place, done, in_advance=False)
    if more is not None:
        return more
    alone = arrives_alone(races, pair, place) if reader is pair.first and reader.kind == "thread" else None
    if alone is not None:
        return alone
    reading = UNITS.get(reader.kind, thread_of(races, reader.by))
    return reason("early", name=barrier_of(races, place), line=line_text(races, row), reader=reading)


def handed_to_others(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Others wait for the barrier by which a thread hands on what it has written, and hand on nothing to the
    thread that reads it.
    """
    flow, histories = data_flow(pair), history_of(races.cluster)
    if flow is None or not flow[0].kind == flow[1].kind == "thread":
        return None
    by = {w for warp, p in pair.seen if warp == flow[1].warp(races) for w in histories[p].signallers}
    places = sorted(own_signals(races, flow[0]) & histories.keys())
    apart = (place for place in places if not by & histories[place].waits.keys())
    told = next(((edge, p) for p in apart if (edge := others_waited(races, pair, p)) is not None), None)
    if told is None:
        return None
    ring = ring_of(histories, told[1], races.reporter.shared_array)
    waits = any(flow[1].warp(races) in histories[p].waits for p in ring)
    return told[0] if waits else replace(told[0], cause=CAUSES["never-waits"])
