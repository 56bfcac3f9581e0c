"""Launches whose threads look at flags also run in other ways: a poll that ends too early is a race."""

import numpy as np
import pytest
from ptx_samples import HEAD, compile_ptx

import ptxsim

# CTA b of 4 adds b to `sum` after CTA b - 1 has: `turn` says how many CTAs are done.
TURNS = (
    HEAD
    + """
.visible .entry k(.param .u64 psum, .param .u64 pturn) {{
  .reg .b64 %sum, %turn; .reg .b32 %t, %b, %x, %next; .reg .pred %p, %q;
  ld.param.u64 %sum, [psum]; ld.param.u64 %turn, [pturn];
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; add.u32 %next, %b, 1; setp.ne.u32 %q, %t, 0;
  @%q bra MEET;
POLL: ld.acquire.gpu.global.u32 %x, [%turn]; {enough} @%p bra POLL;
MEET: bar.sync 0;
  @%q bra END;
  ld.global.u32 %x, [%sum]; add.u32 %x, %x, %b; st.global.u32 [%sum], %x;
  {signal}
END: ret;
}}"""
)
ITS_OWN = "setp.ne.u32 %p, %x, %b;"
RELEASED = "st.release.gpu.global.u32 [%turn], %next;"


def run(enough: str = ITS_OWN, signal: str = RELEASED, order="program"):
    total, turn = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    text = TURNS.format(enough=enough, signal=signal)
    result = ptxsim.load(text).launch("k", grid=4, block=64, args=[total, turn], order=order)
    return result, int(total[0])


@pytest.mark.parametrize("order", ["program", "adverse", 3])
def test_each_cta_awaits_its_turn(order):
    result, total = run(order=order)
    assert result.verdict == "clean" and total == 6


@pytest.mark.parametrize(
    "enough",
    [
        "add.u32 %x, %x, 1; setp.lt.u32 %p, %x, %b;",  # one turn too early
        "setp.ne.u32 %p, %b, %b;",  # looks only once
    ],
)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_a_poll_that_ends_too_early_is_a_race(enough, order):
    result, total = run(enough, order=order)
    first = result.findings[0]
    assert (first.kind, first.severity) == ("race", "error")
    assert "if the clusters start in another order than that of their indices" in first.message
    assert total == 6, "memory is left as the first run left it"


def test_a_wait_for_a_signal_that_only_an_earlier_cta_would_need():
    """CTA 3 never signals: nobody waits for it. That is no deadlock in any order."""
    signal = "setp.eq.u32 %p, %b, 3; @%p bra END; " + RELEASED
    assert run(signal=signal)[0].verdict == "clean"


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_turns_may_be_counted_by_atomics(order):
    result, total = run(signal="red.release.gpu.global.add.u32 [%turn], 1;", order=order)
    assert result.verdict == "clean" and total == 6


STAGES = r"""
__device__ unsigned at(int* p) { return __cvta_generic_to_shared(p); }
__device__ int look(int* p) {
  int v;
  asm volatile("ld.acquire.cta.shared.b32 %0, [%1];" : "=r"(v) : "r"(at(p)) : "memory");
  return v;
}
__device__ void tell(int* p, int v) {
  asm volatile("st.release.cta.shared.b32 [%0], %1;" :: "r"(at(p)), "r"(v) : "memory");
}
extern "C" __global__ void k(int* out) {
  __shared__ int data[8][32], flag;
  int lane = threadIdx.x % 32, sum = 0;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  for (int i = 0; i < 8; i++) {
    if (threadIdx.x / 32 == WRITER) data[i][lane] = i;
    else if (lane == 0) while (look(&flag) ENOUGH) {}
    __syncwarp();
    if (threadIdx.x == 32 * WRITER) tell(&flag, i + 1);
    if (threadIdx.x / 32 != WRITER) sum += data[i][lane];
  }
  if (threadIdx.x / 32 != WRITER) out[lane] = sum;
}"""


@pytest.mark.parametrize("writer", ["0", "1"])
@pytest.mark.parametrize("enough, verdict", [("< i + 1", "clean"), ("< i", "error")])
def test_a_warp_may_be_earlier_than_the_one_that_sets_its_flag(writer, enough, verdict):
    text = STAGES.replace("WRITER", writer).replace("ENOUGH", enough)
    loaded = ptxsim.load(compile_ptx(text, "sm_90a"))
    assert loaded.launch("k", grid=1, block=64, args=[np.zeros(32, np.int32)]).verdict == verdict
