"""One run of one artifact: work skipped if D is already there, clusters that differ, endless runs."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_variants import REFERENCE, file_with

import utils
from instructor.autograder import case
from instructor.autograder import judge as judging
from instructor.autograder.judge import TALKS, inputs, judge
from instructor.autograder.plan import Run
from instructor.solutions import gemm_kernels
from ptxsim import Finding
from tirxlab.artifact import ScalarParam
from tirxlab.sandbox import Builder
from tirxlab.steps import sections
from tirxlab.toolchain import nvrtc
from tirxlab.toolchain.build import build, draft

SIZE, TILE = (256, 256, 128), (128, 128, 128)
RECORDED = Run(2, TILE, "integers", "adverse", 5, record=True)


def edited(statement: str, last: bool = False, step: int = 2, size=TILE):
    """The step's artifact with a statement at the head of its kernel, or at its end."""
    made = draft(getattr(gemm_kernels, f"hgemm_v{step}")(*size))
    start = made.cuda.index("{", made.cuda.index('extern "C" __global__')) + 1
    start = made.cuda.rindex("}") if last else start
    return nvrtc.finish(replace(made, cuda=made.cuda[:start] + statement + made.cuda[start:]))


def before_the_mmas(statement: str, step: int = 2):
    """The step's artifact with a statement before the MMAs, for the thread that issues them."""
    made = draft(getattr(gemm_kernels, f"hgemm_v{step}")(*TILE))
    first = made.cuda.index("ptx_tcgen05_mma_cta_1_kind_f16_SS(((")
    start = made.cuda.rindex("\n", 0, first)
    return nvrtc.finish(replace(made, cuda=made.cuda[:start] + statement + made.cuda[start:]))


TMEM = "((uint*)pool_buf_ptr)[0]"
COPY = f'asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" :: "r"({TMEM} + 256), "l"(descA_ptr[0]));'
SHIFT = f'asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"({TMEM} + 256));'


def spoilt(D: np.ndarray) -> np.ndarray:
    """D with some numbers wrong, some nearly right, some NaN, and some zeros of the other sign."""
    D = D.copy()
    D[:70:3, 5], D[1, :9], D[2, 1::2], D[-1, 3] = 0.5, D[1, :9] * np.float16(1.0005), np.nan, np.inf
    D[40:50] = np.nextafter(D[40:50], np.float16(np.inf))
    D[3][D[3] == 0] *= np.float16(-1)
    return D


@pytest.mark.parametrize("data", ["integers", "random"])
def test_the_part_that_is_wrong_is_that_of_all_numbers(data):
    """Most are equal bit by bit; only the others are compared as numbers."""
    run = Run(2, TILE, data, "program", 7)
    A, B = inputs(run)
    expected = (A.astype(np.float32) @ B.astype(np.float32).T).astype(np.float16)
    for D in expected, spoilt(expected), np.zeros_like(expected):
        one, other = D.astype(np.float32), expected.astype(np.float32)
        wrong = one != other if data == "integers" else judging._far(one, other)
        assert judging._wrong(case.Case(run, None, A, B, D)) == wrong.mean()
    huge = np.full_like(A, 60000), np.full_like(B, 60000)  # no result beyond float16's range is right
    with np.errstate(over="ignore"):
        assert judging._wrong(case.Case(run, None, *huge, np.full_like(D, np.inf))) == (data == "random")


def test_of_one_cluster_the_part_that_is_wrong_is_that_of_what_it_wrote():
    run = Run(2, (512, 384, 128), "windows", "program", 37, alone=True)
    A, B = inputs(run)
    right = (A.astype(np.float32) @ B.astype(np.float32).T).astype(np.float16)
    D = utils.canaries(right.shape, "float16")
    D[128:256, 192:320], D[290:296, :64] = right[128:256, 192:320], right[290:296, :64]
    seen = case.Case(run, None, A, B, D, written=case.written_of(D))
    assert judging._wrong_where_written(seen) == 0
    first = 128 + 37 % 32  # of the two rows in a block of 64 that are compared
    D[first, 200:216] = 0
    assert judging._wrong_where_written(seen) == 16 / (4 * 128 + 64)


@pytest.mark.parametrize("statement", [COPY, SHIFT])
def test_tensor_memory_may_be_filled_by_other_instructions_than_mmas(statement):
    judged = judge(RECORDED, before_the_mmas(statement))
    assert (judged.right, judged.reason, judged.hint) == (True, "", "")


