"""Kernels of other compilers (research/foreign): right results against numpy, no `error`, under two orders.

What is not modelled must be reported: such a kernel is listed with the words of its finding. Findings that a
compiler's kernels leave as a review are listed too; docs/contributing/validation.md says why.
"""

import re

import numpy as np
import pytest

import ptxsim
from research.foreign.cases import Case, load_cases

CASES = {case.name: case for case in load_cases()}
INCOMPLETE: dict[str, str] = {}  # kernel -> words of the missing piece
REVIEWS = {  # compiler -> (kind, words) of the reviews that its kernels get
    "Triton": {
        ("race", "no tcgen05.fence::after_thread_sync between the wait"),
        ("race", "no tcgen05.fence::before_thread_sync / after_thread_sync pair"),
        ("race", "no tcgen05.fence::before_thread_sync between that and the barrier"),  # before dealloc
        ("race", "no barrier between them, but both write the same value"),
        ("async-pending", "before tcgen05.wait::ld"),
        ("proxy-fence", "no fence.proxy.async for .shared::cta"),
        ("proxy-fence", "fence.proxy.async ran after the barrier"),
        ("mbarrier", "neither fence.mbarrier_init nor fence.proxy.async"),
    },
    "nvidia-cutlass-dsl": {
        ("race", "no tcgen05.fence::after_thread_sync between the wait"),
        ("race", "no tcgen05.fence::before_thread_sync between that and the barrier"),  # before dealloc
        ("illegal", "TMA store from"),  # by all lanes of a warp
    },
    "numba-cuda": set(),
    "nvcc": set(),
}


def compiler(case) -> str:
    return case.launch["compiler"].split()[0]


def test_the_collection_is_what_it_claims():
    for target in ("sm_80", "sm_90a", "sm_100a"):
        made_by = {compiler(c) for c in CASES.values() if re.search(rf"\.target {target}\b", c.ptx)}
        assert {"Triton", "nvidia-cutlass-dsl"} <= made_by
    assert {compiler(case) for case in CASES.values()} == set(REVIEWS)
    assert set(INCOMPLETE) <= set(CASES)


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("name", CASES)
def test_kernel(name, order):
    case = CASES[name]
    result = case.run(order)
    found = [f for f in result.findings if f.severity == "incomplete"]
    if name in INCOMPLETE:
        assert INCOMPLETE[name] in found[0].message
    else:
        assert found == []
        assert case.mismatch() == ""
    known = REVIEWS[compiler(case)]
    for finding in (f for f in result.findings if f.severity != "incomplete"):
        assert finding.severity == "review", str(finding)
        assert any(finding.kind == kind and words in finding.message for kind, words in known), str(finding)


def test_a_of_64_rows_starts_at_the_lane_of_d():
    """Layout F: A and D both use lanes 0-15 of each warp, or both lanes 16-31 (PTX ISA 9.7.16.10.5)."""
    case = CASES["triton_attention_sm100"]
    column = re.search(r"tcgen05.mma.*, \[ (%r\d+) \+ 0 \]", case.ptx).group(1)
    upper, count = re.subn(rf"(add.s32 \t{column}, %r\d+), 64;", r"\1, 1048640;", case.ptx)
    assert count == 1
    result = Case(case.name, upper, case.launch).run()
    assert "A at lane 16, D at lane 0" in next(f for f in result.findings if f.kind == "illegal").message


def test_a_wrong_result_is_seen():
    case = CASES["triton_add_masked_sm80"]
    case.run()
    case.values["out"][999] += 1
    assert case.mismatch().startswith("out: 1 differ; out[999]")


