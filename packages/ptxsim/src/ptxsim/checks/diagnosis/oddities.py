"""Oddities that explain an error without being errors: barriers shared by different lines, empty commits.

Correct programs may do these things too. They become findings only where another check has found an error,
and are then reported before it.
"""

from __future__ import annotations

from collections.abc import Hashable

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause
from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.cta_barriers import CtaBarrier, cta_barriers
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model
from ptxsim.checks.diagnosis.excess_arrivals import again_too_early
from ptxsim.checks.diagnosis.exchanged_copies import exchanged_copies
from ptxsim.checks.diagnosis.in_a_row import twice_in_a_row
from ptxsim.checks.diagnosis.left_loop import left_loop
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.diagnosis.overruns import overruns
from ptxsim.checks.diagnosis.repairs import late_wait
from ptxsim.checks.diagnosis.rivals import one_slot, shifted
from ptxsim.checks.diagnosis.two_warps import role_in_two_warps
from ptxsim.checks.diagnosis.unseen_arrival import never_waits
from ptxsim.checks.phrases import source_line, spot
from ptxsim.checks.static_flow import reachable, signal_rows
from ptxsim.events.observer import Observer
from ptxsim.events.records import Commit
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.report.findings import Reporter

_REPAIRS = {
    "arrivals": (again_too_early,),
    "missed": (twice_in_a_row, shifted, one_slot),
}  # cause -> checks for another
_MMA = ("tcgen05", ("mma",))
_BAD_WAITS = "stale", "again", "again-ahead", "ahead-unwaited"
_AT_WAITS = "deadlock", "mbarrier"


