"""Pairs of accesses that nothing orders, built from the conflicts that the shadow look-ups record."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.async_work import Issued
from ptxsim.checks.race.meetings import Meeting, Meetings, sides
from ptxsim.checks.race.other_clusters import Told
from ptxsim.checks.race.shadow_order import (
    CODE,
    NO_FENCE_READ,
    NO_FENCE_WRITE,
    NO_TCGEN05_FENCE,
    OPEN_READ,
    OPEN_WRITE,
    POSITION,
    PREVIOUS_CLUSTER,
    READ_WRITE,
    SAME_VALUE,
    UNACQUIRED,
    UNORDERED,
    WRITE_READ,
    WRITE_WRITE,
)
from ptxsim.checks.race.wording import COPIES, coordinates, line_of, place_of_conflict
from ptxsim.checks.static_flow import way_without_barrier

VERBS = {  # code -> (what the earlier access did, what the later one does)
    WRITE_WRITE: ("write", "write"),
    WRITE_READ: ("write", "read"),
    READ_WRITE: ("read", "write"),
    NO_FENCE_READ: ("write", "read"),
    NO_FENCE_WRITE: ("write", "write"),
    NO_TCGEN05_FENCE: ("access", "access"),
    SAME_VALUE: ("write", "write"),
    OPEN_WRITE: ("write", "write"),
    OPEN_READ: ("write", "read"),
}
_SWAPPED = {WRITE_READ: READ_WRITE, READ_WRITE: WRITE_READ}  # the other codes hold for either order
_OTHERWISE = {WRITE_WRITE: WRITE_WRITE, **_SWAPPED}
for _more in (UNACQUIRED, UNORDERED):
    VERBS |= {_more + code: VERBS[code] for code in _OTHERWISE}
    _SWAPPED |= {_more + code: _more + swapped for code, swapped in _OTHERWISE.items()}


@dataclass
class AccessPair:
    """Two accesses that nothing orders; the first pair with a key represents all with that key."""

    code: int
    space: str  # "shared", "memory", "tmem"
    place: str  # name of the buffer, with the offset
    buffer: str  # name of the buffer alone
    first: Access
    second: Access
    key: tuple
    cta: int = 0
    elsewhere: int | None = None  # thread whose proxy fence came after the synchronisation
    waited: bool = True  # if first is asynchronous: whether its issuer has waited for it
    after_issue: bool = True  # if first is a bulk store: whether second comes after its issue
    count: int = 0
    issuers: list[int] = field(default_factory=list)  # several agents of a CTA issue the same line
    seen: dict = field(default_factory=dict)  # (warp, barrier) -> the warp's waits when the accesses met
    early: tuple | None = None  # (barrier, row) of a signal before the reading access was done
    issued: tuple[Issued | None, Issued | None] = None, None  # asynchronous work of the two
    at: int = -1  # steps on barriers so far, when the accesses met
    position: int = 0  # of the place, in the shadow
    told: Told | None = None  # of the cluster of the first, if it is another one, when they met
    relaxed: int | None = None  # row of a relaxed arrival at the cluster's barrier between the two
    each_time: Meetings = field(default_factory=Meetings)  # what held whenever they met

    @classmethod
    def of(cls, races, line: list[int], space: str, clock, detail) -> AccessPair:
        """The pair for a conflict that the shadows recorded: the known one with its key, or a new one."""
        (earlier, later), position = sides(line), line[POSITION]
        code, cluster = line[CODE], line[PREVIOUS_CLUSTER]
        (before, after), now = VERBS[code], races.history.now
        kind = races.clocks.kind_of(earlier.agent) if cluster in (0, now) else "other"
        first = Access(kind, *earlier, before, cluster)
        second = Access(races.clocks.kind_of(later.agent), *later, after, now)
        place, buffer, cta = place_of_conflict(races, space, position)
        lines = [line_of(races, row) for row in (earlier.row, later.row)]
        key = (code, first.kind, lines[0], second.kind, lines[1], buffer)
        known = races.history.pairs.get(key)
        meeting = Meeting.of(races, line, second.issuer(races, None, detail), detail, clock)
        if known is not None:
            known.each_time.note(races, meeting, space)
            if known.issuers:
                known.add_issuers(races, first.issuer(races, detail), meeting.by)
            if known.elsewhere is not None:  # the worst case counts: no fence at all
                known.elsewhere = _fenced_elsewhere(races, space, meeting)
            return known
        pair = cls(code, space, place, buffer, first, second, key, cta, position=position)
        pair.each_time.note(races, meeting, space)
        if first.kind == "other":
            pair.told = races.history.others.told_of(cluster)
        if code == NO_TCGEN05_FENCE:
            first.verb, second.verb = _tmem_verb(first, second), _tmem_verb(second, first)
        first.detail, second.detail = (coordinates(races, a, space, position) for a in (first, second))
        issued = _issued_first(races, first, detail) or _copied_first(races, pair)
        if issued or _stored_first(races, pair, detail):
            pair.first, pair.second, pair.code = second, first, _SWAPPED.get(code, code)
        pair.elsewhere = _fenced_elsewhere(races, space, meeting)
        pair.waited = has_waited(races, pair.first)
        pair.learn(races, first, second, meeting)
        if pair.first is second:
            pair.issued = pair.issued[1], pair.issued[0]
        since = _since_issue(races, pair, meeting.known)
        if not pair.waited and pair.first.kind == "wgmma":
            pair.waited = since is None or since <= 0
        pair.after_issue = pair.first.kind != "source" or since is None or since >= 0
        return pair

    @property
    def multiplies(self) -> bool:
        return not {"wgmma", "mma"}.isdisjoint((self.first.kind, self.second.kind))

    def learn(self, races, first: Access, second: Access, meeting: Meeting) -> None:
        """Records who issued the two, and what they had waited for and signalled when they met."""
        op, now = meeting.work, meeting.known
        here = first.kind != "other"  # of another cluster's work nothing is kept
        earlier = races.transfers.find(first.agent, first.epoch, first.row, op) if here else None
        self.issued, self.at = (earlier, op), len(races.clocks.steps)
        first.by, second.by = first.issuer(races, op), meeting.by
        self.relaxed = races.handshakes.met_relaxed(first.agent, first.epoch, second.warp(races))
        if None in (first.by, second.by):
            return
        warps = [races.clocks.warp_of(by) for by in (first.by, second.by)]
        histories = history_of(races.cluster).items()
        self.seen = {(w, p): replace(h.waits[w]) for p, h in histories for w in warps if w in h.waits}
        if _same_issue(races, first, second, earlier, op):
            self.issuers = sorted({first.by, second.by})
        if warps[0] != warps[1] and self.code in (WRITE_WRITE, WRITE_READ, READ_WRITE):
            then = earlier.clock if earlier is not None else None
            for access, other, work in ((second, then, op), (first, now, earlier)):
                reads = access.verb == "read" and access.kind != "bytes"
                if other is not None and (reads or access.kind == "st"):
                    guest = races.clocks.warp_of((first if access is second else second).by)
                    self.early = races.handshakes.handed_early(access.by, guest, other, work) or self.early
            if self.early is None and first.kind == "thread" and first.verb == "read" and now is not None:
                self.early = races.handshakes.handed_before(first, warps[1], now)

    def add_issuers(self, races, *agents: int | None) -> None:
        """Adds agents of the same CTA that issue this line too."""
        cta = self.issuers[0] // races.clocks.per_cta
        more = {a for a in agents if a is not None and a // races.clocks.per_cta == cta}
        self.issuers = sorted({*self.issuers, *more})


def _since_issue(races, pair: AccessPair, known) -> int | None:
    """Epochs of the first access's issuer between the issue and what the second access comes after, as far as
    it is `known`: 0 just after the issue, less if it may come before. None: it is not known. If a thread of a
    wgmma's own warpgroup makes the second access, the epochs are its own.
    """
    op, by = pair.issued[0], pair.second.by
    if op is None or by is None:
        return None
    issued = races.wgmma.known.get((op.queue, op.epoch))
    if issued is not None and races.wgmma.queue_of(by) == op.queue:
        return int(known[by]) - int(issued[by])
    return int(known[op.thread]) - int(op.clock[op.thread])


def _fenced_elsewhere(races, space: str, one: Meeting) -> int | None:
    """The thread whose proxy fence after the synchronisation takes the place of the writer's own, if any."""
    agent, epoch, _ = one.earlier
    if one.code not in (NO_FENCE_READ, NO_FENCE_WRITE) or one.known is None or agent >= races.clocks.threads:
        return None
    return races.fences.elsewhere(space, agent, epoch, one.known)