def test_a_kernel_that_spares_its_work_when_d_is_there_already_is_wrong():
    canary = utils.CANARY["float16"]
    assert judge(RECORDED, edited("")).right
    spares = f"if (*(volatile unsigned short *)D_ptr != {canary}) return;"
    judged = judge(RECORDED, edited(spares))
    assert not judged.right and judged.reason == "it does other work when D holds the product already"
    assert judge(replace(RECORDED, record=False), edited(spares)).right  # one launch does not show it


@pytest.mark.parametrize("name, right", [("A", False), ("B", False), ("D", True)])
def test_a_kernel_that_leaves_something_in_an_input_is_wrong(name, right):
    """The next timed launch could find its answer there."""
    place = f"((volatile unsigned short *){name}_ptr)[0]"
    leaves = f"__syncthreads(); if (threadIdx.x == 0) {place} = {place} ^ {0 if right else 1};"
    judged = judge(replace(RECORDED, record=False), edited(leaves, last=True))
    assert judged.right == right and (right or f"changes its input {name}" in judged.reason)


@pytest.mark.parametrize("number", [1, 3])
def test_a_kernel_whose_other_clusters_work_otherwise_loses_the_implementation(monkeypatch, number):
    """Cluster 0 is step 4, cluster `number` is step 3: a launch could treat its CTAs differently."""
    right, early = (build(getattr(gemm_kernels, f"hgemm_v{step}")(*SIZE)) for step in (4, 3))
    real = case.simulate

    def simulate(run, artifact, *args, first=0, **more):
        return real(run, early if first == number else artifact, *args, first=first, **more)

    run = Run(4, SIZE, "integers", "adverse", 5, record=True)  # seed 5 looks at cluster 1 of 4, and the last
    assert judge(run, right).hint == ""
    monkeypatch.setattr(case, "simulate", simulate)
    judged = judge(run, right)
    assert judged.right and judged.hint.startswith("not all clusters work alike") and "TMA" in judged.hint


@pytest.mark.parametrize("alone", [False, True])
def test_clusters_that_wait_for_each_other_are_told_so(alone):
    """They cannot be run alone, so nobody can find out what D depends on."""
    waits = f"if (blockIdx.x > 0) while (*(volatile unsigned short *)D_ptr == {utils.CANARY['float16']});"
    run = Run(3, SIZE, "integers", 5, 5, record=not alone, drawn=True, alone=alone)
    judged = judge(run, edited(waits, step=3, size=SIZE))
    assert (judged.right, judged.reason, judged.hint, judged.behind) == (True, "", TALKS, TALKS)


@pytest.mark.parametrize("alone", [False, True])
def test_what_the_simulator_has_no_model_of_is_told(alone):
    rounds = ".reg .b32 x; .reg .f32 f; mov.b32 x, 7; mov.f32 f, 0f3F800000; cvt.rs.f16x2.f32 x, f, f, x;"
    adds = f'asm volatile("{{{rounds}}}");'
    judged = judge(Run(2, TILE, "windows", 5, 5, record=not alone, alone=alone), edited(adds))
    assert not judged.right and "cvt.rs is not modelled" in judged.reason


@pytest.fixture(scope="module")
def racy():
    """Step 5 without the fence that its store needs: no number of D shows it."""
    text = sections(REFERENCE)[5]
    fence = 'Tx.ptx.fence.proxy_async("shared::cta")\n            # TODO[end]'
    assert fence in text
    with Builder(file_with({5: text.replace(fence, "# TODO[end]")})) as builder:
        return builder.build(5, SIZE).artifact


def test_a_technique_that_races_at_the_drawn_size_alone_earns_nothing(racy):
    """The code knows by its process id which size is drawn; the whole run there has no checks."""
    run = Run(5, SIZE, "integers", 5, 5, record=True, drawn=True)
    assert judge(replace(run, record=False), racy).right
    judged = judge(run, racy)
    assert not judged.right and judged.reason.startswith("proxy-fence")


def test_a_technique_that_races_in_the_cluster_that_is_run_alone_earns_nothing(racy):
    judged = judge(Run(5, SIZE, "windows", 5, 5, drawn=True, alone=True), racy)
    assert not judged.right and judged.reason.startswith("proxy-fence")


