"""A stuck cluster as a graph: groups of waiting threads, what they wait for, and who could release them.

`Model` is built once, when nothing can move any more; checks/diagnosis/deadlock/causes.py and
checks/diagnosis/deadlock/explain.py read it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from ptxsim.checks.barrier_history import BarrierHistory
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.deadlock.nameless import nameless_arrays
from ptxsim.checks.diagnosis.deadlock.polled import polled
from ptxsim.checks.diagnosis.deadlock.settled_branches import Guards
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.phrases import copies_of, load_unit, source_line, spot
from ptxsim.checks.static_flow import signal_rows
from ptxsim.events.views import Cluster
from ptxsim.jit import bytecode
from ptxsim.machine.endless import loop_around, only_asks
from ptxsim.machine.split import first_lane
from ptxsim.report.findings import Reporter, lanes_text
from ptxsim.units.barriers import barrier_of_cluster, barrier_of_cta

_JOBS = {
    "TMA": lambda i: i.op == "cp" and "mbarrier::complete_tx::bytes" in i.mods,
    "MMA": lambda i: i.op == "tcgen05" and i.mods[0] == "mma",
    "write-back": lambda i: i.op == "tcgen05" and i.mods[0] == "ld",
}
_VERBS = {"arrive": "arrives", "commit": "commits its MMAs", "load": "loads by TMA"}


@dataclass
class Helper:
    """A group that should end a wait."""

    what: str  # "WG1 warp 0 commits its MMAs (gemm.cu:812)"
    state: str  # what that agent is doing instead
    waiter: Waiter | None = None  # the group that it is in; None if it has ended
    done: bool = False  # it will never again come to the line that helps
    who: str = ""  # "WG1 warp 0"
    how: str = ""  # "arrive", "commit" or "load"
    line: str = ""  # "line 812"


@dataclass
class Waiter:
    """Threads of one CTA that are held at the same row and wait for the same thing."""

    cta: int
    row: int
    kind: str  # of cluster.Wait, or "poll"
    detail: dict
    lanes: dict[int, int] = field(default_factory=dict)  # warp of the cluster -> mask
    who: str = ""
    line: str = ""
    wants: str = ""  # "mma2tma[1], parity 0"
    state: str = ""  # "in phase 0, 0/1 arrived"
    helpers: list[Helper] = field(default_factory=list)

    @property
    def object(self) -> str:
        return self.wants.split(", parity")[0]

    @property
    def place(self) -> Any:
        """(CTA rank, offset) of the mbarrier that the group waits for; None for another wait."""
        return self.detail.get("place")


class Model:
    def __init__(self, cluster: Cluster, reporter: Reporter):
        self.cluster, self.reporter, self.program = cluster, reporter, cluster.program
        self.case = Case(cluster, reporter)
        self.histories = self.case.histories
        self.nameless = nameless_arrays(self.case)
        self.signal_rows = signal_rows(cluster.launch)
        self.signalled: dict[int, set[str]] = {}  # row -> arrays that it has signalled
        for place, history in self.histories.items():
            for _, _, row in history.sources:
                self.signalled.setdefault(row, set()).add(self.array(place[1]))
        self.guards = Guards(cluster)
        self._reach: dict[int, set[int]] = {}
        self.waiters = self._collect()
        for waiter in self.waiters:
            waiter.helpers = self._helpers(waiter)

    # ---- who waits ----

    def _collect(self) -> list[Waiter]:
        cluster = self.cluster
        found: dict = {}
        for g in range(len(cluster.split_table)):
            state = int(cluster.split_table[g, bytecode.SP_STATE])
            row = int(cluster.split_table[g, bytecode.SP_PC])
            if state == bytecode.FREE:
                continue
            wait = cluster.waits.get(g)
            if wait is not None and state == bytecode.BLOCKED:
                row = cluster.splits[g].row
            kind, detail = (wait.kind, wait.detail) if wait is not None else ("poll", {})
            warp = g // 32
            key = (warp // cluster.warps_per_cta, row, kind, str(wait.key) if wait is not None else "")
            waiter = found.setdefault(key, Waiter(key[0], row, kind, detail))
            waiter.lanes[warp] = waiter.lanes.get(warp, 0) | int(cluster.split_table[g, bytecode.SP_MASK])
        for waiter in found.values():
            if waiter.kind == "poll":
                warp, mask = next(iter(waiter.lanes.items()))
                word = polled(cluster, self.reporter, warp, first_lane(mask), waiter.row)
                waiter.detail = {"polled": word}
            waiter.who = self.role(waiter.lanes)
            waiter.line = self.reporter.line_text(self.program.instrs[waiter.row])
            waiter.wants, waiter.state = self._wants(waiter)
            waiter.who += self._job(waiter)
        return sorted(found.values(), key=lambda w: (w.cta, w.row))

    def role(self, lanes: dict[int, int]) -> str:
        return role(self.cluster, lanes)

    def _job(self, waiter: Waiter) -> str:
        """` (MMA)` and the like, for a group that has exactly one of these jobs still to do."""
        instrs = [self.program.instrs[row] for row in self.reach(waiter)]
        jobs = {name for name, job in _JOBS.items() if any(i is not None and job(i) for i in instrs)}
        return f" ({jobs.pop()})" if len(jobs) == 1 else ""

    def name(self, place: tuple[int, int]) -> str:
        text = self.reporter.shared_name(place[1])
        return f"{text} of CTA {place[0]}" if self.cluster.ctas > 1 else text

    def array(self, offset: int) -> str:
        return self.nameless.get(offset) or self.reporter.shared_buffer(offset)

    def _wants(self, waiter: Waiter) -> tuple[str, str]:
        cluster, detail = self.cluster, waiter.detail
        if waiter.kind == "mbarrier":
            barrier = cluster.mbarriers.get(waiter.place)
            if barrier is None:
                return self.name(waiter.place), "not initialised"
            arrived = f"{barrier.expected - barrier.pending}/{barrier.expected} arrived"
            missing = (
                f", {abs(barrier.tx)} B {'missing' if barrier.tx > 0 else 'too many'}" if barrier.tx else ""
            )
            wants = f"{self.name(waiter.place)}, parity {detail['parity']}"
            return wants, f"it is in phase {barrier.phase} (parity {barrier.phase & 1}), {arrived}{missing}"
        if waiter.kind == "bar":
            came = barrier_of_cta(cluster, waiter.cta, detail["number"]).arrived
            expected = detail["expected"] or cluster.cta_alive(waiter.cta)
            call = "bar.sync 0, " if detail["expected"] is None else "bar.sync, "
            return f"{call}CTA barrier {detail['number']}", f"{came} of {expected} threads arrived"
        if waiter.kind == "cluster":
            return "the barrier of the cluster (barrier.cluster)", f"missing: {self._absent_ctas()}"
        if waiter.kind == "tmem-alloc":
            return f"{detail['columns']} free columns of tensor memory (tcgen05.alloc)", ""
        if waiter.kind == "tmem-pair":
            return f"the peer CTA's {detail['what']}", ""
        if waiter.kind == "registers":
            return f"registers (setmaxnreg.inc {detail['count']})", ""
        if waiter.kind == "collective":
            return f"{self.lanes_wanted(waiter)} at {self._instruction(waiter.row)}", ""
        if waiter.kind == "wgmma":
            return "wgmma", f"{detail['pending']} instructions that not all four warps have issued"
        if waiter.kind == "group":
            return "its own copies", f"{detail.get('pending')} groups pending"
        if detail["polled"] is not None:
            return f"{detail['polled'].name} to change", detail["polled"].state
        return "something that never changes (it polls)", ""

    def missing_lanes(self, waiter: Waiter) -> int:
        """Mask of the lanes that have not yet reached the instruction of a "collective" wait."""
        return waiter.detail["members"] & ~waiter.detail["present"]

    def lanes_wanted(self, waiter: Waiter) -> str:
        missing = self.missing_lanes(waiter)
        return f"lane{'s' * (missing.bit_count() > 1)} {lanes_text(missing)} of its warp"

    def _instruction(self, row: int) -> str:
        """`elect.sync`, `bar.sync`, `tcgen05.ld`."""
        instr = self.program.instrs[row]
        return ".".join((instr.op, *instr.mods[:1]))

    def absent_warps(self, waiter: Waiter) -> set[int]:
        """Warps that have not yet issued the wgmma that a group waits for."""
        warp, count = next(iter(waiter.lanes)), self.cluster.warps_per_cta
        base = warp - warp % count % 4
        return set(range(base, base + 4)) - {part.where.warp for part in waiter.detail["parts"]}

    def _absent_ctas(self) -> str:
        barrier, alive = barrier_of_cluster(self.cluster), self.cluster.alive
        absent = []
        for cta in range(self.cluster.ctas):
            warps = range(cta * self.cluster.warps_per_cta, (cta + 1) * self.cluster.warps_per_cta)
            lanes = sum(barrier.missing(w, alive[w]).bit_count() for w in warps)
            if lanes:
                absent.append(f"{lanes} threads of CTA {cta}")
        return ", ".join(absent)

    # ---- who could help ----

    def reach(self, waiter: Waiter) -> set[int]:
        """Rows that a group may still execute once it is released."""
        if id(waiter) not in self._reach:
            rows = [self.guards.reach(waiter.row, warp, mask) for warp, mask in waiter.lanes.items()]
            self._reach[id(waiter)] = set().union(*rows)
        return self._reach[id(waiter)]

    def able(self, waiter: Waiter, rows: set[int], place: tuple[int, int]) -> set[int]:
        """Of rows that signal an array, those at which a group may still signal this element."""
        ahead = rows & self.reach(waiter)
        return ahead if waiter.cta == place[0] else {row for row in ahead if not self.at_home(row)}

    def at_home(self, row: int) -> bool:
        """Whether a row can only signal its own CTA: an mbarrier instruction not on .shared::cluster."""
        instr = self.program.instrs[row]
        return instr.op == "mbarrier" and "shared::cluster" not in instr.mods

    def rows_for(self, place: tuple[int, int]) -> set[int]:
        """Rows that signal barriers of the same array, by the program's text. Where the text gives only the
        buffer, which may hold several arrays, rows that have signalled other arrays alone do not count.
        """
        array, buffer = self.array(place[1]), self.reporter.shared_buffer(place[1])
        found = set()
        for row, offsets in self.signal_rows.items():
            bases = {self.reporter.shared_buffer(o) for o in offsets if o not in self.nameless}
            own = array in map(self.array, offsets)
            if own or (buffer in bases and array in self.signalled.get(row, {array})):
                found.add(row)
        return found

    def waiter_of(self, warp: int, mask: int) -> Waiter | None:
        """The group that these lanes are in, or that they wait for at a meeting point of their warp."""
        same = [w for w in self.waiters if warp in w.lanes]
        parked = same[0] if same and self.cluster.alive[warp] & mask else None
        return next((w for w in same if w.lanes[warp] & mask), parked)

    def _helpers(self, waiter: Waiter) -> list[Helper]:
        if waiter.kind == "mbarrier":
            return self._signallers(waiter)
        if waiter.kind == "bar":
            return [self._standing(w) for w in self._missing_at_bar(waiter)]
        if waiter.kind == "cluster":
            barrier, alive = barrier_of_cluster(self.cluster), self.cluster.alive
            absent = [
                w for w in self.waiters if any(barrier.missing(k, alive[k] & m) for k, m in w.lanes.items())
            ]
            return [self._standing(w) for w in absent]
        if waiter.kind == "wgmma":
            return [self._standing(w) for w in self.waiters if self.absent_warps(waiter) & set(w.lanes)]
        if waiter.kind in ("tmem-alloc", "tmem-pair", "collective"):
            return [self._standing(w) for w in self._blockers(waiter)]
        if (word := waiter.detail.get("polled")) is not None:
            first = word.writers - self.reach(waiter)  # what it does itself comes too late
            others = [w for w in self.waiters if w is not waiter]
            rows = [(w, word.writers if word.lock or word.by in w.lanes else first) for w in others]
            return [self._would(w, ahead, "write") for w, of in rows if (ahead := of & self.reach(w))]
        return []

    def _standing(self, other: Waiter) -> Helper:
        return Helper(other.who, f"{agree(other.who, 'waits')} for {other.object}", other)

    def _missing_at_bar(self, waiter: Waiter) -> list[Waiter]:
        number = waiter.detail["number"]
        here = {id(w) for w in self.waiters if w.kind == "bar" and w.detail["number"] == number}
        others = [w for w in self.waiters if w.cta == waiter.cta and id(w) not in here]
        if waiter.detail["expected"] is None:
            return others
        rows = {
            r
            for r, i in self.program.by_row.items()
            if i.op in ("bar", "barrier")
            and "cluster" not in i.mods
            and getattr(i.operands[0], "bits", number) == number
        }
        return [w for w in others if rows & self.reach(w)]

    def _blockers(self, waiter: Waiter) -> list[Waiter]:
        """Groups that hold tensor memory, or have not yet reached a pair's or a warp's joint instruction."""
        if waiter.kind == "collective":
            warp = next(iter(waiter.lanes))
            return [w for w in self.waiters if w is not waiter and warp in w.lanes]
        cta = waiter.cta ^ 1 if waiter.kind == "tmem-pair" else waiter.cta
        wanted = "dealloc" if waiter.kind == "tmem-alloc" else waiter.detail["what"].split(".")[1]
        work = self.program.by_row.items()
        rows = {r for r, i in work if i.op == "tcgen05" and i.mods[0] == wanted}
        return [w for w in self.waiters if w.cta == cta and w is not waiter and rows & self.reach(w)]

    def _signallers(self, waiter: Waiter) -> list[Helper]:
        """The threads that have signalled this barrier; if none of these will again, also those that, by the
        program's text, can.
        """
        history = self.histories.get(waiter.place)
        helpers = []
        for (how, row), lanes in self._sources(history).items():
            helpers += self._agents(how, row, lanes)
        if all(helper.done for helper in helpers):
            rows = self.rows_for(waiter.place)
            able = {id(w): self.able(w, rows, waiter.place) for w in self.waiters}
            others = [w for w in self.waiters if w is not waiter and able[id(w)]]
            others = others or ([] if helpers else [waiter])
            helpers += [self._would(w, able[id(w)]) for w in others if able[id(w)]]
        return _distinct(helpers)

    def _would(self, other: Waiter, rows: set[int], verb: str = "signal") -> Helper:
        what = f"{other.who} would {verb} it ({self.line(min(rows))})"
        return Helper(what, f"{agree(other.who, 'waits')} for {other.object}", other)

    def line(self, row: int) -> str:
        return source_line(self.program, row)

    def spot(self, row: int) -> Hashable:
        return spot(self.program, row)

    def in_one_loop(self, one: int, other: int) -> bool:
        first, last = sorted((one, other))
        return loop_around(self.program, first, last) != (first, last)

    def in_a_loop(self, row: int) -> bool:
        """Whether a wait is in a loop other than the one that only retries it."""
        first, last = loop_around(self.program, row, row)
        return not only_asks(self.program, row) or self.in_one_loop(max(first - 1, 0), last)

    def _sources(self, history: BarrierHistory | None) -> dict[tuple[str, int], dict[int, int]]:
        """(how, row) -> lanes by warp. Unrolled copies of one line count once, by their last row."""
        grouped: dict[tuple, tuple] = {}
        for (how, warp, row), signals in (history.sources if history else {}).items():
            key = (how, self.spot(row))
            lanes = grouped.get(key, (row, {}))[1]
            grouped[key] = row, lanes
            lanes[warp] = lanes.get(warp, 0) | signals.lanes
        return {(key[0], row): lanes for key, (row, lanes) in grouped.items()}

    def _agents(self, how: str, row: int, lanes: dict[int, int]) -> list[Helper]:
        line, rows = self.line(row), copies_of(self.program, row)
        unit = load_unit(self.program.instrs[row]) if how == "load" else ""
        verb = _VERBS[how] if unit in ("", "TMA load") else f"executes {unit}"
        by_waiter: dict[int, tuple] = {}
        for warp, mask in lanes.items():
            other = self.waiter_of(warp, mask)
            group = by_waiter.setdefault(
                id(other) if other else warp // self.cluster.warps_per_cta, (other, {})
            )
            group[1][warp] = mask
        helpers = []
        for other, mine in by_waiter.values():
            done = other is None or not rows & self.reach(other)
            who = self.role(mine)
            state = f"{agree(who, 'waits')} for {other.object}" if other else agree(who, "has ended")
            past = f"is past {'its loop' if any(self.in_one_loop(r, r) for r in rows) else 'that line'}"
            state = f"{agree(who, past)} and {state}" if other and done else state
            what = f"{who} {agree(who, verb)} ({line})"
            helpers.append(Helper(what, state, other, done, who, how, line))
        return helpers


def _distinct(helpers: list[Helper]) -> list[Helper]:
    return list({(h.what, h.state): h for h in helpers}.values())
