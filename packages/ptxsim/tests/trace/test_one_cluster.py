"""A launch may run, and trace, a part of the grid that starts anywhere."""

import numpy as np
import pytest
from ptx_samples import compile_ptx

import ptxsim

WRITES = r"""
extern "C" __global__ void k(int* out) { out[blockIdx.x] = blockIdx.x + 1; }"""
WAITS = r"""
extern "C" __global__ void k(int* count) {
  atomicAdd(count, 1);
  while (*(volatile int*)count < gridDim.x) {}
}"""


def launched(source: str, **options):
    out = np.zeros(6, np.int32)
    module = ptxsim.load(compile_ptx(source, "sm_100a"))
    return out, module.launch("k", grid=6, block=1, args=[out], **options)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("first, count", [(0, 1), (2, 3), (5, 1), (4, None), (5, 9)])
def test_only_the_clusters_asked_for_run_and_the_first_of_them_is_traced(first, count, jobs):
    out, result = launched(WRITES, first=first, clusters=count, trace=True, jobs=jobs)
    last = 6 if count is None else min(6, first + count)
    assert out.tolist() == [n + 1 if first <= n < last else 0 for n in range(6)]
    assert result.trace.cluster == first and result.trace.events
    assert (result.stats["ctas"], result.stats["grid_ctas"]) == (last - first, 6)
    assert result.verdict == "not checked"


@pytest.mark.parametrize("first", [-1, 6])
def test_a_cluster_that_is_not_there_is_refused(first):
    with pytest.raises(ValueError, match=f"no cluster {first}: the grid has 6"):
        launched(WRITES, first=first)


def test_clusters_that_wait_for_each_other_begin_at_the_first():
    with pytest.raises(ValueError, match="first must be 0"):
        launched(WAITS, first=1, clusters=1)
