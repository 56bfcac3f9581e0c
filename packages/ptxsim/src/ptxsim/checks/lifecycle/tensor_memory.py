"""Life cycle of tensor memory: who allocates and frees, reads before the first write, columns left allocated.

PTX ISA 9.7.16.5, .7: alloc, dealloc and relinquish are executed by one whole warp of a CTA, with
.cta_group::2 by one of each CTA of the pair; all tcgen05 instructions of a kernel use one .cta_group; all
columns must be freed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.last_commit import missed_commit
from ptxsim.checks.diagnosis.reason import reason
from ptxsim.checks.lifecycle.written_parts import told_of, written_parts
from ptxsim.checks.race.idle_results import IdleResults
from ptxsim.events.observer import Observer, observer_of
from ptxsim.events.records import TmemCells
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.frontend.ast import Instr
from ptxsim.lowering.emit import Program
from ptxsim.machine.tensor_memory import COLUMNS, LANES
from ptxsim.report.findings import Finding, Reporter

_ONE_WARP = "one warp, with all its 32 lanes, does alloc, relinquish_alloc_permit and dealloc"
_ONCE = (
    "allocate once, before the loop over tiles, and free after it; or free in each round what it allocates"
)
_ONE_GROUP = "alloc, relinquish_alloc_permit, dealloc, MMA and commit of a kernel use the same cta_group"
_REFUSALS = ("descriptor", "unsupported")  # kinds of findings of an MMA that writes nothing
_LANES = (
    "is M in the instruction descriptor that of the tile? D of M=64 takes 16 of each warp's 32 lanes (PTX "
    "ISA 9.7.16.10.5)"
)
_FILL = "fill these columns before the product, by a copy or by tcgen05.st, where the product reads them"
_READ = "wait until an MMA has written the accumulator; does the MMA write all columns that are read?"


@dataclass
class TmemAllocation:
    columns: int
    warp: int
    row: int
    group: int


class TmemLife(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.launch, self.reporter = launch, reporter

    def start(self, cluster: Cluster) -> None:
        self.live: list[dict[int, TmemAllocation]] = [{} for _ in range(cluster.ctas)]
        self.freed: list[set[int]] = [set() for _ in range(cluster.ctas)]  # cta_groups of the deallocs so far
        self.written = np.zeros((cluster.ctas, LANES, COLUMNS), bool)
        self.begun: dict[int, tuple] = {}  # thread -> its last MMA that overwrites: row, cells, descriptors
        self.in_use: Finding | None = None  # of a dealloc while an MMA writes
        self.multiplied = False  # whether any MMA has been issued
        self.holes = np.zeros_like(self.written)  # loaded, but not written
        self.hole: Split | None = None  # the first such load
        self.early: dict[int, tuple[Split, str]] = {}  # CTA -> its first read before any MMA
        self.good: set[object] = set()  # accumulators that are known to be written
        self.filled: set[object] = set()  # cells that are read, of which some are

    # ---- allocation ----

    def tmem_alloc(self, cluster: Cluster, split: Split, start: int, columns: int, place, group: int) -> None:
        others = [a for a in self.live[split.cta].values() if a.warp != split.warp]
        if others:
            self._two_warps(cluster, split, "tcgen05.alloc", others[0])
        self.live[split.cta][start] = TmemAllocation(columns, split.warp, split.row, group)
        self.written[split.cta, :, start : start + columns] = False
        self.good.clear()
        self.filled.clear()

    def tmem_free(self, cluster: Cluster, split: Split, start: int, columns: int, group: int) -> None:
        allocation = self.live[split.cta].pop(start, None)
        if allocation is None:
            return
        self.freed[split.cta].add(group)
        if allocation.warp != split.warp:
            self._two_warps(cluster, split, "tcgen05.dealloc", allocation)
        if allocation.group != group:
            message = f"tcgen05.dealloc with cta_group {group} of columns of cta_group {allocation.group}"
            self.reporter.add("tmem-alloc", "error", message, _ONE_GROUP, split)
        self._in_use(cluster, split, start, columns)

    def _two_warps(self, cluster: Cluster, split: Split, what: str, first: TmemAllocation) -> None:
        line = self.reporter.line_text(cluster.program.instrs[first.row])
        names = [f"warp {w % cluster.warps_per_cta}" for w in (split.warp, first.warp)]
        message = f"{what} by {names[0]}, while {names[1]} has allocated ({line})"
        self.reporter.add("tmem-alloc", "review", message, _ONE_WARP, split, key=(what, "warps"))

    def _in_use(self, cluster: Cluster, split: Split, start: int, columns: int) -> None:
        """Reports MMAs still under way that write these columns."""
        for op in [work.op for work in cluster.engine.pending() if work.op is not None]:
            if op.where.cta != split.cta:
                continue
            for cell in op.footprint.cells_written:
                if cell.column < start + columns and start < cell.column + cell.columns:
                    line = self.reporter.line_text(cluster.program.instrs[op.where.row])
                    message = (
                        f"tcgen05.dealloc of columns from {start} while {op.text} ({line}) still writes them"
                    )
                    hint = "wait for the last MMA before TMEM is freed"
                    self.in_use = self.reporter.add(
                        "tmem-alloc", "error", message, hint, split, key=("in use",)
                    )
                    return

    def finish(self, cluster: Cluster) -> None:
        if self.early:
            self._before_any_mma(cluster)
        if self.in_use is not None:
            case = Case(cluster, self.reporter)
            names = case.never_waited()
            freed = reason("freed", name=" or ".join(names)) if names else missed_commit(case)
            if freed is not None:
                self.reporter.blame(self.in_use, freed.cause, f"{self.in_use.message}: {freed.text}")
        if cluster.stuck:
            self._blocked(cluster)
            return
        self._unwritten_lanes(cluster)
        for cta, live in enumerate(self.live):
            for start, allocation in live.items():
                self._leaked(cluster, cta, start, allocation)

    def _leaked(self, cluster: Cluster, cta: int, start: int, allocation) -> None:
        own = f" of CTA {cta}" if cluster.ctas > 1 else ""
        message = (
            f"{allocation.columns} columns of tensor memory{own} (from column {start}) are still "
            f"allocated when the CTA ends: the next kernel that allocates waits forever"
        )
        hint = "tcgen05.dealloc at the end, by the warp that allocated, once everybody is done"
        if not all(self.live):
            message += ". The other CTA has freed its own"
            hint = "one warp of each CTA of a pair executes tcgen05.dealloc, under no condition on the rank"
        at = cluster, cta, allocation.row
        self.reporter.add("tmem-leak", "error", message, hint, key=("leak",), at=at)

    def _blocked(self, cluster: Cluster) -> None:
        """Reports an alloc that still waits when nothing can make progress."""
        for index, wait in cluster.waits.items():
            if wait.kind == "tmem-alloc":
                split = cluster.splits[index]
                where = split.at(split.full_mask)
                held = [
                    f"warp {a.warp % cluster.warps_per_cta} already holds "
                    + (f"all {COLUMNS} columns" if a.columns == COLUMNS else f"{a.columns} of {COLUMNS}")
                    for a in self.live[split.cta].values()
                ]
                message = (
                    f"tcgen05.alloc of {wait.detail['columns']} columns by warp "
                    f"{split.warp % cluster.warps_per_cta} blocks forever: {', '.join(held)}"
                )
                again = any(a.warp == split.warp for a in self.live[split.cta].values())
                hint = _ONCE if again else _ONE_WARP
                self.reporter.add("tmem-alloc", "error", message, hint, where, key=("blocked",))

    # ---- contents ----

    def tmem_access(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        if write:
            self.written[cells.rank, cells.lanes, cells.columns] = True
            return
        if cells in self.good:
            return
        first, (low, high) = cells.lane_ends[0] // 32 * 32, cells.column_ends
        filled = np.any(self.written[cells.rank, first : first + 32, low : high + 1], axis=0)
        if filled.all():
            self._note_lanes(split, cells)
            self.good.add(cells)
            return
        bare = [c for c in np.unique(cells.columns).tolist() if not filled[c - low]]
        if bare:
            message = (
                f"tcgen05.ld reads tensor memory columns {bare[0]}..{bare[-1]}, which nothing has written "
                f"since they were allocated"
            )
            columns = np.any(self.written[cells.rank, first : first + 32], axis=0)
            message += told_of(columns, "its lanes", "columns") if columns.any() else ""
            if self.multiplied:
                self._bare(message, _READ, split)
            else:  # perhaps none follows
                self.early.setdefault(split.cta, (split.at(split.mask), message))

    def _note_lanes(self, split: Split, cells: TmemCells) -> None:
        """Keeps the cells that a load reads although nothing has written these lanes of the columns."""
        bare = ~self.written[cells.rank][cells.index]
        if bare.any():
            shape = cells.lanes.shape
            lanes, columns = (np.broadcast_to(axis, shape)[bare] for axis in cells.index)
            self.holes[cells.rank, lanes, columns] = True
            self.hole = self.hole or split.at(split.mask)

    def _unwritten_lanes(self, cluster: Cluster) -> None:
        """Reports lanes that nothing has written, if what threads load there reaches what they store."""
        results = observer_of(cluster.bus, IdleResults)
        if self.hole is None or results is None or results.in_vain(set(), self.holes):
            return
        parts = written_parts(np.any(self.holes, axis=(0, 2)))
        lanes = " and ".join(f"{first} to {last}" for first, last in parts[:2])
        lanes += ", among others" if len(parts) > 2 else ""
        message = (
            f"tcgen05.ld reads lanes of tensor memory that nothing has written ({lanes}), and "
            f"the threads store what depends on them"
        )
        self.reporter.add("uninitialized", "review", message, _LANES, self.hole, ("lanes",))

    def _refused(self, cluster: Cluster) -> bool:
        """Whether an MMA was refused: what it should have written is then no second finding."""
        refused = {f.where.get("ptx_line") for f in self.reporter.by_identity.values() if f.kind in _REFUSALS}
        return any(_is(i, "mma") and i.line in refused for i in cluster.program.instrs) if refused else False

    def _bare(self, message: str, hint, split, key: str = "tmem-ld") -> None:
        if self._refused(split.cluster):
            return
        self.reporter.add("uninitialized", "error", message, hint, split, (key,), buffer="tensor memory")

    def _before_any_mma(self, cluster: Cluster) -> None:
        """Reports reads before the first MMA, now that it is known whether there was one."""
        first = _first_of(cluster.program, "mma")
        for split, message in self.early.values():
            if self.multiplied:
                self._bare(message, _READ, split)
                continue
            line = "" if first is None else f": {self.reporter.line_text(first)} is never reached"
            cause = CAUSES["no-mma"]
            self._bare(f"{message}, and {cause.tell(line=line)}", cause, split)

    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        self.multiplied |= work.name == "tcgen05.mma"
        if work.name == "tcgen05.mma" and not work.accumulates:
            footprint = work.footprint
            self.begun[split.thread] = split.row, footprint.cells_written, footprint.descriptors
        groups = [a.group for a in self.live[split.cta].values()]
        if groups and work.group not in groups:
            message = (
                f"{work.name} with cta_group {work.group} on columns allocated with cta_group {groups.pop()}"
            )
            self.reporter.add("tmem-alloc", "error", message, _ONE_GROUP, split, key=("mma group",))

    def tensor_execute(self, cluster: Cluster, works: list) -> None:
        for work in works:
            self._read_by(work)
        work = works[0]  # all write the same cells, and all but the first accumulate
        cells = work.footprint.cells_written
        if cells in self.good:
            return
        for cell in cells:
            block = self.written[cell.block]
            if work.accumulates and not work.partial and not block.all():
                self._accumulates(work, cell.column, cell.columns)
            block[:] = True
        self.good.add(cells)

    def _read_by(self, work) -> None:
        """Reports a product or copy that reads columns of which nothing has been written."""
        cells = work.footprint.cells_read
        if cells in self.filled:
            return
        for cell in cells:
            if not self.written[cell.block].any():
                message = (
                    f"{work.name} reads {cell.columns} columns of tensor memory from {cell.column} on "
                    f"(A, scale factors or metadata), which nothing has written since they were allocated"
                )
                self._bare(message, _FILL, work.where, "tmem-operand")
        self.filled.add(cells)

    def _accumulates(self, work, start: int, columns: int) -> None:
        if self._refused(work.where.cluster):
            return
        message = (
            f"{work.name} adds to tensor memory columns {start}..{start + columns - 1}, which nothing has "
            f"written since they were allocated"
        )
        cause = CAUSES["accumulate"]
        row, begun, operands = self.begun.get(work.where.thread, (0, (), ()))
        if begun and all(cell.column != start for cell in begun):
            same_a = operands[:1] == work.footprint.descriptors[:1] != ()
            parts = same_a and operands[1:2] != work.footprint.descriptors[1:2]  # with other rows of B
            cause = CAUSES["accumulate-part" if parts else "moved-columns"]
            cluster = work.where.cluster
            message += ": " + cause.tell(
                issuer=f"thread {work.where.thread % (32 * cluster.warps_per_cta)}",
                first=begun[0].column,
                last=begun[0].column + begun[0].columns - 1,
                line=self.reporter.line_text(cluster.program.instrs[row]),
            )
        elif cleared := _first_of(work.where.cluster.program, "st"):
            cause = CAUSES["cleared-late"]
            message += ": " + cause.tell(line=self.reporter.line_text(cleared))
        self.reporter.add("uninitialized", "error", message, cause, work.where, key=("tmem-mma",))


def _first_of(program: Program, what: str):
    """The first tcgen05 instruction of this name in the program text, or None."""
    return next((i for i in program.instrs if _is(i, what)), None)


def _is(instr: Instr | None, what: str) -> bool:
    return instr is not None and instr.op == "tcgen05" and instr.mods[:1] == (what,)
