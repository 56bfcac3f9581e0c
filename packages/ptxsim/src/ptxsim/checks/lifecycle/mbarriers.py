"""Life cycle of mbarriers: waits that cannot do what they should, phases left open or unseen at the end.

Rules (PTX ISA 9.7.13.15): a parity wait only distinguishes the current phase from the one before, so a
barrier may not get two phases ahead of a thread that waits on it; a phase completes when all its arrivals and
all its bytes are there; a thread that starts a copy must see it complete before the CTA ends.
"""

from __future__ import annotations

import functools
from operator import or_

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause
from ptxsim.checks.barrier_history import BarrierHistory
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.deadlock.missing_bytes import loads_of_each_place, loads_to_come
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model
from ptxsim.checks.diagnosis.excess_arrivals import (
    announced_apart,
    announced_too_often,
    from_several_ctas,
    issuers,
)
from ptxsim.checks.diagnosis.never_arrives import never_arrives
from ptxsim.checks.diagnosis.number_agreement import role
from ptxsim.checks.diagnosis.ring_walk import waits_stay
from ptxsim.checks.diagnosis.running_ahead import why
from ptxsim.checks.phrases import line_of, some_of, source_line, times
from ptxsim.events.observer import Observer
from ptxsim.events.records import PhaseWait, Place
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.lowering.emit import Program
from ptxsim.report.findings import Finding, Reporter


