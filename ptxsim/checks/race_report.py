"""Turns pairs of unordered accesses into findings: both accesses, and the edge missing between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

from ptxsim.checks.proxies import SHARED
from ptxsim.checks.shadow import (
    AGENT,
    AGENT_SHIFT,
    CODE,
    EPOCH,
    EPOCH_MASK,
    EPOCH_SHIFT,
    NO_FENCE_READ,
    NO_FENCE_WRITE,
    NO_TCGEN05_FENCE,
    POSITION,
    PREVIOUS,
    PREVIOUS_CLUSTER,
    READ_WRITE,
    ROW,
    ROW_MASK,
    SAME_VALUE,
    WRITE_READ,
    WRITE_WRITE,
)
from ptxsim.checks.shadow_tmem import place_of

_VERBS = {  # code -> (what the earlier access did, what the later one does)
    WRITE_WRITE: ("write", "write"),
    WRITE_READ: ("write", "read"),
    READ_WRITE: ("read", "write"),
    NO_FENCE_READ: ("write", "read"),
    NO_FENCE_WRITE: ("write", "write"),
    NO_TCGEN05_FENCE: ("access", "access"),
    SAME_VALUE: ("write", "write"),
}
_SWAPPED = {
    WRITE_WRITE: WRITE_WRITE,
    WRITE_READ: READ_WRITE,
    READ_WRITE: WRITE_READ,
    NO_FENCE_READ: NO_FENCE_READ,
    NO_FENCE_WRITE: NO_FENCE_WRITE,
    NO_TCGEN05_FENCE: NO_TCGEN05_FENCE,
    SAME_VALUE: SAME_VALUE,
}
_COPIES = ("bytes", "source", "result")
_UNITS = {
    "bytes": "TMA load",
    "source": "TMA store",
    "result": "TMA store",
    "mma": "tensor core (tcgen05.mma)",
    "ld": "tcgen05.ld",
    "st": "tcgen05.st",
    "wgmma": "tensor core (wgmma)",
    "cp.async": "cp.async",
}


@dataclass
class Access:
    """One side of a pair."""

    kind: str  # "thread" or the kind of a queue
    agent: int
    epoch: int
    row: int
    verb: str
    cluster: int = 0  # number + 1
    detail: str = ""  # tensor and tile coordinates of a TMA copy


@dataclass
class Pair:
    """Two accesses that nothing orders; the first of its kind stands for all."""

    code: int
    space: str  # "shared", "memory", "tmem"
    place: str  # name of the buffer, with the offset
    buffer: str  # its name alone
    first: Access
    second: Access
    key: tuple
    cta: int = 0
    elsewhere: int | None = None  # thread whose proxy fence came behind the synchronisation
    waited: bool = True  # first is a tcgen05.ld / st or a bulk copy: has its issuer waited for it?
    count: int = 0
    evidence: dict = field(default_factory=dict)

    @classmethod
    def of(cls, races, line: list[int], space: str, clock, detail) -> Pair:
        """From a conflict as the shadows note it."""
        previous, position = line[PREVIOUS], line[POSITION]
        before, after = _VERBS[line[CODE]]
        agent, epoch, row = (
            previous >> AGENT_SHIFT,
            (previous >> EPOCH_SHIFT) & EPOCH_MASK,
            previous & ROW_MASK,
        )
        same = not line[PREVIOUS_CLUSTER] or line[PREVIOUS_CLUSTER] == races.now
        first = Access(
            races.kind_of(agent) if same else "other", agent, epoch, row, before, line[PREVIOUS_CLUSTER]
        )
        second = Access(races.kind_of(line[AGENT]), line[AGENT], line[EPOCH], line[ROW], after, races.now)
        place, buffer, cta = _place(races, space, position)
        key = (line[CODE], first.kind, _line(races, row), second.kind, _line(races, line[ROW]), buffer)
        known = races.pairs.get(key)
        if known is not None:
            return known
        pair = cls(line[CODE], space, place, buffer, first, second, key, cta)
        if line[CODE] == NO_TCGEN05_FENCE:
            first.verb, second.verb = _tmem_verb(first, second), _tmem_verb(second, first)
        first.detail, second.detail = (_coordinates(races, a) for a in (first, second))
        if _issued_first(races, first, second, detail):
            pair.first, pair.second, pair.code = second, first, _SWAPPED[line[CODE]]
        pair.elsewhere = races.fenced_elsewhere(space, line, clock)
        pair.waited = _has_waited(races, pair.first)
        return pair


def _issued_first(races, first: Access, second: Access, op) -> bool:
    """Did the access that came later belong to work that was issued before the other's?"""
    earlier = races.transfer_of(first.agent, first.epoch, first.row) if first.kind in _COPIES else None
    if op is None or earlier is None or earlier is op or op.kind not in ("mma", "load", "store"):
        return False
    return bool(earlier.clock[op.thread] >= op.clock[op.thread])


