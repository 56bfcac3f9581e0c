"""A TMA load by several lanes: with different tiles these are several loads; with one tile they are
redundant.
"""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

TEXT = (
    HEAD
    + """.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {{
  .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
  .reg .b32 %t, %b, %x, %d, %l; .reg .b64 %m, %o, %w; .reg .pred %p, %first;
  mov.u32 %l, %tid.x; mov.u32 %b, bar; mov.b64 %m, map; cvta.param.u64 %m, %m; ld.param.u64 %o, [out];
  setp.eq.u32 %first, %l, 0; mov.u32 %t, tile; mad.lo.u32 %d, %l, {step}, %t;
  @%first mbarrier.init.shared::cta.b64 [%b], 1;
  @%first fence.mbarrier_init.release.cluster; bar.sync 0;
  @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 1024; bar.sync 0;
  setp.lt.u32 %p, %l, 8;
  @%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%d], [%m, {{0, %l}}], [%b];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;
  @!%p bra WAIT;
  mad.lo.u32 %x, %l, 32, %t; ld.shared.u32 %x, [%x]; mul.wide.u32 %w, %l, 4; add.u64 %o, %o, %w;
  st.global.u32 [%o], %x; ret;
}}"""
)


@pytest.mark.parametrize("step, finds", [(128, False), (0, True)])
def test_lanes_that_each_load_a_row(step, finds):
    rows, out = np.arange(256, dtype=np.uint32).reshape(8, 32), np.zeros(32, np.uint32)
    args = [ptxsim.TensorMap(rows, box=(32, 1)), out]
    result = ptxsim.load(TEXT.format(step=step)).launch("k", block=32, args=args)
    assert any("issued by 8 lanes" in f.message for f in result.findings) == finds, result.findings
    if not finds:
        assert result.verdict == "clean", result.findings
        assert np.array_equal(out, rows.reshape(-1)[::8])