def test_a_launch_has_a_budget_of_instructions(monkeypatch):
    endless = edited('for (unsigned i = 0; i < 4000000000u; ++i) asm volatile("");')
    monkeypatch.setattr(case, "INSTRUCTIONS", 100_000)
    judged = judge(RECORDED, endless)
    assert not judged.right and judged.reason and judged.instructions < 1_000_000


def test_a_grid_without_measure_is_refused_before_it_runs():
    judged = judge(RECORDED, replace(edited(""), grid=(1_000_000, 1, 1)))
    assert judged.verdict == "not run" and "1000000 CTAs" in judged.reason


@pytest.mark.parametrize("K", [64, 192, 320, 448])
def test_whole_numbers_are_exact_where_sums_in_half_precision_are_not(K):
    A, B = judging.inputs(replace(RECORDED, size=(128, 128, K)))
    exact = A.astype(np.int64) @ B.astype(np.int64).T
    assert np.abs(exact).max() <= 2048 and (exact.astype(np.float16) == exact).all()
    half = np.zeros((128, 128), np.float16)
    for k in range(0, K, 16):
        half = (half + A[:, k : k + 16].astype(np.float32) @ B[:, k : k + 16].astype(np.float32).T).astype(
            np.float16
        )
    assert (half != exact).mean() > 0.2


def test_a_text_that_is_written_over_is_state():
    """A launch could count itself in the format of a printf."""
    keeps = edited('volatile char *text = (char *)"0 launches"; if (threadIdx.x == 0) text[0] = text[0] + 1;')
    judged = judge(RECORDED, keeps)
    assert not judged.right and "keeps global memory" in judged.reason


def test_findings_of_any_number_and_length_leave_little_behind():
    """A shared array with a long name, loaded uninitialized in many lines: half a gigabyte of messages."""
    loads = "".join(f"// @src {n}\\n ld.shared.u32 t, [a]; bar.sync 0;\\n " for n in range(1, 300))
    name = "v" * 500_000
    array = f".reg .b32 t, a; .shared .align 4 .b8 {name}[16]; mov.u32 a, {name};"
    judged = judge(RECORDED, edited(f'asm volatile("{{ {array}\\n {loads} }}");'))
    assert len(judged.findings) <= judging.MOST_FINDINGS + 5 and len(repr(judged)) < 2_000_000
    assert any(finding["kind"] == "uninitialized" for finding in judged.findings)


def test_a_kind_is_kept_however_many_others_there_are():
    many = [Finding("race", "review", f"{n}", "", {}, {}) for n in range(500)]
    found = judging.kept([*many, Finding("uninitialized", "review", "x" * 50_000, "", {}, {})])
    assert len(found) == judging.MOST_FINDINGS + 1 and found[-1]["kind"] == "uninitialized"
    assert len(found[-1]["message"]) == judging.LONGEST


def test_printing_costs_nothing_and_a_flood_is_cut(monkeypatch):
    assert judge(RECORDED, edited('if (threadIdx.x == 0) printf("%d of %s\\n", 3, "four");')).right
    monkeypatch.setattr(case, "INSTRUCTIONS", 100_000)
    flood = edited('for (unsigned i = 0; i < 4000000000u; ++i) printf("%99999999d\\n", i);')
    assert not judge(RECORDED, flood).right


@pytest.mark.parametrize(
    "kind, value", [("S9", 1), ("object", 1), ("f2,f2", 1), ("int32", 10**30), ("nan", 0)]
)
def test_a_parameter_of_no_type_of_numbers_is_one_line(kind, value):
    artifact = edited("")
    odd = replace(artifact, params=(*artifact.params[:-1], ScalarParam("x", kind, value)))
    judged = judge(RECORDED, odd)
    assert not judged.right and judged.reason.startswith("it cannot be launched")


def test_a_run_that_uses_up_its_instructions_says_so(monkeypatch):
    """A run that loops in the same state is found sooner, and reported as that."""
    monkeypatch.setattr(case, "INSTRUCTIONS", 100_000)
    plain = replace(RECORDED, record=False)
    counts = "for (volatile int i = 0; i >= 0; ) i = i + 1;"
    judged = judge(plain, edited(counts))
    assert judged.over and not judged.right
    judged = judge(plain, edited("for (;;) __syncthreads();"))
    assert not judged.over and not judged.right and judged.reason
    assert judge(plain, edited("")).right