def _issued_first(races, first: Access, op) -> bool:
    """Whether the later access belongs to work that was issued before the other access's work."""
    earlier = races.transfers.find(first.agent, first.epoch, first.row) if first.kind in COPIES else None
    if op is None or earlier is None or earlier is op or op.kind not in ("mma", "load", "store"):
        return False
    return bool(earlier.clock[op.thread] >= op.clock[op.thread])


def _copied_first(races, pair: AccessPair) -> bool:
    """Whether a thread read what a cp.async writes only after its issue. Threads that run the same lines are
    in the same epoch at the same step: a reader in a later one, which knows of the issue, came later.
    """
    first, clocks = pair.first, races.clocks
    if (first.kind, pair.second.kind, pair.code) != ("thread", "cp.async", READ_WRITE):
        return False
    issuer = pair.second.agent - clocks.first_copy
    knows = clocks.clock[first.agent, issuer] >= pair.second.epoch
    return bool(knows and races.copies.last[first.agent] and first.epoch > pair.second.epoch)


def _stored_first(races, pair: AccessPair, op) -> bool:
    """Whether a thread wrote what a bulk store reads only after the store was issued: it issued the store
    itself, or it knows of the issue, and a barrier stands on every way from its write to the store.
    """
    first, kinds = pair.first, (pair.first.kind, pair.second.kind)
    if kinds != ("thread", "source") or pair.code != WRITE_READ or op is None:
        return False
    knows = races.clocks.clock[first.agent, op.thread] >= op.clock[op.thread]
    between = not way_without_barrier(races.launch.program, first.row, op.row)
    return first.agent == op.thread or bool(knows and between)