class Oddities(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def start(self, cluster: Cluster) -> None:
        self.issuers: dict[int, int] = {}  # thread -> row of an MMA that it issued
        # line of a commit -> (row, thread, CTA) that had issued no MMA
        self.empty: dict[Hashable, tuple[int, int, int]] = {}

    # ---- events ----

    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        self.issuers[split.thread] = split.row

    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> None:
        if split.thread not in self.issuers:
            self.empty.setdefault(spot(cluster.program, split.row), (split.row, split.thread, split.cta))

    # ---- findings ----

    def finish(self, cluster: Cluster) -> None:
        self._without_consequence(cluster)
        self._rivals(cluster)
        self._late(cluster)
        self._freed_later()
        exchanged_copies(cluster, self.reporter)
        errors = {f.kind for f in self.reporter.by_identity.values() if f.severity == "error"}
        endless = any(f.evidence.get("cause") == "endless" for f in self.reporter.by_identity.values())
        if errors:
            self._in_a_buffer(cluster)
            self._waits_for_nothing()
        # warps in an endless loop explain the rest
        explained = not endless and bool(errors & CAUSES["shared-id"].explains)
        if explained or not errors:
            self._at_cta_barriers(cluster, explained)
        if not explained:
            return
        for line, (row, thread, cta) in self.empty.items() if _mma_matters(self.reporter) else ():
            if thread not in self.issuers and _mma_row(cluster) is not None:
                twice = role_in_two_warps(Case(cluster, self.reporter), thread, self.issuers)
                text = self._commit(cluster, thread) + (f"; {twice.text}" if twice is not None else "")
                cause = CAUSES["empty-commit"] if twice is None else twice.cause
                self._add(cluster, "mbarrier", cta, row, text, cause, ("commit", line))

        for finding in self.reporter.by_identity.values():
            if (
                finding.kind == "uninitialized"
                and finding.evidence.get("cause") in (None, "unwritten", "no-mma")
                and finding.where.get("warp") is not None
            ):
                self._not_ready(cluster, finding)
        self._outside(cluster)

    def _outside(self, cluster: Cluster) -> None:
        """Stages past the end of a barrier array."""
        for row, (array, size, place) in overruns(cluster, self.reporter.all_names()).items():
            cause, name = CAUSES["outside-array"], self.reporter.shared_name(place[1])
            line = source_line(cluster.program, row)
            text = cause.tell(array=array, size=size, line=line, name=name)
            finding = self.reporter.add("mbarrier", "error", text, cause, key=("overrun", array))
            finding.where = finding.where or {
                "cta": cluster.cta_ids[place[0]],
                "rank": place[0],
                "line": cluster.program.instrs[row].src,
            }

    def _in_a_buffer(self, cluster: Cluster) -> None:
        """Named barriers in memory that also belongs to a named buffer."""
        for rank, place in cluster.mbarriers:
            here = [name for name in self.reporter.names if name[2] <= place < name[2] + name[3]]
            array = next((name for name, kind, _, _ in here if kind == "uint64"), None)
            for buffer, kind, start, _ in here if array is not None else ():
                if kind != "uint64":
                    cause, row = CAUSES["shared-place"], history_of(cluster)[rank, place].row
                    text = cause.tell(name=array, buffer=buffer, offset=place - start)
                    self._add(cluster, "mbarrier", rank, row, text, cause, ("shared place",))
                    return

    def _waits_for_nothing(self) -> None:
        """A wait whose parity was never set, or whose result nobody looks at."""
        found = self.reporter.by_identity.values()
        waits = {f.where.get("line") for f in found if f.severity == "error" and f.kind in _AT_WAITS}
        for finding in found:
            if finding.evidence.get("cause") == "ignored-answer":
                finding.severity = "error"
            if finding.evidence.get("cause") == "unwritten-local" and finding.where.get("line") in waits:
                finding.severity, cause = "error", CAUSES["unset-parity"]
                self.reporter.blame(finding, cause, cause.tell(name=finding.evidence["name"]))

    def _late(self, cluster: Cluster) -> None:
        """A warp's instruction lacks lanes that are held up earlier: what holds them up is reported first."""
        model = None
        for finding in self.reporter.by_identity.values():
            if finding.kind != "collective" or "missing" not in finding.evidence:
                continue
            warp, missing, row = finding.evidence["missing"]
            if finding.where["cta"] != cluster.cta_ids[warp // cluster.warps_per_cta]:
                continue  # of another cluster
            self._role(cluster, finding, warp, missing, row)
            if not cluster.stuck:
                continue
            model = model or Model(cluster, self.reporter)
            held = [w for w in model.waiters if w.kind == "mbarrier" and w.lanes.get(warp, 0) & missing]
            if held and not {w.row for w in held} & reachable(cluster.program, row):
                finding.evidence["cause"] = "late"

    def _freed_later(self) -> None:
        """Columns may be freed in use because a wait for their product is missing or passes too early."""
        found = [one for one in self.reporter.by_identity.items() if one[1].severity == "error"]
        told = [f.evidence for _, f in found]
        sides = ({e[side]["kind"] for side in ("first", "second")} for e in told if "first" in e)
        if {"mma", "ld"} in sides or any(e.get("cause") in (*_BAD_WAITS, "freed") for e in told):
            for identity, finding in found:
                cause = finding.evidence.get("cause")
                if cause == "freed-early" or identity[1] == ("in use",) and cause != "freed":
                    finding.evidence["cause"] = "late"

    def _role(self, cluster: Cluster, finding, warp: int, missing: int, lacking: int) -> None:
        """The lanes that a warp's instruction lacks have issued loads or MMAs: they have another role. If
        several warps of their CTA issue the same work, that is reported first.
        """
        rank, found = finding.where["rank"], self.reporter.by_identity.values()
        sources = [s for history in history_of(cluster).values() for s in history.sources.items()]
        issued = [(how, row, s.lanes) for (how, w, row), s in sources if w == warp and how != "arrive"]
        for how, row, lanes in issued:
            if missing & ~lanes:
                continue
            warps = {w for (_, w, at), _ in sources if at == row and w // cluster.warps_per_cta == rank}
            if len(warps) > 1 and any(f.evidence.get("cause") == "issuers" for f in found):
                finding.evidence["cause"] = "late"
                return
            loop = left_loop(cluster, warp, missing, lacking, row)
            if loop:
                cause = CAUSES["left-loop"]
                self.reporter.blame(finding, cause, cause.tell(what=finding.message, loop=loop))
                return
            does = "loads by TMA" if how == "load" else "commits MMAs"
            facts = {"what": finding.message, "does": does, "line": source_line(cluster.program, row)}
            self.reporter.blame(finding, CAUSES["two-roles"], CAUSES["two-roles"].tell(**facts))
            return

    def _rivals(self, cluster: Cluster) -> None:
        """Replaces a cause that blames a count or the order of waits if the record shows another one."""
        for identity, finding in self.reporter.by_identity.items():
            cause, key = finding.evidence.get("cause", ""), identity[1]
            cta = finding.evidence.get("barrier_cta")
            for place in history_of(cluster) if cause in _REPAIRS and isinstance(key, tuple) else ():
                array = self.reporter.shared_array(place[1])
                if cta in (None, place[0]) and key[1] in (place[1], array):
                    checks = (check(Case(cluster, self.reporter), place) for check in _REPAIRS[cause])
                    found = next((one for one in checks if one is not None), None)
                    if found is not None:
                        self.reporter.blame(finding, found.cause, f"{finding.message}: {found.text}")
                        break

    def _without_consequence(self, cluster: Cluster) -> None:
        """A barrier that runs ahead of its waits, or a wait that passes twice, is an error if other findings
        show that a schedule goes wrong; if nothing came of it, only a count or a phase is odd. A wait that
        may come too late is reported only if nothing else is wrong in this run.
        """
        errors = [f for f in self.reporter.by_identity.values() if f.severity == "error"]
        ahead = [f for f in errors if f.evidence.get("ahead")]
        late = [key for key, f in self.reporter.by_identity.items() if f.evidence.get("cause") == "missed"]
        if len(late) + len(ahead) < len(errors):
            for key in late:
                del self.reporter.by_identity[key]
        if not cluster.stuck and len(ahead) == len(errors):
            for finding in ahead:
                finding.severity = "review"

    def _not_ready(self, cluster: Cluster, finding) -> None:
        """Why a buffer was read too early: a wait on a fresh barrier, or no MMA at all."""
        place = finding.where
        if cluster.cta_ids[place["rank"]] != place["cta"]:
            return  # of another cluster
        tmem = finding.evidence.get("buffer") == "tensor memory"
        warp = place["rank"] * cluster.warps_per_cta + place["warp"]
        bringers = self._arrays_of(cluster, "tcgen05" if tmem else "cp")
        for at, history in history_of(cluster).items():
            waits = history.waits.get(warp)
            brings = self.reporter.shared_array(at[1]) in bringers
            brings = brings or any(how == ("commit" if tmem else "load") for how, _, _ in history.sources)
            if waits is not None and waits.fresh is not None and brings:
                line = f" ({source_line(cluster.program, waits.fresh)})"
                cause = CAUSES["fresh-read"]
                text = cause.tell(name=self.reporter.shared_name(at[1]), line=line)
                self.reporter.blame(finding, cause, f"{finding.message}: {text}")
                return
        if finding.evidence.get("cause") == "no-mma":
            return
        own = self._brought(cluster, finding)
        facts = cluster, warp, own or bringers, self.reporter
        stored = finding.evidence.get("reader") == "a TMA store" and not own
        late = None if tmem or stored else late_wait(*facts) or never_waits(*facts)
        if late is not None:
            self.reporter.blame(finding, late.cause, f"{finding.message}: {late.text}")
            return
        mma = _mma_row(cluster)
        if tmem and not self.issuers and mma is not None:
            finding.message += f": no tcgen05.mma ({source_line(cluster.program, mma)}) ran in this cluster"

    def _brought(self, cluster: Cluster, finding) -> set[str]:
        """The barrier arrays of loads on record that fill part of the buffer that was read too early."""
        buffer, found = finding.evidence.get("buffer"), set()
        for place, history in history_of(cluster).items():
            loads = (load for load in (*history.parts, *history.before) if load.size)
            if any(self.reporter.shared_buffer(load.offset) == buffer for load in loads):
                found.add(self.reporter.shared_array(place[1]))
        return found

    def _arrays_of(self, cluster: Cluster, op: str) -> set[str]:
        """Barrier arrays that commits ("tcgen05") or copies ("cp") signal, by the program's text."""
        rows = signal_rows(cluster.launch)
        offsets = {o for row, found in rows.items() if cluster.program.instrs[row].op == op for o in found}
        known = {self.reporter.shared_array(place[1]) for place in history_of(cluster)}
        return {self.reporter.shared_array(offset) for offset in offsets} & known

    def _at_cta_barriers(self, cluster: Cluster, explained: bool) -> None:
        """Barriers to which threads give different counts, even if a phase ended so
        (research/chip/barrier_counts.cu); if that would explain an error, also those that groups share.
        """
        for (cta, number), meeting in cta_barriers(cluster).items():
            cause, row = CAUSES["shared-id"], next(reversed(meeting.warps))
            text = self._counts(cluster, number, meeting)
            if explained and not text:
                text = self._groups(cluster, cta, number, meeting)
            if explained and not text and number == 0 and meeting.mixed:
                text, row = self._partial(cluster, cta, meeting)
                cause = CAUSES["not-all-threads"]
            if text:
                self._add(cluster, "collective", cta, row, text, cause, ("bar", number))

    def _counts(self, cluster: Cluster, number: int, meeting: CtaBarrier) -> str:
        """`barrier 0 is used with 128 threads (line 860) and with all 256 (line 872)`."""
        if not meeting.clash:
            return ""
        whole = f"all {cluster.warps_per_cta * 32}"
        uses = [
            f"{'with ' + (whole if n is None else str(n)) + ' threads'} ({source_line(cluster.program, row)})"
            for n, row in meeting.counts.items()
        ]
        return (
            f"barrier {number} is used {' and '.join(uses)}: they take each other's arrivals, and an H200 "
            "stops there (illegal instruction)"
        )

    def _groups(self, cluster: Cluster, cta: int, number: int, meeting: CtaBarrier) -> str:
        """`WG0 and WG1 meet at the same barrier id 1 (128 threads)`."""
        (expected,) = meeting.counts if len(meeting.counts) == 1 else (None,)
        warps = set().union(*meeting.warps.values())
        if expected is None or expected <= 32 or len(warps) * 32 <= expected:  # one warp takes no other's
            return ""
        groups = sorted({w % cluster.warps_per_cta // 4 for w in warps})
        if len(groups) < 2:
            return ""
        names = " and ".join(f"WG{g}" for g in groups)
        line = source_line(cluster.program, next(iter(meeting.warps)))
        return (
            f"{names} meet at the same barrier id {number} ({expected} threads, {line}): "
            f"each counts the other's arrivals as its own"
        )

    def _partial(self, cluster: Cluster, cta: int, meeting: CtaBarrier) -> tuple[str, int]:
        """`only warp 0 comes to this bar.sync 0`, if it also comes to the one where the others are."""
        one, two = meeting.mixed
        few, many = sorted((one, two), key=lambda row: len(meeting.warps[row]))
        if not meeting.warps[few] < meeting.warps[many]:
            return "", few
        who = role(cluster, dict.fromkeys(meeting.warps[few], WHOLE_WARP))
        return (
            f"only {who} {agree(who, 'comes')} to this bar.sync 0: it meets the one at "
            f"{source_line(cluster.program, many)}, where the others are",
            few,
        )

    def _commit(self, cluster: Cluster, thread: int) -> str:
        warp = cluster.warps_per_cta * 32
        names = [f"thread {t % warp}" for t in sorted(self.issuers)[:3]]
        row = next(iter(self.issuers.values()), None)
        row = _mma_row(cluster) if row is None else row
        line = "" if row is None else f" ({source_line(cluster.program, row)})"
        others = f"{' and '.join(names)} issued them{line}" if names else f"another thread issues them{line}"
        return f"this tcgen05.commit by thread {thread % warp} covers no MMA: {others}"

    def _add(
        self, cluster: Cluster, kind: str, cta: int, row: int, text: str, cause: Cause, key: tuple
    ) -> None:
        finding = self.reporter.add(kind, "error", text, cause, key=key)
        finding.where = finding.where or self.reporter.row_place(cluster, cta, row)


def _mma_matters(reporter: Reporter) -> bool:
    """Whether a product that is not waited for can explain any of the errors. It cannot explain a race
    without an MMA: a thread without MMAs commits at once, perhaps on purpose (PTX ISA 9.7.16.9.4).
    """
    races = (f.evidence for f in reporter.by_identity.values() if f.severity == "error")
    sides = [{e[side]["kind"] for side in ("first", "second") if side in e} for e in races]
    return any(not kinds or "mma" in kinds for kinds in sides)


def _mma_row(cluster: Cluster) -> int | None:
    """The first tcgen05.mma in the program's text."""
    return next((r for r, i in cluster.program.by_row.items() if (i.op, i.mods[:1]) == _MMA), None)
