"""Reads by tensor maps are checked only when something else accesses their
buffer: the verdict is the same.
"""

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

SETUP = """
.reg .b32 %r<9>; .reg .b64 %p, %o, %m, %w; .reg .pred %q, %k; .shared .align 8 .b8 bar[8];
ld.param.u64 %p, [pp]; mov.u32 %r1, %tid.x; setp.eq.u32 %q, %r1, 0; mov.u32 %r2, bar; mov.u32 %r3, dyn;
mov.b64 %m, map; cvta.param.u64 %m, %m;
@%q mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
"""
LOAD = """
@!%q bra LOADED;
mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 512;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%m, {0, 0}], [%r2];
LOADED:
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %k, [%r2], 0; @!%k bra WAIT;\n"
READ = "ld.global.b32 %r6, [%o];\n"
WRITE = "st.global.b32 [%o], %r1;\n"
ADDRESS = "mul.wide.u32 %w, %r1, 4; add.u64 %o, %p, %w;\n"


def verdict(body: str, order, grid: int = 1) -> tuple[str, list]:
    head = f"{HEAD}.extern .shared .align 1024 .b8 dyn[];\n"
    text = f"{head}.visible .entry k(.param .align 64 .b8 map[128], .param .u64 pp) {{ {SETUP} {body} ret; }}"
    data = np.arange(128, dtype=np.uint32).reshape(4, 32)
    args = [ptxsim.TensorMap(data, box=(32, 4), swizzle=0), data]
    shape = {"grid": (grid, 1, 1), "block": (32, 1, 1), "shared_bytes": 1024}
    result = ptxsim.load(text).launch("k", **shape, args=args, order=order)
    return result.verdict, [f.kind for f in result.findings]


@pytest.mark.parametrize("order", ["program", "adverse", 3])
@pytest.mark.parametrize("between", ["", READ])
def test_write_behind_a_load(order, between):
    assert verdict(LOAD + ADDRESS + WAIT + between + WRITE, order) == ("clean", [])
    assert verdict(LOAD + ADDRESS + between + WRITE + WAIT, order) == ("error", ["race"])


@pytest.mark.parametrize("order", ["program", "adverse", 3])
def test_write_behind_another_ctas_load(order):
    second = "mov.u32 %r8, %ctaid.x; setp.eq.u32 %k, %r8, 0; @%k bra END;\n"
    kinds = verdict(LOAD + ADDRESS + WAIT + second + WRITE + "END:\n", order, grid=2)
    assert kinds == ("error", ["race"])
    assert verdict(LOAD + ADDRESS + WAIT + READ, order, grid=2) == ("clean", [])


def test_load_behind_a_write():
    fence = "fence.proxy.async.global; bar.sync 0;\n"
    assert verdict(ADDRESS + WRITE + fence + LOAD + WAIT, "program") == ("clean", [])
    assert verdict(ADDRESS + WRITE + "bar.sync 0;\n" + LOAD + WAIT, "program")[0] != "clean"
