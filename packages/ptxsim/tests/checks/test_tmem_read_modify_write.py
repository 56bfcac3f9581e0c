"""A warp that loads columns, computes and stores them back without tcgen05.wait::ld (PTX ISA 9.7.16.6.4.5).

An instruction that reads a register of a load stalls until the load is done, so a store after it comes later;
before it nothing orders the two. Loading another register in between signals nothing to anybody.
"""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

KERNEL = """.visible .entry k(.param .u64 p) {{
  .shared .align 8 .b8 buffer[16];
  .reg .b64 %p, %o; .reg .b32 %t, %w, %a, %s, %x, %y, %z, %n; .reg .pred %first, %more;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %first, %w, 0;
  mov.u32 %s, buffer; mov.u32 %n, 0;
  @%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 32;
  setp.eq.u32 %more, %t, 0; @%more mbarrier.init.shared::cta.b64 [%s+8], 1;
  bar.sync 0;
  ld.shared.u32 %a, [%s];
  shl.b32 %y, %w, 21; add.u32 %y, %y, %a; add.u32 %z, %y, 8;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%y], {{%t}};
  tcgen05.wait::st.sync.aligned;
AGAIN:
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%x}}, [%y];
  {body}
  tcgen05.wait::st.sync.aligned;
  add.u32 %n, %n, 1; setp.lt.u32 %more, %n, 3; @%more bra AGAIN;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%x}}, [%y];
  tcgen05.wait::ld.sync.aligned;
  mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o; st.global.u32 [%p], %x;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @%first tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  @%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 32;
  ret;
}}
"""
WAIT, USE, MINE = "tcgen05.wait::ld.sync.aligned;", "add.u32 %x, %x, 1;", "xor.b32 %s, %t, 1;"
ELSEWHERE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%z], {%t};"
BACK, OTHER = (f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%y], {{{value}}};" for value in ("%x", "%s"))
ASK = "mbarrier.test_wait.parity.shared::cta.b64 %more, [%s+8], 1;"
CASES = [
    ((ASK, USE, BACK), "review"),  # testing a barrier signals nothing
    ((WAIT, USE, BACK), "clean"),
    ((ELSEWHERE, WAIT, USE, BACK), "clean"),
    ((USE, BACK), "review"),
    ((BACK,), "review"),  # the store itself reads the register
    ((ELSEWHERE, USE, BACK), "review"),  # other columns: before the use, and nothing is signalled
    ((MINE, USE, OTHER), "review"),
    ((MINE, OTHER, USE), "error"),  # the same columns before any register is read
    ((MINE, ELSEWHERE, OTHER, USE, BACK), "error"),
]


@pytest.mark.parametrize("body, verdict", CASES)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_stores_behind_a_load(body, verdict, order):
    text = HEAD + KERNEL.format(body="\n  ".join(body))
    result = ptxsim.load(text).launch("k", block=128, args=[np.zeros(128, np.uint32)], order=order)
    assert result.verdict == verdict, result.findings
    races = [f for f in result.findings if f.kind == "race"]
    assert all("tcgen05.wait::ld" in f.message for f in races), races
    assert [f for f in races if f.severity == "error"] if verdict == "error" else True


FREED = (
    KERNEL[: KERNEL.index("AGAIN:")].replace("[%s+8], 1;", "[%s+8], 128;")
    + """
  mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%x}}, [%y];
  {body}
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  {after}
  @%first tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  @%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 32;
  ret;
}}
"""
)
TELL, GIVE = "mbarrier.arrive.shared::cta.b64 _, [%s+8];", "st.global.u32 [%p], %x;"
OTHERWISE = "mov.u32 %x, 0; st.global.u32 [%p], %x;"
FREED_CASES = [
    ((WAIT, GIVE), "", "clean"),
    ((TELL, WAIT, GIVE), "", "clean"),
    ((GIVE,), "", "review"),
    ((TELL, GIVE), "", "review"),  # others are signalled too early, but not the warp that frees the columns
    ((TELL,), "", "review"),  # nothing reads what is loaded
    ((TELL,), OTHERWISE, "review"),
    ((TELL,), GIVE, "error"),  # freed while needed data may still be loading
]


@pytest.mark.parametrize("body, after, verdict", FREED_CASES)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_columns_are_freed_behind_a_load(body, after, verdict, order):
    text = HEAD + FREED.format(body="\n  ".join(body), after=after)
    out = np.zeros(128, np.uint32)
    result = ptxsim.load(text).launch("k", block=128, args=[out], order=order)
    assert result.verdict == verdict, result.findings
    told = [f for f in result.findings if "nothing reads what it loads" in f.message]
    assert bool(told) == (verdict == "review" and GIVE not in body), result.findings