def test_the_same_constant_from_many_threads_is_no_race():
    """Triton lets all warps store the same word; a store of different values stays a race."""
    head = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k() {
.reg .b32 %r<4>; .shared .b32 word;
mov.u32 %r1, %tid.x; mov.b32 %r2, 7; """
    module = ptxsim.load(head + "st.shared.b32 [word], %r2; st.shared.b32 [word], 5; ret; }")
    assert [f.kind for f in module.launch("k", block=128).findings] == ["race"]  # 5 against 7
    module = ptxsim.load(head + "st.shared.b32 [word], %r2; ret; }")
    assert module.launch("k", block=128).findings == []
    module = ptxsim.load(head + "st.shared.b32 [word], %r1; ret; }")
    assert [f.kind for f in module.launch("k", block=128).findings] == ["race"]


def test_a_warp_that_adds_by_tma_adds_32_times():
    """CuTe DSL lets all lanes of a warp store the same tile. That is right for a store, but not for a sum."""
    case = CASES["cute_clusters_sm90"]
    store, add = "cp.async.bulk.tensor.2d.global.shared::cta.tile", "cp.reduce.async.bulk.tensor.2d.global"
    assert case.ptx.count(store) == 1
    sums = Case(case.name, case.ptx.replace(store, f"{add}.shared::cta.add.tile"), case.launch)
    assert ("illegal", "error") in {(f.kind, f.severity) for f in sums.run().findings}
    fresh = sums.values["c"].astype(np.float32)
    case.run()
    assert np.allclose(fresh, 32 * case.values["c"].astype(np.float32), rtol=2e-2, atol=1)


@pytest.mark.parametrize(("barrier", "ends"), [
    (0, {"wmma.load.a", "wmma.load.b", "st.shared"}), (1, {"wmma.load.a", "wmma.load.b", "st.shared"}),
    (2, {"ld.shared", "wmma.store.d"}),
])  # fmt: skip
def test_a_product_with_mma_h_needs_its_barriers(barrier, ends):
    """nvcc's __syncthreads() before the loads of a tile, after them, and before the result is read."""
    case = CASES["nvcc_shared_sm90a"]
    places = [match.start() for match in re.finditer(r"bar\.sync", case.ptx)]
    assert len(places) == 3
    without = f"{case.ptx[: places[barrier]]}// {case.ptx[places[barrier] :]}"
    findings = Case(case.name, without, case.launch).run().findings
    assert {(f.kind, f.severity) for f in findings} == {("race", "error")}
    assert all(any(f.where["ptx"].startswith(end) for f in findings) for end in ends)


def test_padding_that_leaves_rows_of_a_tile_misaligned():
    """Rows of 36 halves are 72 bytes apart: some threads would load 16 bytes from a multiple of 8."""
    case = CASES["nvcc_shared_sm90a"]
    text, count = re.subn(r"(mov\.u32 \t%r\d+), 40;", r"\1, 36;", case.ptx)
    assert count
    finding = Case(case.name, text, case.launch).run().findings[0]
    assert (finding.kind, finding.severity) == ("misaligned", "error")
    assert "its lines are 72 B apart; both must be multiples of 16 B" in finding.message
    assert finding.where["ptx"].startswith("wmma.load.a")


STORE = "st.shared.b32 [%r2], %r3;"
STORE_ROWS = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r3};"


@pytest.mark.parametrize(("store", "step"), [(STORE, 4), (STORE_ROWS, 16)])
def test_the_same_values_from_many_warps_are_left_to_review(store, step):
    """Triton lets each warp store its copy of a small tile. All copies leave the same bytes in memory."""
    text = f""".version 9.0
.target sm_90a
.address_size 64
.visible .entry k() {{
.reg .b32 %r<4>; .shared .align 128 .b8 tile[512];
mov.u32 %r1, %tid.x; mov.u32 %r2, tile; and.b32 %r3, %r1, 31;
mad.lo.u32 %r2, %r3, {step}, %r2; // the copy
{store} ret; }}"""
    (finding,) = ptxsim.load(text).launch("k", block=64).findings
    assert (finding.kind, finding.severity) == ("race", "review")
    assert "both write the same value" in finding.message
    other = text.replace("// the copy", "add.u32 %r3, %r1, 1;")
    assert {f.severity for f in ptxsim.load(other).launch("k", block=64).findings} == {"error"}


def test_a_struct_parameter_with_a_pointer():
    text = """.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 8 .b8 s[16]) {
.reg .b32 %r<3>; .reg .b64 %d<2>;
ld.param.b64 %d1, [s]; ld.param.b32 %r1, [s+8]; ld.param.b32 %r2, [s+12];
st.global.b32 [%d1], %r1; st.global.b32 [%d1+4], %r2; ret; }"""
    out = np.zeros(2, np.int32)
    module = ptxsim.load(text)
    fields = [(0, out), (8, np.int32(-3)), (12, np.int32(9))]
    assert module.launch("k", args=[fields]).verdict == "clean"
    assert out.tolist() == [-3, 9]
    with pytest.raises(ValueError, match="has a field at 12"):
        module.launch("k", args=[[(12, out)]])