def _tmem_verb(access: Access, other: Access) -> str:
    """What one side of a conflict in tensor memory did, as far as its instruction tells."""
    if access.kind == "mma":
        return "write" if other.kind == "ld" else "access"
    return {"ld": "read", "st": "write"}.get(access.kind, "access")


def _has_waited(races, access: Access) -> bool:
    """Has the issuer of a tcgen05.ld / st or a bulk copy waited for its completion?"""
    if access.kind not in ("ld", "st", "source", "result"):
        return True
    owner = races.agent(access.agent).owner
    row = owner * 32 // races.lanes if access.kind in ("ld", "st") else owner
    return bool(races.clocks[row, access.agent] >= access.epoch)


def report(races, pairs: dict[tuple, Pair]) -> None:
    """Adds a finding per pair, and one for tcgen05.ld / st that nothing waits for."""
    for kind, warp, op in races.never_waited():
        who = f"warp {warp % races.cluster.warps_per_cta}"
        message = (
            f"tensor memory: nothing waits for tcgen05.{kind} by {who}: no tcgen05.wait::{kind} behind it"
        )
        access = Access(kind, op.queue, op.epoch, op.row, "access")
        hint = (
            f"tcgen05.{kind} is asynchronous: wait::{kind} before its registers are used or TMEM is handed on"
        )
        races.reporter.add("race", "error", message, hint, _split(races, access), ("never", kind))
    for pair in sorted(pairs.values(), key=_weight):
        if _without_barrier(races, pair):
            continue
        kind, severity = _class(pair)
        edge = _missing(races, pair)
        both = f"{_text(races, pair.second)} and {_text(races, pair.first)}"
        what = f"{pair.place}: {both} are not ordered: {edge}"
        if kind == "proxy-fence":
            what = (
                f"{pair.place}: {_text(races, pair.second)} may miss what {_text(races, pair.first)}: {edge}"
            )
        elif severity == "review":
            what = f"{pair.place}: {_text(races, pair.second)} after {_text(races, pair.first)}: {edge}"
        evidence = {
            "place": pair.place,
            "missing": edge,
            "first": _side(races, pair.first),
            "second": _side(races, pair.second),
        }
        finding = races.reporter.add(
            kind, severity, what, _hint(pair), _split(races, pair.second), pair.key, **evidence
        )
        finding.count += pair.count - 1
        if (kind, severity) == ("race", "error"):
            _drop_consequence(races, pair)


def _without_barrier(races, pair: Pair) -> bool:
    """Does a load report to a barrier that nobody initialised? Then that is the finding, not its races."""
    loads = [races.agent(a.agent).owner for a in (pair.first, pair.second) if a.kind == "bytes"]
    return any(p not in races.signals or races.signals[p].initialised is None for p in loads)


def _drop_consequence(races, pair: Pair) -> None:
    """Who reads what another one has not written yet reads unwritten memory; the race says it all."""
    read = next((a for a in (pair.first, pair.second) if a.verb == "read"), None)
    if read is None:
        return
    found = races.reporter.found
    for identity, finding in list(found.items()):
        line = finding.where.get("line") or ("ptx", finding.where.get("ptx_line"))
        buffer = finding.evidence.get("buffer")
        if finding.kind == "uninitialized" and (line, buffer) == (_line(races, read.row), pair.buffer):
            del found[identity]


