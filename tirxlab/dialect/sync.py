"""Barrier arrays and pipeline state.

An mbarrier starts in phase 0. `wait(stage, p)` returns once phase p has completed: on a fresh barrier
`wait(s, 1)` returns at once (the phase before the first counts as complete) and `wait(s, 0)` blocks.
(PTX ISA 9.7.13.15.16, mbarrier.try_wait.parity.)
"""

from tvm.backend.cuda.lang import pipeline as _tvm
from tvm.script import tirx as T

from .state import state


def _setup(bar, pool, depth: int, name: str | None, leader) -> None:
    if not isinstance(depth, int) or depth < 1:
        raise ValueError(
            f"{type(bar).__name__}(pool, depth, name): depth is a positive integer, not {depth!r}"
        )
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{type(bar).__name__}(pool, depth, name): name is a string, not {name!r}")
    bar.buf = pool.alloc((depth,), "uint64", align=8)
    bar._local_buf = bar.buf
    bar._remote_cta_id = None
    bar.depth = depth
    bar.phase_offset = 0
    bar.leader = T.cuda.thread_rank() == 0 if leader is None else leader
    state().barriers.append((bar.buf, name))


class MBarrier(_tvm.MBarrier):
    """`depth` mbarriers that threads arrive on. `init(count)` runs on thread 0 of the CTA, whatever encloses it."""

    def __init__(self, pool, depth: int, name: str | None = None, leader=None):
        _setup(self, pool, depth, name, leader)

    def arrive(self, stage, cta_id=0, pred=None, count=None):
        """Each executing thread arrives once, on the barrier of CTA `cta_id` of the cluster (default: CTA 0)."""
        if self._remote_cta_id is not None:
            cta_id = self._remote_cta_id
        self._arrive(self._local_buf.ptr_to([stage]), cta_id, pred, count)


class TMABar(_tvm.TMABar):
    """`depth` mbarriers that count bytes delivered by TMA loads."""

    def __init__(self, pool, depth: int, name: str | None = None, leader=None):
        _setup(self, pool, depth, name, leader)

    def arrive(self, stage, bytes=None, cta_id=None, pred=None):
        """Arrive once and expect `bytes` more from TMA in this phase."""
        if self._remote_cta_id is not None:
            cta_id = self._remote_cta_id
        self._arrive_tma(self._local_buf.ptr_to([stage]), bytes, cta_id, pred)


class TCGen05Bar(_tvm.TCGen05Bar):
    """`depth` mbarriers on which the tensor core arrives when the MMAs committed so far are complete."""

    def __init__(self, pool, depth: int, name: str | None = None, leader=None):
        _setup(self, pool, depth, name, leader)


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
        """Start at stage 0; a producer finds its buffers empty (phase 1), a consumer waits for data (phase 0)."""
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
