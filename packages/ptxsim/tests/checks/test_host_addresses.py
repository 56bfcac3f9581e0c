"""Global memory at host addresses, below those that ptxsim assigns: it is ordered like any other."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

LAST_PUTS_BACK = """.visible .entry k(.param .u64 p) {{
  .shared .align 4 .b8 last[4]; .reg .b64 %p; .reg .b32 %x, %t; .reg .pred %is, %rest;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; setp.ne.u32 %rest, %t, 0;
  @%rest bra MEET;
  atom.{order}{space}.add.u32 %x, [%p], 1;
  setp.eq.u32 %is, %x, 1; selp.u32 %x, 1, 0, %is; st.shared.u32 [last], %x;
MEET: bar.sync 0;
  ld.shared.u32 %x, [last]; setp.eq.u32 %is, %x, 0; @%is bra END; @%rest bra END;
  st{space}.u32 [%p], 0;
END: ret;
}}"""


@pytest.mark.parametrize("base", [0x5555_0000_0000, 0x7F00_0000_0000])
@pytest.mark.parametrize("space", [".global", ""])
@pytest.mark.parametrize("order, verdict", [("relaxed.gpu", "clean"), ("relaxed.cta", "error")])
def test_the_last_cta_puts_a_counter_back(base, space, order, verdict):
    """Its atomic has observed those of the others (8.9.2), if its scope includes them."""
    counter = np.zeros(8, np.uint32)
    text = HEAD + LAST_PUTS_BACK.format(order=order, space=space)
    result = ptxsim.load(text).launch("k", grid=2, block=64, args=[base + 16], memory={base: counter})
    assert result.verdict == verdict, result.findings
    assert not counter.any()
