"""TMA copies by several lanes: with different tiles these are several copies; with one tile they are
redundant, and a reduction adds it as many times.
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


STORE = (
    HEAD
    + """.visible .entry k(.param .align 64 .b8 map[128]) {{
  .shared .align 128 .b8 tile[1024]; .reg .b32 %t, %d, %l, %x, %y; .reg .b64 %m; .reg .pred %p;
  mov.u32 %l, %tid.x; mov.b64 %m, map; cvta.param.u64 %m, %m; mov.u32 %t, tile;
  mad.lo.u32 %d, %l, 32, %t; shr.u32 %x, %l, 2; add.u32 %x, %x, 1;
  st.shared.v4.u32 [%d], {{%x, %x, %x, %x}}; st.shared.v4.u32 [%d+16], {{%x, %x, %x, %x}};
  fence.proxy.async.shared::cta; bar.warp.sync -1;
  setp.lt.u32 %p, %l, 8; mul.lo.u32 %d, %l, {step}; add.u32 %d, %d, %t; mul.lo.u32 %y, %l, {row};
  @%p {op}.global.shared::cta{add}.bulk_group [%m, {{0, %y}}], [%d];
  @%p cp.async.bulk.commit_group; @%p cp.async.bulk.wait_group 0; ret;
}}"""
)
BULK = "cp{}.async.bulk.tensor.2d"


@pytest.mark.parametrize(
    "add, step, row, stored, severity",
    [
        ("", 128, 1, [1, 2, 3, 4, 5, 6, 7, 8], None),  # a tile each
        (".add", 128, 1, [1, 2, 3, 4, 5, 6, 7, 8], None),
        (".add", 128, 0, [36], None),  # eight tiles, added to one place
        ("", 0, 0, [1], "review"),  # the same bytes to one place
        (".add", 0, 0, [8], "error"),  # one tile, added eight times
    ],
)
def test_lanes_that_each_store_a_row(add, step, row, stored, severity):
    out = np.zeros((8, 32), np.uint32)
    text = STORE.format(op=BULK.format(".reduce" if add else ""), add=add, step=step, row=row)
    result = ptxsim.load(text).launch("k", block=32, args=[ptxsim.TensorMap(out, box=(32, 1))])
    found = [f.severity for f in result.findings if "issued by 8 lanes" in f.message]
    assert found == ([severity] if severity else []), result.findings
    assert severity or result.verdict == "clean", result.findings
    assert out[: len(stored), 0].tolist() == stored


def test_lanes_that_store_different_tiles_to_one_place():
    text = STORE.format(op=BULK.format(""), add="", step=128, row=0)
    out = np.zeros((8, 32), np.uint32)
    result = ptxsim.load(text).launch("k", block=32, args=[ptxsim.TensorMap(out, box=(32, 1))])
    assert result.verdict == "error"
    assert [f.kind for f in result.findings] == ["race"], result.findings
