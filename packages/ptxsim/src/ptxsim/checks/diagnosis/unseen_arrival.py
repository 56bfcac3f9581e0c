"""Why a reader has not seen its data arrive although there is a barrier for it: its wait passed at once, only
other threads waited, or no CTA barrier separates threads that write from a unit that reads.
"""

from __future__ import annotations

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.barrier_history import held_waits, history_of, ring_of
from ptxsim.checks.diagnosis.deadlock.settled_branches import Guards
from ptxsim.checks.diagnosis.number_agreement import agree, of_first_cta, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import copies_of, some_of, source_line
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.shadow_bytes import WRITE
from ptxsim.checks.race.shadow_order import AGENT_SHIFT, ROW_MASK
from ptxsim.checks.race.wording import UNITS, barrier_of, line_of, line_text, thread_of
from ptxsim.checks.static_flow import reachable, way_without_barrier
from ptxsim.lowering.emit import Program
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.report.findings import Reporter

_ASYNC_READERS = ("mma", "wgmma", "source")


def data_flow(pair: AccessPair) -> tuple[Access, Access] | None:
    """(writer, reader) if one side writes what the other reads, else None."""
    sides = {a.verb: a for a in (pair.first, pair.second)}
    return (sides["write"], sides["read"]) if len(sides) == 2 and {"write", "read"} == set(sides) else None


