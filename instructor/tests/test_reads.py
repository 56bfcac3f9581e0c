"""Whether a kernel can read D, by its PTX: what loads from global memory, and through which tensor map."""

from dataclasses import replace

import pytest

from instructor.autograder import judge as judging
from instructor.autograder.judge import judge
from instructor.autograder.plan import Run
from instructor.autograder.reads import _LOAD, cannot_read
from instructor.solutions import gemm_kernels
from tirxlab.toolchain.build import build

SIZE = (256, 256, 128)
STEP4 = build(gemm_kernels.hgemm_v4(*SIZE))
REGISTER = _LOAD.search(STEP4.ptx)[1]  # the map of a load
PARAM = f"{STEP4.entry}_param_"
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
HARMLESS = (
    "",
    "ld.shared.u32 %r1, [%r2];",
    "ld.volatile.shared.u32 %r1, [%r2];",
    "ld.param.u64 %rd8998, [x];",
    "ld.const.u32 %r1, [table+8];",
    "ld.local.b32 %r1, [%rd1];",
    "atom.shared.add.u32 %r1, [%r2], 1;",
    "red.async.relaxed.cluster.shared::cluster.add.u32 [%r1], 1, [%r2];",
    "// ld.global.u32 %r1, [%rd1];",
    "/* ld.global.u32 %r1, [%rd1]; */",
    "st.global.u32 [%rd1], %r1;",
    "tcgen05.wait::ld.sync.aligned;",
    f"prefetch.tensormap [{REGISTER}];",
)
READS = (
    "ld.global.u16 %rs1, [%rd9];",
    "ld.global.nc.u16 %rs1, [%rd9];",
    "ld.u16 %rs1, [%rd9];",
    "ld.relaxed.gpu.global.u32 %r1, [%rd9];",
    "ldu.global.u32 %r1, [%rd9];",
    "lab:ld.global.u32 %r1, [%rd9];",
    "@%p1 ld.global.u32 %r1, [%rd9];",
    "@%p1\tld.global.u32 %r1, [%rd9];",
    ".loc 1 2 3\nld.global.u32 %r1, [%rd9];",
    '.pragma "//"; ld.global.u32 %r1, [%rd9];',
    "/**/ld.global.u32 %r1, [%rd9];",
    "// no more\rld.global.u32 %r1, [%rd9];",
    "ld.param.u32 %r1, [%rd9];",
    "ld.const.u32 %r1, [ %rd9 + 4 ];",
    "atom.global.add.u32 %r1, [%rd9], 1;",
    "atom.add.u32 %r1, [%rd9], 1;",
    "red.global.add.u32 [%rd9], 1;",
    "cp.async.ca.shared.global [%r1], [%rd9], 16;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd9], 16, [%r2];",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd9], [%r1], 16;",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd9, {%r1, %r2}], [%r3];",
    "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [t, {%r5}];",
    "tensormap.replace.tile.global_address.global.b1024.b64 [%rd9], %rd8;",
    "call (x), f, (y);",
    "call.uni f;",
    f"mov.b64 {REGISTER}, {PARAM}2;",
    f"add.s64 {REGISTER}, {REGISTER}, 128;",
    f"shfl.sync.idx.b32 %r1|{REGISTER}, %r2, 0, 31, -1;",
    f".reg .b64 {REGISTER};",
    f".param .align 64 .b8 {PARAM}0[128];",
    f"{LOAD} [%r1], [%rd8999, {{%r1, %r2}}], [%r3];",
    f"mov.b64 %rd8999, {PARAM}2; {LOAD} [%r1], [%rd8999, {{%r1, %r2}}], [%r3];",
)


def with_line(line: str):
    start = STEP4.ptx.index("bar.sync")
    return replace(STEP4, ptx=f"{STEP4.ptx[:start]}{line}\n\t{STEP4.ptx[start:]}")


@pytest.mark.parametrize("line", HARMLESS)
def test_a_kernel_that_loads_other_buffers_by_tma_alone_cannot_read_d(line):
    made = with_line(line)
    assert [cannot_read(made, name) for name in "ABD"] == [False, False, True]


@pytest.mark.parametrize("line", READS)
def test_what_may_read_global_memory_may_read_d(line):
    assert not cannot_read(with_line(line), "D")


def test_a_map_that_is_for_d_reads_d():
    first, *others = STEP4.params
    assert not cannot_read(replace(STEP4, params=(replace(first, buffer="D"), *others)), "D")
    assert not cannot_read(build(gemm_kernels.hgemm_v2(128, 128, 128)), "D")  # threads load: through what?


@pytest.mark.parametrize("step, again", [(3, True), (4, False)])
def test_only_what_can_read_d_is_run_once_more_on_its_product(monkeypatch, step, again):
    ran = []
    monkeypatch.setattr(judging.Case, "spares", lambda self, before: ran.append(step) and False)
    made = build(getattr(gemm_kernels, f"hgemm_v{step}")(*SIZE))
    assert judge(Run(step, SIZE, "integers", "adverse", 5, record=True), made).right
    assert bool(ran) == again