def _weight(pair: Pair) -> tuple:
    """Order of report: races before fences, shared memory before its consequences in tensor and global
    memory.
    """
    return (pair.code > READ_WRITE, ("shared", "tmem", "memory").index(pair.space), -pair.count)


def _class(pair: Pair) -> tuple[str, str]:
    if pair.code in (NO_FENCE_READ, NO_FENCE_WRITE):
        strict = (
            pair.code == NO_FENCE_READ and pair.second.kind not in ("mma", "wgmma") and pair.elsewhere is None
        )
        return "proxy-fence", "error" if strict else "review"
    return "race", "review" if pair.code in (NO_TCGEN05_FENCE, SAME_VALUE) else "error"


# ---- the missing edge ----


def _missing(races, pair: Pair) -> str:
    first, second = pair.first, pair.second
    if pair.code in (NO_FENCE_READ, NO_FENCE_WRITE):
        if pair.elsewhere is not None:
            return (
                "fence.proxy.async was executed behind the barrier, not by the threads that write before it"
            )
        where = "shared::cta" if pair.space == "shared" else "global"
        return f"no fence.proxy.async for .{where} between the write and the barrier"
    if pair.code == NO_TCGEN05_FENCE:
        if first.kind == "mma":  # its commit includes the other fence
            later = _UNITS.get(second.kind, "what comes later")
            return f"no tcgen05.fence::after_thread_sync between the wait and {later}"
        return "their synchronisation has no tcgen05.fence::before_thread_sync / after_thread_sync pair"
    if pair.code == SAME_VALUE:
        return "no barrier between them, but both write the same value"
    if first.kind == "other":
        return "they are in different clusters of the grid"
    if first.kind in ("ld", "st") and not pair.waited:
        return f"its warp has not executed tcgen05.wait::{first.kind}"
    if not pair.waited:
        return "its thread has not waited for it (cp.async.bulk.commit_group, then wait_group)"
    forward, backward = _carriers(races, first), _carriers(races, second)
    ignored = _never_waited_for(races)
    unused = [p for p in forward + backward if not races.signals[p].waits] or (
        ignored if _is_queue(first) else []
    )
    own = [races.agent(first.agent).owner] if first.kind == "bytes" else []
    chosen = (unused or own or (forward if _is_queue(first) else []) or [None])[0]
    if chosen is not None:
        return f"{_barrier(races, chosen)} was not waited for"
    if second.kind == "mma" and backward:
        return f"no barrier between them, nor was {_barrier(races, backward[0])} waited for"
    return "no barrier between them"


def _is_queue(access: Access) -> bool:
    return access.kind in ("bytes", "mma", "ld")


def _never_waited_for(races) -> list[tuple[int, int]]:
    """Initialised barriers of a name that no thread of the cluster has waited for, at any index."""
    places = [p for p, s in races.signals.items() if s.initialised is not None]
    names = {p: races.reporter.shared_name(p[1]).partition("[") for p in places}
    awaited = {names[p][0] for p in places if races.signals[p].waits}
    return [p for p in places if names[p][1] and names[p][0] not in awaited]


def _carriers(races, access: Access) -> list[tuple[int, int]]:
    """mbarriers that hand on an access, the first to do so first; commits before what came of them."""
    if access.kind == "other":
        return []
    planned = sorted((at, p) for at, p in races.commits.get(access.agent, ()) if at >= access.epoch)
    found = []
    for place, signal in races.signals.items():
        if signal.initialised is not None and signal.gathered is not None:
            clock = signal.gathered.clock
            at = int(clock[access.agent]) if access.agent < len(clock) else 0
            if at >= access.epoch:
                found.append((at, place))
    return [place for _, place in planned + sorted(found) if place in races.signals]


def _barrier(races, place: tuple[int, int]) -> str:
    name = races.reporter.shared_name(place[1])
    return f"{name} of CTA {place[0]}" if races.cluster.ctas > 1 else name