class Barriers(Observer):
    """Comes before History in the list of observers, because it compares a wait with what was seen before."""

    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        self.case = Case(cluster, self.reporter)
        self.histories = self.case.histories
        self.ahead: dict[tuple, Finding] = {}  # barrier that runs ahead -> its finding
        self.places: dict[tuple, bytes] = {}  # barrier -> its memory after mbarrier.init
        self.wrong = False  # before the end, an error was found
        self.exceeded: dict[Place, tuple[Split, str]] = {}  # the first arrivals at once beyond its phase

    def _name(self, place) -> str:
        return f"{self.reporter.shared_name(place[1])} of CTA {place[0]}"

    # ---- while it runs ----

    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place) -> None:
        self.places[place] = _memory(cluster, place)

    def mbarrier_exceeded(self, cluster: Cluster, split: Split, place: Place, arrivals: int) -> None:
        barrier = cluster.mbarriers[place]
        text = (
            f"{arrivals} arrivals come by one instruction when phase {barrier.phase} lacks {barrier.pending} "
            f"of its {barrier.expected}: an H200 ends the launch there (unspecified launch failure)"
        )
        self.exceeded.setdefault(place, (split.at(), text))

    def mbarrier_blocked(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        place, parity = wait.place, wait.parity
        history, barrier = self.histories.get(place), cluster.mbarriers[place]
        missed = barrier.phase - 2  # the phase of this parity that completed last
        if history is None or missed < 0 or history.seen >= missed:
            return
        message = (
            f"{self._name(place)} runs ahead: phases {history.seen + 1} to {barrier.phase - 1} completed "
            f"before the wait for phase {missed} could see it, and parity {parity} cannot tell phase "
            f"{missed} from phase {barrier.phase}"
        )
        for _ in range(wait.lanes.bit_count()):  # a finding counts threads
            finding = self._at(split, "mbarrier", ("ahead", place[1]), place, message, None)
            finding.evidence["ahead"] = True  # only an error if it has consequences (oddities.py)
            self.ahead.setdefault(place, finding)

    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        place = wait.place
        history, barrier = self.histories.get(place), cluster.mbarriers[place]
        if history is None or barrier.phase not in history.armed.values():
            return
        done = barrier.phase - 1
        armed = _lanes_at(history.armed, split.warp, barrier.phase)
        for _ in range((wait.lanes & armed & _lanes_at(history.passed, split.warp, done)).bit_count()):
            message = (
                f"the wait on {self._name(place)} does not wait: it asks again for phase {done} (parity "
                f"{done & 1}), which this thread has seen complete; what it started since belongs to phase "
                f"{barrier.phase}"
            )
            finding = self._at(split, "mbarrier", ("stale", place[1]), place, message, CAUSES["stale"])
            finding.evidence["ahead"] = True  # perhaps nobody relies on what was started

    def _at(self, split: Split, kind: str, key: tuple, place, message: str, cause: Cause | None) -> Finding:
        name = self.reporter.shared_name(place[1])
        return self.reporter.add(kind, "error", message, cause or "", split, key, barrier=name)

    # ---- at the end ----

    def finish(self, cluster: Cluster) -> None:
        for place, finding in self.ahead.items():
            if not finding.hint:
                reason = why(self.case, place)
                self.reporter.blame(finding, reason.cause, f"{finding.message}: {reason.text}")
                if reason.cause.id == "one-cta" and reason.row is not None:
                    finding.where = self.reporter.row_place(cluster, place[0], reason.row)
        if self.reporter.killed():
            return
        self._overwritten(cluster)
        self.wrong = self.reporter.verdict() == "error"
        for place, history in self.histories.items():
            if place in cluster.mbarriers:
                (self._bytes if cluster.stuck else self._left_open)(cluster, place, history)

    def _overwritten(self, cluster: Cluster) -> None:
        """Reports mbarriers whose memory was used for anything else before mbarrier.inval (9.7.13.15.10)."""
        for place, left in self.places.items():
            if place in cluster.mbarriers and _memory(cluster, place) != left:
                message = f"the 8 bytes of mbarrier {self._name(place)} are written to while it is in use"
                key = ("overwritten", place[1])
                self.reporter.add("mbarrier", "review", message, CAUSES["reused"], key=key)

    def _bytes(self, cluster: Cluster, place, history: BarrierHistory) -> None:
        """Reports a phase that has all its arrivals, but not its bytes."""
        barrier = cluster.mbarriers[place]
        if barrier.pending or not barrier.tx or loads_to_come(Model(cluster, self.reporter), place):
            return
        parts: dict[str, int] = {}
        for load in history.parts:
            buffer = self.reporter.shared_name(load.offset)
            parts[buffer] = parts.get(buffer, 0) + load.size
        terms = [f"{name} {size}" for name, size in parts.items()]
        detail = f" ({' + '.join(terms[:4])}{' + ...' if len(terms) > 4 else ''})" if terms else ""
        side = "too few" if barrier.tx > 0 else "too many"
        message = (
            f"{self._name(place)} expected {barrier.announced} B, TMA delivered {barrier.delivered} B"
            f"{detail}: {abs(barrier.tx)} B {side}, phase {barrier.phase} never completes"
        )
        both = announced_too_often(self.case, place) if barrier.tx > 0 else None
        left_out, of = self._bytes_left_out(cluster, place, history)
        message += f"; {both.text}" if both else left_out
        cause = both.cause if both else CAUSES[of]
        other = self._instead(cluster, place)
        if other is not None:
            tx = cluster.mbarriers[other].tx
            left = f"got {-tx} B that nobody announced" if tx < 0 else f"expects {tx} B that did not arrive"
            message += f"; {self._name(other)} {left}"
            cause = CAUSES["bytes-elsewhere" if barrier.delivered else "slot"]
        self._afterwards(cluster, "tx-count", "error", place, history, message, cause)

    def _bytes_left_out(self, cluster: Cluster, place, history: BarrierHistory) -> tuple[str, str]:
        """(text, cause id): who did not announce bytes, or did not load, although the code suggests it."""
        barrier = cluster.mbarriers[place]
        gone = sorted({load.cta for load in history.before} - {load.cta for load in history.parts})
        if not barrier.announced:
            return "; no arrive announced any: mbarrier.arrive.expect_tx does", "bytes-announced"
        each = loads_of_each_place(cluster, place, history)
        if each > 1:
            return f"; each of its copies came {times(each)} before the phase could end", "bytes-again"
        if barrier.tx > 0 and gone and history.parts:
            who = " and ".join(f"CTA {rank}" for rank in gone)
            return (
                f"; {who} loaded for the previous phase but not for this one: "
                "the CTAs of the cluster loop over different tiles, or different numbers of them"
            ), "cluster-parted"
        besides = _announced_besides(cluster, history) if barrier.tx > 0 else ""
        return besides, "announced-besides" if besides else "bytes-announced"

    def _instead(self, cluster: Cluster, place) -> Place | None:
        """Another element of its array that received bytes nobody announced to it, or that lacks the bytes
        that arrived here; or a barrier off by exactly the bytes that are missing.
        """
        array, missing = self.reporter.shared_array(place[1]), cluster.mbarriers[place].tx
        for other, barrier in cluster.mbarriers.items():
            same = self.reporter.shared_array(other[1]) == array or barrier.has_bytes_of(missing)
            if same and other[0] == place[0] and barrier.tx * missing < 0:
                return other
        return None

    def _left_open(self, cluster: Cluster, place, history: BarrierHistory) -> None:
        barrier = cluster.mbarriers[place]
        some_arrived = 0 < barrier.pending < barrier.expected
        if barrier.tx < 0:
            message = (
                f"{self._name(place)}: TMA delivered {-barrier.tx} B more than it was told to expect "
                f"(phase {barrier.phase}): a wait returns before its bytes are there, or never"
            )
            self._afterwards(cluster, "tx-count", "error", place, history, message, CAUSES["bytes-announced"])
        elif history.bytes_phase > history.seen:
            copies = history.parts or history.before
            names = list(dict.fromkeys(self.reporter.shared_name(load.offset) for load in copies))
            buffers = some_of(names) or "a buffer"
            state = f"{barrier.tx} B are outstanding" if barrier.tx else "nobody waits for it"
            waits = f"waited for up to phase {history.seen}" if history.seen >= 0 else "never waited for"
            message = (
                f"a TMA load of {buffers} on {self._name(place)} is in flight when the kernel ends: {state} "
                f"(phase {max(history.bytes_phase, 0)}; {waits}). It may write "
                f"shared memory after the CTA has gone"
            )
            stays = waits_stay(self.case, place)
            message += f"; {stays.text}" if stays else ""
            cause = stays.cause if stays else CAUSES["unseen-load"]
            self._afterwards(cluster, "async-pending", "error", place, history, message, cause, stays)
        elif some_arrived and _threads_a_round(cluster.program, history):
            self._drifts(cluster, place, history)
        elif place in self.exceeded and not self.wrong:  # otherwise, what else comes of it says more
            self._exceeded(place)
        elif barrier.tx or (some_arrived and not _only_waiters_missing(barrier, history)):
            message = (
                f"{self._name(place)} is left in the middle of phase {barrier.phase}: "
                f"{barrier.expected - barrier.pending} of {barrier.expected} arrivals came"
            )
            if barrier.tx:
                message += f", and no copy brought the {barrier.tx} B that it was told to expect"
            both = from_several_ctas(self.case, place) or announced_apart(self.case, place)
            both = both or never_arrives(self.case, place)
            message += f"; {both.text}" if both else ""
            cause = both.cause if both else CAUSES["left-open"]
            self._afterwards(cluster, "mbarrier", "review", place, history, message, cause, both)

    def _exceeded(self, place: Place) -> None:
        """Reports arrivals that a chip does not carry over to the next phase."""
        where, text = self.exceeded[place]
        reason = issuers(self.case, place)
        message = f"{self._name(place)}: {text}" + (f"; {reason.text}" if reason else "")
        key = "exceeded", self.reporter.shared_array(place[1])
        self._at(where, "mbarrier", key, place, message, reason.cause if reason else CAUSES["arrivals"])

    def _drifts(self, cluster: Cluster, place, history: BarrierHistory) -> None:
        """Reports a barrier on which more threads arrive in each round than it counts, and no multiple of
        its count.
        """
        threads, barrier = _threads_a_round(cluster.program, history), cluster.mbarriers[place]
        message = (
            f"{self._name(place)}: {threads} threads arrive in each round, and init({history.count}) "
            f"lets {history.count} complete a phase: each round leaves {threads % history.count} to the next "
            f"({barrier.expected - barrier.pending} at the end), until a wait passes before all have arrived"
        )
        self._afterwards(cluster, "mbarrier", "error", place, history, message, CAUSES["arrivals"])

    def _afterwards(
        self,
        cluster: Cluster,
        kind: str,
        severity: str,
        place,
        history,
        message: str,
        cause: Cause,
        reason=None,
    ) -> None:
        """Adds a finding at the line of the last load or arrival, else of the init; if it is about bytes,
        at the line that announces them.
        """
        copies = history.parts or history.before
        row = copies[-1].row if copies else next((r for _, _, r in reversed(history.sources)), history.row)
        if reason is not None:
            row = reason.row
        elif kind == "tx-count":
            row = next((r for r in _announcing(history)), row)
        name = self.reporter.shared_name(place[1])
        array = name.split("[")[0] if self.reporter.knows(place[1]) else row  # the stages of one ring
        at = cluster, place[0], row
        self.reporter.add(kind, severity, message, cause, key=(kind, array), at=at, barrier=name)


def _only_waiters_missing(barrier, history: BarrierHistory) -> bool:
    """Whether the open phase lacks exactly the arrivals of threads that wait for the barrier themselves.

    A thread that arrives and then waits (`b.wait(b.arrive())`) stops doing both when it needs no further
    phase. The other threads have arrived as in the phase before.
    """
    own = [signals for (_, warp, _), signals in history.sources.items() if warp in history.waits]
    if any(signals.phase == barrier.phase for signals in own):
        return False
    last = (signals.now * signals.makes for signals in own if signals.phase == barrier.phase - 1)
    return barrier.phase > 0 and sum(last) == barrier.pending


def _threads_a_round(program: Program, history: BarrierHistory) -> int:
    """Number of threads that arrive equally often, by one line, if it exceeds the count and is no multiple
    of it; else 0.
    """
    arrivals = {key: s for key, s in history.sources.items() if key[0] == "arrive"}
    lines = {line_of(program, row) for _, _, row in arrivals}
    threads = sum(s.lanes.bit_count() for s in arrivals.values())
    rounds = {s.total / s.lanes.bit_count() for s in arrivals.values()}
    if len(arrivals) < len(history.sources) or len(lines) != 1 or len(rounds) != 1 or min(rounds) < 2:
        return 0
    return threads if threads > history.count and threads % history.count else 0


def _lanes_at(phases: dict[tuple[int, int], int], warp: int, phase: int) -> int:
    """Lanes of a warp for which `phases` holds this phase."""
    return functools.reduce(or_, (lanes for (w, lanes), at in phases.items() if w == warp and at == phase), 0)


def _announcing(history: BarrierHistory) -> list[int]:
    """Rows that have announced bytes to the barrier."""
    return [row for (_, _, row), signals in history.sources.items() if signals.announces]


def _announced_besides(cluster: Cluster, history: BarrierHistory) -> str:
    """Text about a warp that announces bytes and loads nothing, while another one announces what it loads."""
    loaders = history.loaders
    own = {warp for (_, warp, _), signals in history.sources.items() if signals.announces and warp in loaders}
    for (_, warp, row), signals in history.sources.items():
        if signals.announces and own and warp not in loaders:
            who = role(cluster, {warp: signals.lanes})
            line = source_line(cluster.program, row)
            return f"; {who} announces bytes here, too ({line}), and loads nothing"
    return ""


def _memory(cluster: Cluster, place: tuple[int, int]) -> bytes:
    rank, offset = place
    return cluster.shared[rank, offset : offset + 8].tobytes()