def _same_issue(races, first: Access, second: Access, earlier, op) -> bool:
    """Whether several threads of one CTA issue the same copy or MMA."""
    if first.by == second.by or first.kind != second.kind or first.kind not in (*COPIES, "mma"):
        return False
    if first.by // races.clocks.per_cta != second.by // races.clocks.per_cta:
        return False
    if line_of(races, first.row) != line_of(races, second.row):
        return False
    if first.kind == "mma":
        return True
    copies = [(w.copy.start, w.copy.offset) for w in (earlier, op) if w is not None and w.copy is not None]
    return len(copies) == 2 and copies[0] == copies[1]


def _tmem_verb(access: Access, other: Access) -> str:
    """What one side of a conflict in tensor memory did, as far as its instruction shows."""
    if access.kind == "mma":
        return "write" if other.kind == "ld" else "access"
    return {"ld": "read", "st": "write"}.get(access.kind, "access")


def has_waited(races, access: Access) -> bool:
    """Whether the issuer of a tcgen05.ld / st, a wgmma or a copy has waited for it; True for all others."""
    if access.kind not in ("ld", "st", "source", "result", "cp.async", "wgmma"):
        return True
    owner = races.clocks.queue(access.agent).owner
    agent = races.clocks.first_agent(owner) if access.kind in ("ld", "st", "wgmma") else owner
    if access.kind == "ld":  # the plain clock also knows of loads whose registers were read
        return bool(races.clocks.tcgen05_clock[agent, access.agent - races.clocks.threads] >= access.epoch)
    return bool(races.clocks.clock[agent, access.agent] >= access.epoch)