def _hint(pair: Pair) -> str:
    if pair.code in (NO_FENCE_READ, NO_FENCE_WRITE):
        return (
            "every thread that writes runs fence.proxy_async after its writes; "
            "then the barrier, then TMA or MMA"
        )
    if pair.code == NO_TCGEN05_FENCE:
        return "tensor memory is handed over by before_thread_sync, the barrier, after_thread_sync"
    if pair.first.verb == "write" and pair.second.verb == "read":
        return "who reads waits for the barrier that says that the data is there"
    return "who overwrites a buffer waits for the barrier that says that it is free"


# ---- texts ----


def _text(races, access: Access) -> str:
    row = _instr(races, access.row)
    line = (
        f" (line {row.src})"
        if row is not None and row.src
        else f" (PTX line {row.line})"
        if row is not None
        else ""
    )
    if access.kind == "thread":
        verb = "dealloc" if row is not None and row.mods[:1] == ("dealloc",) else access.verb
        return f"the {verb} by {_thread(races, access.agent)}{line}"
    if access.kind == "other":
        return f"the {access.verb} by cluster {access.cluster - 1}{line}"
    return f"the {access.verb} by {_UNITS[access.kind]}{access.detail}{line}"


def _thread(races, agent: int) -> str:
    per_cta = races.cluster.warps_per_cta * 32 // races.lanes
    cta, inside = divmod(agent, per_cta)
    if races.lanes > 1:
        return f"warp {inside} of CTA {cta}"
    owner = f" of CTA {cta}" if races.cluster.ctas > 1 else ""
    return f"thread {inside}{owner}"


def _side(races, access: Access) -> dict:
    row = _instr(races, access.row)
    side = {"what": _text(races, access), "kind": access.kind, "verb": access.verb}
    if row is not None:
        side |= {"line": row.src, "ptx_line": row.line, "ptx": row.text}
    return side


def _instr(races, row: int):
    return races.launch.program.instrs[row]


def _line(races, row: int):
    instr = _instr(races, row)
    return (instr.src or ("ptx", instr.line)) if instr is not None else row


def _coordinates(races, access: Access) -> str:
    if access.kind not in _COPIES:
        return ""
    op = races.transfer_of(access.agent, access.epoch, access.row)
    if op is None or op.tmap is None:
        return ""
    name = f" of {op.tmap.name}" if op.tmap.name else ""
    return f"{name} at {op.start}"


def _place(races, space: str, position: int) -> tuple[str, str, int]:
    """(place, buffer, CTA rank)."""
    if space == "tmem":
        rank, lane, column = place_of(position)
        where = f" of CTA {rank}" if races.cluster.ctas > 1 else ""
        return f"tensor memory{where}, column {column}, lane {lane}", "tensor memory", rank
    if space == SHARED:
        rank, offset = divmod(position, races.window)
        name = races.reporter.shared_name(offset)
        where = f" of CTA {rank}" if races.cluster.ctas > 1 else ""
        return name + where, name.split(" + ")[0], rank
    for base, end, start in races.segments.tolist():
        if start <= position < start + end - base:
            name = races.launch.memory.describe(base + position - start)
            return name, name.split(" + ")[0], 0
    return "global memory", "global memory", 0


def _split(races, access: Access):
    """Something a Reporter can place: the issuer of the later access."""
    agent, cluster = access.agent, races.cluster
    if access.kind == "thread":
        thread = agent * races.lanes
    else:
        owner = races.agent(agent).owner
        thread = (
            owner * 32
            if access.kind in ("ld", "st")
            else owner * races.lanes
            if isinstance(owner, int)
            else 0
        )
        op = races.transfer_of(agent, access.epoch, access.row) if access.kind == "bytes" else None
        thread = op.thread * races.lanes if op is not None else thread
    warp = thread // 32
    mask = 0xFFFF_FFFF if access.kind in ("ld", "st") or races.lanes > 1 else 1 << thread % 32
    return SimpleNamespace(
        cluster=cluster, cta=warp // cluster.warps_per_cta, warp=warp, mask=mask, row=access.row
    )
