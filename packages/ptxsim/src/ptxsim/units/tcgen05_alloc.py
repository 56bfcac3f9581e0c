"""Allocation of tensor memory: tcgen05.alloc, dealloc, relinquish_alloc_permit (PTX ISA 9.7.16.7.1).

With .cta_group::2, one warp of each CTA of the pair allocates, and both get the same columns: the first waits
for the second, as 9.7.16.5 allows. dealloc does not wait; the checks detect a peer that is not done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split, Wait
from ptxsim.machine.tensor_memory import COLUMNS, NEVER_WRITTEN, split_address
from ptxsim.units.mbarrier import place_of
from ptxsim.units.registry import always, unit
from ptxsim.units.warp import require_aligned

_NO_ADDRESS = "at an address that nothing has written (all bits are 1)"
_READ_EARLY = "alloc writes the address to shared memory: read it there after a barrier of the threads"
GROUPS = {"cta_group::1": 1, "cta_group::2": 2}


def group_of(instr) -> int:
    """The number of CTAs in the instruction's .cta_group."""
    return next(GROUPS[m] for m in instr.mods if m in GROUPS)


@dataclass
class Request:
    """A pending alloc of one CTA of a pair."""

    rank: int
    split: int
    columns: int
    start: int | None = None  # first column; set by the second CTA's alloc


@unit("tcgen05.alloc .group.sync.aligned{.shared::cta}.b32 [a], columns", section="9.7.16.7.1")
def alloc(instr):
    group, generic = group_of(instr), "shared::cta" not in instr.mods

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        columns = cluster.scalar(split, args[1]) & 0xFFFF_FFFF
        cluster.unit_state["tmem-asked", split.cta] = True
        has_pair(cluster, split, group)
        if not _allowed(cluster, split, columns):
            return None
        find = _for_pair if group == 2 and cluster.ctas > 1 else _alone
        start = find(cluster, split, columns)
        if isinstance(start, str):
            return start
        place = place_of(cluster, split, cluster.address(split, args[0]), generic)
        if place is not None:
            cluster.unit_state.setdefault(("tmem-put", split.cta), place[1])
            cluster.shared[place[0], place[1] : place[1] + 4].view(np.uint32)[0] = start
        cluster.effects += 1
        cluster.bus.tmem_alloc(cluster, split, start, columns, place, group)
        return None

    return run


def has_pair(cluster: Cluster, split: Split, group: int) -> None:
    """Reports .cta_group::2 without a pair: two CTAs of a cluster whose ranks differ in the last bit (PTX ISA
    9.7.16.5).
    """
    if group == 2 and cluster.ctas < 2:
        message = "cta_group::2 in a kernel without CTA clusters: there is no second CTA"
        cluster.reporter.add("cluster", "error", message, CAUSES["no-pair"], split, key="no-pair")


def _allowed(cluster: Cluster, split: Split, columns: int) -> bool:
    if columns < 32 or columns > COLUMNS or columns & (columns - 1):
        message = f"tcgen05.alloc of {columns} columns: must be a power of two in 32..512"
        cluster.reporter.add("tmem-alloc", "error", message, "", split)
        return False
    if not cluster.tmem[split.cta].permit:
        message = "tcgen05.alloc after this CTA gave up its allocation permit"
        hint = "call relinquish_alloc_permit only after the last alloc"
        cluster.reporter.add("tmem-alloc", "error", message, hint, split)
    return True


def _alone(cluster: Cluster, split: Split, columns: int) -> int | str:
    """Allocates for one CTA: the first column, or BLOCK while the split sleeps until columns are free."""
    start = cluster.tmem[split.cta].allocate(columns)
    if start is None:
        return cluster.wait(split, Wait("tmem-alloc", ("tmem", split.cta), {"columns": columns}))
    return start


def _for_pair(cluster: Cluster, split: Split, columns: int) -> int | str:
    """Allocates for both CTAs of a pair, as `_alone` does; also sleeps until the peer's warp has arrived."""
    pair = split.cta // 2
    requests = cluster.unit_state.setdefault(("tmem-pair", pair), [])
    mine = next((r for r in requests if r.split == split.index), None)
    if mine is None:
        mine = Request(split.cta, split.index, columns)
        requests.append(mine)
    if mine.start is None:
        peer = next((r for r in requests if r.rank != mine.rank and r.start is None), None)
        if peer is None:
            return cluster.wait(split, Wait("tmem-pair", ("tmem-pair", pair), {"what": "tcgen05.alloc"}))
        if not _serve(cluster, split, mine, peer):
            return cluster.wait(split, Wait("tmem-alloc", ("tmem", split.cta), {"columns": columns}))
        cluster.wake(("tmem-pair", pair))
    requests.remove(mine)
    assert mine.start is not None
    return mine.start