def no_barrier(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Threads write shared memory, a unit reads it, and the program has a barrier-free path between them."""
    flow = data_flow(pair)
    if flow is None or pair.space != "shared":
        return None
    writer, reader = flow
    if writer.kind != "thread" or reader.kind not in _ASYNC_READERS:
        return None
    if not way_without_barrier(races.launch.program, writer.row, reader.row):
        return None
    unit, group = UNITS[reader.kind].partition(" (")[0], _warpgroup(races, writer, reader)
    return reason("no-group-sync", unit=unit, group=group) if group else reason("no-sync", unit=unit)


def cleared_unordered(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A thread that has not waited for anything yet writes where a load also writes, and the loading thread
    never reaches that line again: the thread's write is meant to come first.
    """
    both = zip((pair.first, pair.second), pair.issued, strict=True)
    sides = {access.kind: (access, op) for access, op in both}
    if sides.keys() != {"thread", "bytes"} or sides["thread"][0].verb != "write" or pair.space != "shared":
        return None
    (write, _), (load, op) = sides["thread"], sides["bytes"]
    warp, per_agent = write.warp(races), races.clocks.threads_per_agent
    if op is None or warp is None:
        return None
    waited = write is pair.second and any(w == warp for w, _ in pair.seen)
    if not waited and _tells_no_peer(races, warp, races.clocks.warp_of(op.thread)):
        return reason("cleared-by-owner", who=thread_of(races, write.by))
    if any(w == warp for w, _ in pair.seen):
        return None
    lanes = 1 << op.thread % 32 if per_agent == 1 else WHOLE_WARP
    if write.row in Guards(races.cluster).reach(load.row, races.clocks.warp_of(op.thread), lanes):
        return None
    line = source_line(races.launch.program, write.row)
    return reason("cleared-unordered", who=thread_of(races, write.by), line=line)


def _tells_no_peer(races: RaceDetector, warp: int, peer: int) -> bool:
    """Whether two warps are of different CTAs, and the first one's arrives on no barrier of another CTA."""
    cta, other = (w // races.cluster.warps_per_cta for w in (warp, peer))
    return cta != other and all(
        rank == cta
        for w, places in races.handshakes.handed.items()
        if w // races.cluster.warps_per_cta == cta
        for rank, _ in places
    )


def awaits_groups(program: Program) -> bool:
    """Whether threads wait for groups of cp.async anywhere."""
    return bool(_copies_with(program, "wait_group", "wait_all"))


def _copies_with(program: Program, *words: str) -> set[int]:
    """Rows of cp.async instructions, bulk ones apart, that have one of these modifiers."""
    mods = ((row, set(i.mods)) for row, i in program.by_row.items() if i.op == "cp")
    return {row for row, of in mods if "bulk" not in of and of & set(words)}


def groups_pending(program: Program, copy: Access, reader: Access) -> Reason:
    """A cp.async that its thread has not waited for; perhaps nothing waits for any copy."""
    waits = _copies_with(program, "wait_group", "wait_all")
    if not waits:
        if not _copies_with(program, "mbarrier"):
            return reason("no-wait-at-all")
        text = "no cp.async.mbarrier.arrive of its thread after it has let a wait pass"
        return Reason(CAUSES["not-ready"], text)
    if not _copies_with(program, "commit_group", "wait_all") & reachable(program, copy.row):
        return Reason(CAUSES["groups"], "it is in no group: no cp.async.commit_group comes after it")
    open_waits = (row for row in sorted(waits) if way_without_barrier(program, row, reader.row))
    row = next(open_waits, None) if reader.kind == "thread" and reader.by != copy.by else None
    if row is not None:
        line = source_line(program, row)
        return Reason(
            CAUSES["not-ready"], f"no barrier stands between its thread's wait ({line}) and this read"
        )
    text = "its thread has not waited for it (cp.async.wait_group leaves its group pending)"
    return Reason(CAUSES["groups"], text)


def unguarded(races: RaceDetector, pair: AccessPair, row: int) -> bool:
    """Whether threads of another warp may write after the wait for groups in this row, or in a copy of it
    that unrolling made, with no barrier between: the last wait that a barrier follows is an older one.
    """
    program, later = races.launch.program, pair.second.warp(races)
    if later is None or later == pair.first.warp(races) or pair.second.kind != "thread":
        return False
    return any(way_without_barrier(program, r, pair.second.row) for r in copies_of(program, row))


def stored_by_another_group(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Threads of one warpgroup write a buffer that a thread of another warpgroup stores by TMA."""
    writer, reader, per_cta = pair.first.warp(races), pair.second.warp(races), races.cluster.warps_per_cta
    if (pair.first.kind, pair.second.kind) != ("thread", "source") or writer is None or reader is None:
        return None
    (cta, one), (other_cta, other) = (group_of(races, warp) for warp in (writer, reader))
    if cta != other_cta or one == other:
        return None
    met = [
        {s.places for s in races.clocks.steps if s.kind == "bar" and s.warp == w} for w in (writer, reader)
    ]
    if any(number for ((_, number),) in met[0] & met[1]):  # they share a barrier other than barrier 0
        return None
    groups = ({cta * per_cta + 4 * group + n: WHOLE_WARP for n in range(4)} for group in (one, other))
    roles = [role(races.cluster, group) for group in groups]
    return reason("other-group", writer=roles[0], reader=roles[1], buffer=pair.buffer)


def group_of(races: RaceDetector, warp: int) -> tuple[int, int]:
    """(CTA, warpgroup within it) of a warp of the cluster."""
    cta, own = divmod(warp, races.cluster.warps_per_cta)
    return cta, own // 4


def _warpgroup(races: RaceDetector, writer, reader) -> str:
    """The warpgroup, if there are several, that alone writes at this line and issues the read; else ""."""
    warps = _writers(races, writer) | {writer.warp(races), reader.warp(races)}
    per_cta = races.cluster.warps_per_cta
    groups = {group_of(races, w) for w in warps if w is not None}
    if per_cta <= 4 or per_cta % 4 or len(groups) != 1 or None in warps:
        return ""
    return f"WG{groups.pop()[1]}"


def others_waited(
    races, pair: AccessPair, place: tuple[int, int], order: tuple[Access, Access] | None = None
) -> Reason | None:
    """Some thread waited for this barrier, but not those that read, or that make `order`'s later access."""
    flow, history = order or data_flow(pair), history_of(races.cluster).get(place)
    warp = flow[1].warp(races) if flow else None
    if flow is None or warp is None or history is None or not history.waits or warp in history.waits:
        return None
    if history.loaders:  # so a first wait with parity 1 is wrong
        for other, waits in history.waits.items():
            if waits.fresh is not None:
                line = line_text(races, waits.fresh)
                return reason("fresh", waits.fresh, other, name=barrier_of(races, place), line=line)
    per_cta = races.cluster.warps_per_cta
    cta, base = warp // per_cta, warp - warp % per_cta % 4
    whole = flow[1].kind == "ld" or order is not None
    group = range(base, min(base + 4, (cta + 1) * per_cta)) if whole else [warp]
    absent = role(races.cluster, dict.fromkeys([w for w in group if w not in history.waits], WHOLE_WARP))
    rows = {row for waits in history.waits.values() for row in waits.rows}
    lanes: dict[int, int] = {}
    for other, mask in history.passed:
        lanes[other] = lanes.get(other, 0) | mask
    waiter = role(races.cluster, of_first_cta(races.cluster, lanes))
    bare = any(way_without_barrier(races.launch.program, row, flow[1].row) for row in rows)
    return reason(
        "never-waits" if _waits_for_none(races, flow[0], warp, place) else "others-waited",
        name=barrier_of(races, place),
        absent=absent,
        waiter=waiter,
        line=line_text(races, min(rows)),
        bare=", and no bar.sync 0 follows" if bare else "",
    )


def arrives_for_readers(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """Tensor memory that a warpgroup reads is handed back on its behalf, before an MMA, by the same warpgroup
    of another CTA or by the MMA thread itself.
    """
    sides = {access.kind: access for access in (pair.first, pair.second)}
    if sides.keys() != {"ld", "mma"}:
        return None
    warp, issuer = (sides[kind].warp(races) for kind in ("ld", "mma"))
    per_cta = races.cluster.warps_per_cta
    if warp is None:
        return None
    cta, group = warp // per_cta, warp % per_cta // 4
    for place in (p for w, p in pair.seen if w == issuer):
        lanes, at_home = _arriving(races, place), _arriving_in_array(races, place)
        peers = all(w // per_cta != cta and w % per_cta // 4 == group for w in lanes)
        if lanes and warp not in at_home and (peers or set(lanes) == {issuer}):
            own = range(warp - warp % 4, warp - warp % 4 + 4)
            mine = role(races.cluster, dict.fromkeys(own, WHOLE_WARP))
            return reason(
                "arrives-alone", reader=mine, **_who_arrives(races, place, of_first_cta(races.cluster, lanes))
            )
    return None


def _arriving(races: RaceDetector, place: tuple[int, int]) -> dict[int, int]:
    """Warp -> its lanes that have arrived on this barrier, except those that announce bytes."""
    lanes: dict[int, int] = {}
    history = history_of(races.cluster).get(place)
    for (how, warp, _), signals in history.sources.items() if history else ():
        if how == "arrive" and not signals.announces:
            lanes[warp] = lanes.get(warp, 0) | signals.lanes
    return lanes


def _arriving_in_array(races: RaceDetector, place: tuple[int, int]) -> set[int]:
    """The warps that arrive on any element of the barrier's array, in any CTA."""
    array_of, histories = races.reporter.shared_array, history_of(races.cluster)
    array = array_of(place[1])
    return {warp for p in histories if array_of(p[1]) == array for warp in _arriving(races, p)}


def _who_arrives(races: RaceDetector, place: tuple[int, int], lanes: dict[int, int]) -> dict[str, str]:
    """Facts of the arrivals of some lanes on a barrier: its name, who arrives, and where."""
    sources = history_of(races.cluster)[place].sources
    row = next(row for how, warp, row in sources if how == "arrive" and warp in lanes)
    who = role(races.cluster, lanes)
    facts = {"who": who, "arrives": agree(who, "arrives"), "line": line_text(races, row)}
    return facts | {"name": barrier_of(races, place)}


def arrives_alone(races: RaceDetector, pair: AccessPair, place: tuple[int, int]) -> Reason | None:
    """The barrier that was waited for is signalled by some threads of the reader's warpgroup on behalf of
    all: nothing orders what the others read before.
    """
    first = pair.first
    warp, waits = first.warp(races), (pair.second.warp(races), place) in pair.seen
    if not waits or warp is None or first.by is None or first.verb != "read":
        return None
    lanes = {w: mask for w, mask in _arriving(races, place).items() if w // 4 == warp // 4}
    if not lanes or lanes.get(warp, 0) >> (first.by % 32) & 1:
        return None
    return reason("arrives-alone", reader=thread_of(races, first.by), **_who_arrives(races, place, lanes))


def left_out(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """A thread or a unit reads what a thread writes, and that reader or issuer has waited for an mbarrier on
    which other threads arrive that write at the same line (lanes of the same warp, or other warps), but not
    this thread.
    """
    flow = data_flow(pair)
    if flow is None or flow[0].kind not in ("thread", "cp.async") or pair.space != "shared":
        return None
    write, read = flow
    warp, issuer = write.warp(races), read.warp(races)
    if warp is None or issuer is None or write.by is None or read.kind not in ("thread", *_ASYNC_READERS):
        return None
    if issuer == warp and read.kind in ("source", "thread"):
        return None  # who stages a store itself waits for others at mbarriers
    for place in (p for w, p in pair.seen if w == issuer):
        lanes = _arriving(races, place)
        own, cause = {w: mask for w, mask in lanes.items() if w == warp}, "lane-for-warp"
        if not own and set(lanes.values()) == {WHOLE_WARP} and lanes.keys() & _writers(races, write):
            own, cause = lanes, "warp-left-out"
        if not own or own.get(warp, 0) >> (write.by % 32) & 1:
            continue
        return reason(cause, writer=thread_of(races, write.by), **_who_arrives(races, place, own))
    return None


def _writers(races: RaceDetector, write) -> set[int]:
    """The warps that have written shared memory at this row, as far as their writes are still the latest."""
    last = races.history.shared.records[:, WRITE]
    agents = np.unique(last[(last & ROW_MASK) == write.row] >> AGENT_SHIFT)
    return {races.clocks.warp_of(int(agent)) for agent in agents}


def never_waits(cluster, warp: int, arrays: set[str], reporter: Reporter) -> Reason | None:
    """A warp that waits for none of the barriers that loads signal, although others do."""
    rows: dict[int, int] = {}  # warp -> a row of its waits
    for place, history in history_of(cluster).items():
        if reporter.shared_array(place[1]) in arrays:
            rows |= {waiter: min(waits.rows) for waiter, waits in history.waits.items()}
    for waiter, row, place in held_waits(cluster):
        if reporter.shared_array(place[1]) in arrays:
            rows.setdefault(waiter, row)
    if not rows or warp in rows:
        return None
    return reason(
        "never-waits",
        absent=role(cluster, {warp: WHOLE_WARP}),
        name=some_of(sorted(arrays)),
        waiter=role(cluster, of_first_cta(cluster, dict.fromkeys(rows, WHOLE_WARP))),
        line=f" ({source_line(cluster.program, rows[min(rows)])})",
        bare="",
    )


def _waits_for_none(races: RaceDetector, written, warp: int, place: tuple[int, int]) -> bool:
    """Whether this warp has waited for no element of the array that the load of its data signals."""
    histories, array_of = history_of(races.cluster), races.reporter.shared_array
    ring = [histories[p] for p in ring_of(histories, place, array_of)]
    return written.kind == "bytes" and not any(warp in history.waits for history in ring)


def unwritten_reads(races: RaceDetector, pair: AccessPair) -> list:
    """Findings that the reading side got unwritten bytes: then it came too early, not too late."""
    line = next((line_of(races, a.row) for a in (pair.first, pair.second) if a.verb == "read"), None)
    return [
        identity
        for identity, finding in races.reporter.by_identity.items()
        if (finding.kind, finding.evidence.get("buffer")) == ("uninitialized", pair.buffer)
        and line is not None
        and (finding.where.get("line") or -finding.where.get("ptx_line", 0)) == line[1]
    ]
