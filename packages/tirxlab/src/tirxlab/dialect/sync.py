"""Barrier arrays and pipeline state.

An mbarrier starts in phase 0. `wait(stage, p)` returns once phase p has completed: on a fresh barrier
`wait(s, 1)` returns at once (the phase before the first counts as complete) and `wait(s, 0)` blocks.
(PTX ISA 9.7.13.15.16, mbarrier.try_wait.parity.)
"""

from typing import TYPE_CHECKING

from tvm.backend.cuda.lang import pipeline as _tvm
from tvm.backend.cuda.lang import tile_scheduler as _tvm_scheduler
from tvm.script import tirx as T
from tvm.tirx import Expr, IntImm

from .counts import WANTED, countable
from .groups import one_group
from .masks import signalled
from .reach import ever_comes_here, furthest
from .state import state

if TYPE_CHECKING:
    from tvm.backend.cuda.lang.pipeline import MBarrier as _Supplied
else:
    _Supplied = object


class BarrierArray(_Supplied):
    """What the three kinds of barrier array share; `_tvm.MBarrier` supplies init, ptr_to and remote_view."""

    def __init__(self, pool, depth: int, name: str | None = None, leader=None):
        kind = type(self).__name__
        if not isinstance(depth, int) or depth < 1:
            given = repr(depth) if isinstance(depth, int | float | str) else type(depth).__name__
            raise ValueError(f"{kind}(pool, depth, name): depth is a positive integer, not {given}")
        if not hasattr(pool, "alloc"):
            raise TypeError(f"{kind}(pool, depth, name): the first argument is the pool, not {pool!r:.60}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{kind}(pool, depth, name): name is a string, not {name!r}")
        self.buf = pool.alloc((depth,), "uint64", align=8)
        self._local_buf = self.buf
        self._remote_cta_id = None
        self.depth = depth
        self.phase_offset = 0
        self.leader = T.cuda.thread_rank() == 0 if leader is None else leader
        state().barriers.append((self.buf, name))

    def init(self, count):
        """Expect `count` arrivals per phase, on every barrier of the array."""
        kind = type(self).__name__
        if self._remote_cta_id is not None:
            raise ValueError(f"{kind}.remote_view(...) cannot be initialised; each CTA initialises its own")
        if not isinstance(count, int):
            raise ValueError(f"{kind}.init(count): {WANTED}, not {count!r}")
        countable(f"{kind}.init(count)", count)
        self._init(count)

    def wait(self, stage, phase):
        """Block until phase `phase` (0 or 1) of barrier `stage` has completed."""
        if self._remote_cta_id is not None:
            raise ValueError(f"{type(self).__name__}.remote_view(...) cannot be waited on")
        self._wait(self._slot(stage), phase)

    def ptr_to(self, indices):
        """A pointer to barrier `indices[0]`."""
        if isinstance(indices, list | tuple) and len(indices) == 1:
            self._slot(indices[0])
        return super().ptr_to(indices)

    def _slot(self, stage):
        """`stage`; ValueError if it is known to lie beyond the last barrier."""
        last, names = furthest(stage, ids=False) or (-1, [])
        if isinstance(stage, int | IntImm):
            last = int(stage) if int(stage) >= 0 else self.depth
        if last >= self.depth and ever_comes_here():
            name = next((name for buf, name in state().barriers if buf is self._local_buf), None)
            slots = f"{self.depth} slots, 0 to {self.depth - 1}" if self.depth > 1 else "one slot, 0"
            at = f"{last} (at the end of {' and '.join(names)})" if names else stage
            raise ValueError(f"{name or type(self).__name__} has {slots}: there is no slot {at}")
        return stage

    @T.inline
    def _wait(self, stage, phase):
        T.ptx.mbarrier.try_wait(self.buf.ptr_to([stage]), phase)


class MBarrier(BarrierArray, _tvm.MBarrier):
    """`depth` mbarriers that threads arrive on. `init(count)` acts in thread 0 of the CTA only."""

    def arrive(self, stage, cta_id=0, pred=None, count=None):
        """Each executing thread arrives once, on the barrier of CTA `cta_id` of the cluster (default 0)."""
        if self._remote_cta_id is not None:
            cta_id = self._remote_cta_id
        self._arrive(self._local_buf.ptr_to([self._slot(stage)]), cta_id, pred, count)