def _serve(cluster: Cluster, split: Split, mine: Request, peer: Request) -> bool:
    """Allocates the same columns in both CTAs; False while there is no room."""
    if peer.columns != mine.columns:
        message = (
            f"tcgen05.alloc of {mine.columns} columns in CTA {mine.rank} and of {peer.columns} in CTA "
            f"{peer.rank} of a pair"
        )
        hint = "with cta_group 2 both CTAs must allocate the same number of columns"
        cluster.reporter.add("tmem-alloc", "error", message, hint, split)
    memories = [cluster.tmem[mine.rank], cluster.tmem[peer.rank]]
    start = memories[0].first_free(mine.columns)
    if start is None or memories[1].first_free(mine.columns) != start:
        return False
    for memory in memories:
        memory.take(start, mine.columns)
    mine.start = peer.start = start
    return True


def unwritten(cluster: Cluster, where, what: str) -> None:
    """Reports an access to tensor memory whose address comes from shared memory that was never written."""
    message = f"{what} {_NO_ADDRESS}: tcgen05.alloc has not written it there, or not yet"
    put = cluster.unit_state.get(("tmem-put", where.cta))
    hint: Cause | str = _READ_EARLY
    if put is not None:
        message += f"; it has written one to {cluster.reporter.shared_name(put)}"
    elif not cluster.unit_state.get(("tmem-asked", where.cta)):
        message += f"; no warp of CTA {cluster.cta_ids[where.cta]} has reached one"
        hint = CAUSES["own-alloc"]
    cluster.reporter.add("tmem-alloc", "error", message, hint, where, key="unwritten")


def freed_by(cluster: Cluster, cta: int, column: int) -> str:
    """A clause that names the warp that has freed a column; "" if none has."""
    freed = cluster.unit_state.get(("tmem-freed", cta), {})
    for (start, columns), warps in freed.items():
        if start <= column < start + columns:
            instr = cluster.program.instrs[cluster.unit_state["tmem-freed-by", cta, start]]
            at = f"line {instr.src}" if instr.src else f"PTX line {instr.line}"
            return f"which warp {warps[0] % cluster.warps_per_cta} has freed by then ({at})"
    return ""


@unit("tcgen05.dealloc .group.sync.aligned.b32 a, columns", section="9.7.16.7.1")
def dealloc(instr):
    group = group_of(instr)

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        address = cluster.scalar(split, args[0]) & 0xFFFF_FFFF
        _, start = split_address(address)
        columns = cluster.scalar(split, args[1]) & 0xFFFF_FFFF
        tmem = cluster.tmem[split.cta]
        freed = cluster.unit_state.setdefault(("tmem-freed", split.cta), {})
        if _freed_by_another(cluster, split, freed.get((start, columns), []), start, columns):
            return None
        if tmem.sizes.get(start) != columns:
            live = ", ".join(f"{n} at column {c}" for c, n in tmem.sizes.items()) or "none"
            at, hint = f"at column {start}", "give dealloc the address and size that alloc returned, once"
            if address == NEVER_WRITTEN:
                at, hint = _NO_ADDRESS, _READ_EARLY
            message = f"tcgen05.dealloc of {columns} columns {at}; live allocations: {live}"
            cluster.reporter.add("tmem-alloc", "error", message, hint, split)
            return None
        cluster.bus.tmem_free(cluster, split, start, columns, group)
        _loads_under_way(cluster, split.cta)
        tmem.free(start)
        freed[start, columns] = [split.warp]
        cluster.unit_state["tmem-freed-by", split.cta, start] = split.row
        for rank in {split.cta, split.cta ^ 1}:
            cluster.wake(("tmem", rank))
        return None

    return run


def _loads_under_way(cluster: Cluster, cta: int) -> None:
    """Completes the loads without a tcgen05.wait::ld so far: they may read as late as now, and a check sees
    it.
    """
    first = cta * cluster.warps_per_cta
    for warp in range(first, first + cluster.warps_per_cta):
        for finish in cluster.unit_state.pop(("tmem", "ld", warp), ()):
            finish()


def _freed_by_another(cluster: Cluster, split: Split, warps: list[int], start: int, columns: int) -> bool:
    """Reports a dealloc of columns that another warp has freed and that were not allocated since.

    PTX requires exactly one dealloc (9.7.16.7.1), but a B200 ran kernels in which all warps execute it.
    """
    if not warps or split.warp in warps or not cluster.tmem[split.cta].fits(start, columns):
        return False
    warps.append(split.warp)
    names = [str(w % cluster.warps_per_cta) for w in warps]
    message = (
        f"tcgen05.dealloc of {columns} columns at column {start}, which warp {names[0]} has freed: warps "
        f"{', '.join(names[:-1])} and {names[-1]} all execute this line"
    )
    hint = "let only the warp that allocated them free them, once"
    finding = cluster.reporter.add("tmem-alloc", "review", message, hint, split, key="freed-again")
    finding.message = message  # names every warp that has executed it so far
    return True


@unit("tcgen05.relinquish_alloc_permit .group.sync.aligned", section="9.7.16.7.1")
@always
def relinquish(cluster: Cluster, split: Split, args):
    require_aligned(cluster, split)
    cluster.tmem[split.cta].permit = False
