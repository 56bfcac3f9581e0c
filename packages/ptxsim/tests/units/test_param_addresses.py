"""The address of a kernel parameter is in .param space: ld.param accepts it, everything else needs the result
of cvta.param (PTX ISA 5.1.6.1, 9.7.9.20). An H200 stops at a generic use of the bare address.
"""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

CONVERTED = "cvta.param.u64 %a, %a;"
LOAD = (
    HEAD
    + """.visible .entry k(.param .align 16 .b8 s[64], .param .u64 out) {{
  .reg .b32 %r; .reg .b64 %a, %o; .reg .pred %p;
  ld.param.u64 %o, [out]; mov.b64 %a, s; add.u64 %a, %a, 8; {convert} {load}
  st.global.u32 [%o], %r; ret;
}}"""
)
COPY = (
    HEAD
    + """.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {{
  .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
  .reg .b32 %t, %b, %x; .reg .b64 %m, %o; .reg .pred %p;
  mov.u32 %b, bar; mov.u32 %t, tile; mov.u32 %x, 0; mov.b64 %m, map; {convert} ld.param.u64 %o, [out];
  mbarrier.init.shared::cta.b64 [%b], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%t], [%m, {{%x, %x}}], [%b];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra WAIT;
  ld.shared.u32 %x, [%t+12]; st.global.u32 [%o], %x; ret;
}}"""
)


def launched(text: str, given):
    out = np.zeros(4, np.uint32)
    return ptxsim.load(text).launch("k", block=1, args=[given, out]), out[0]


@pytest.mark.parametrize(
    ("convert", "load"),
    [
        ("", "ld.param.u32 %r, [%a+4];"),
        ("", "ld.param.u32 %r, [s+12];"),
        (CONVERTED, "ld.u32 %r, [%a+4];"),
        (CONVERTED, "isspacep.global %p, %a; @%p ld.u32 %r, [%a+4];"),
        (CONVERTED, "isspacep.param::entry %p, %a; @%p ld.u32 %r, [%a+4];"),
        (CONVERTED, "isspacep.const %p, %a; @!%p ld.u32 %r, [%a+4];"),
        (f"{CONVERTED} cvta.to.param.u64 %a, %a;", "ld.param.u32 %r, [%a+4];"),
    ],
)
def test_an_address_in_its_own_space(convert, load):
    result, word = launched(LOAD.format(convert=convert, load=load), np.arange(16, dtype=np.uint32).tobytes())
    assert (result.verdict, word) == ("clean", 3), result.findings


def test_a_load_by_the_bare_address():
    text = LOAD.format(convert="", load="ld.u32 %r, [%a+4];")
    result, _ = launched(text, np.arange(16, dtype=np.uint32).tobytes())
    (finding,) = result.findings
    assert (finding.kind, finding.severity) == ("out-of-bounds", "error")
    assert "9.7.9.20" in finding.message and "cvta.param" in finding.hint


@pytest.mark.parametrize(("convert", "verdict"), [("cvta.param.u64 %m, %m;", "clean"), ("", "error")])
def test_a_tensor_map_by_its_address(convert, verdict):
    rows = np.arange(256, dtype=np.uint32).reshape(8, 32)
    result, word = launched(COPY.format(convert=convert), ptxsim.TensorMap(rows, box=(32, 1)))
    assert result.verdict == verdict, result.findings
    if verdict == "clean":
        assert word == 3
    else:
        assert "cvta.param" in result.findings[0].message