class TMABar(BarrierArray, _tvm.TMABar):
    """`depth` mbarriers that count bytes delivered by TMA loads."""

    def arrive(self, stage, bytes=None, cta_id=None, pred=None):
        """Arrive once and expect `bytes` more from TMA in this phase."""
        if self._remote_cta_id is not None:
            cta_id = self._remote_cta_id
        self._arrive_tma(self._local_buf.ptr_to([self._slot(stage)]), bytes, cta_id, pred)


class TCGen05Bar(BarrierArray, _tvm.TCGen05Bar):
    """`depth` mbarriers on which the tensor core arrives when the MMAs committed so far are complete."""

    def arrive(self, stage, cta_group=1, cta_mask=0, pred=None):
        """Commit this thread's MMAs: to its own CTA's barrier (mask 0), else to CTA i's for each bit i."""
        # With cta_group 2, TVM 0.26 passes a missing mask on as None and crashes on it.
        mask = 0 if cta_mask is None else cta_mask
        if isinstance(mask, list | tuple):
            raise TypeError("cta_mask is one number, a bit for each CTA of the cluster: 3 for CTAs 0 and 1")
        one_group("TCGen05Bar.arrive", cta_group)
        signalled("TCGen05Bar.arrive", mask)
        return T.ptx.tcgen05.commit(self.buf.ptr_to([self._slot(stage)]), cta_group, mask, pred=pred)


@T.meta_class
class PipelineState:
    """Stage (0 .. depth-1) and phase of one side of a ring of `depth` buffers."""

    def __init__(self, name: str, depth: int):
        if not isinstance(name, str) or not isinstance(depth, int) or depth < 1:
            raise TypeError(
                f"PipelineState(name, depth): for example PipelineState('tma', 2), not {name!r}, {depth!r}"
            )
        self.stage = T.local_scalar("int32")
        self.phase = T.local_scalar("int32")
        self.depth = depth

    def init(self, is_producer: bool):
        """Stage 0; a producer's first wait passes (phase 1), a consumer's blocks (phase 0)."""
        self._init(int(is_producer))

    @T.inline
    def _init(self, phase):
        self.stage = 0
        self.phase = phase

    @T.inline
    def move_to_next_stage(self):
        """Next stage; the phase flips when the stage wraps round."""
        if self.depth > 1:
            self.stage = self.stage + 1
            if self.stage == self.depth:
                self.stage = 0
                self.phase = self.phase ^ 1
        else:
            self.phase = self.phase ^ 1


class ClusterPersistentScheduler2D(_tvm_scheduler.ClusterPersistentScheduler2D):
    """Output tiles for one cluster out of `num_clusters`, in groups of `l2_group_size` rows that share L2.

    `init(cluster)`, `valid()`, `m_idx`, `n_idx`, `next_tile()`; each thread keeps its own state.
    """

    def __init__(self, prefix, num_m_tiles: int, num_n_tiles: int, num_clusters: int, l2_group_size: int = 8):
        numbers = {"num_m_tiles": num_m_tiles, "num_n_tiles": num_n_tiles, "l2_group_size": l2_group_size}
        for name, value in numbers.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"ClusterPersistentScheduler2D: {name} is a positive integer, not {value!r}")
        if not isinstance(num_clusters, int | Expr):
            raise TypeError(f"ClusterPersistentScheduler2D: num_clusters is a number, not {num_clusters!r}")
        if isinstance(num_clusters, int) and num_clusters < 1:
            raise ValueError(
                f"ClusterPersistentScheduler2D: num_clusters is {num_clusters}, so that next_tile() never "
                "reaches another tile: it is the number of clusters in the grid (SM_COUNT may be as "
                "small as the CTAs of one cluster)"
            )
        self.m_idx = T.local_scalar("int32")
        self.n_idx = T.local_scalar("int32")
        self.linear_idx = T.local_scalar("int32")
        self.tile_count = T.local_scalar("int32")
        self.work_idx, self.tile_idx = self.linear_idx, self.tile_count
        self._num_m_tiles, self._num_n_tiles = num_m_tiles, num_n_tiles
        self._num_clusters, self._l2_group_size = num_clusters, l2_group_size
        self._cluster_m = self._cluster_n = 1
        self._serpentine = False
        self._M_TILE_ROWS, self._N_TILE_COLS = num_m_tiles, num_n_tiles
        self._FULL_GROUPS = num_m_tiles // l2_group_size
        self._TAIL_ROWS = num_m_tiles % l2_group_size
        self._TOTAL_TILES = num_m_tiles * num_n_tiles
