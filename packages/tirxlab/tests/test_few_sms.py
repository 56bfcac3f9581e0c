"""A kernels file built for fewer SMs than it says, so that each CTA gets more tiles."""

import pytest

from tirxlab.builders import builder
from tirxlab.checkout import ROOT
from tirxlab.rubric import load_rubric
from tirxlab.sandbox import Builder
from tirxlab.steps import names_sm_count, read_text, with_sm_count

REFERENCE = ROOT / "instructor" / "solutions" / "gemm_kernels.py"


def number_after(text: str, count: int | None) -> int:
    space: dict = {}
    exec(compile(with_sm_count(text, count), "<test>", "exec"), space)
    return space["SM_COUNT"]


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("SM_COUNT = 148", 6, 6),
        ("SM_COUNT = 148", None, 148),
        ("SM_COUNT = 140 + 8", 6, 148),  # not a plain number: unchanged
        ("if True:\n    SM_COUNT = 148", 6, 148),
    ],
)
def test_the_line_of_sm_count_gets_another_number(text, count, expected):
    assert number_after(text, count) == expected


def test_numbers_made_of_sm_count_follow():
    space: dict = {}
    exec(compile(with_sm_count("SM_COUNT: int = 148\nPAIRS = SM_COUNT // 2", 10), "<test>", "exec"), space)
    assert space["PAIRS"] == 5


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("return SM_COUNT", False),
        ("return 148", True),
        ("return 74", True),
        ('"""148 CTAs."""', False),
        ("return 1480", False),
    ],
)
def test_a_step_that_writes_the_number_keeps_it(body, named):
    assert names_sm_count(f"def hgemm_v6(M, N, K):\n    {body}\n", 6) is named


@pytest.mark.parametrize(
    ("head", "named"),
    [
        ("SM_COUNT = 148  # B200", False),
        ("SM_COUNT: int = 148", False),
        ("SM_COUNT = 148\nWORKERS = 148", True),
        ("SM_COUNT = 148\nPAIRS = 74", True),
        ("SM_COUNT = 148\n\ndef scheduler(clusters=148):\n    pass", True),
        ("SM_COUNT = 148\n\nclass Chip:\n    sms = 148", True),
        ("SM_COUNT = 148\n\ndef hgemm_v7(M, N, K):\n    return 148", False),
    ],
)
def test_what_stands_beside_the_steps_may_write_the_number_too(head, named):
    assert names_sm_count(f"{head}\n\n\ndef hgemm_v6(M, N, K):\n    return SM_COUNT\n", 6) is named


def test_a_syntax_error_in_one_step_leaves_the_others_their_number_of_sms(tmp_path):
    """A drawn size is built with a changed number: in a broken file, that removed all steps but the first."""
    broken = read_text(REFERENCE).replace("def hgemm_v3(M, N, K):", "def hgemm_v3(M, N, K:")
    (tmp_path / "kernels.py").write_text(broken)
    with Builder(broken) as building:
        assert building.build(6, (512, 256, 64), 16).artifact.grid[0] == 16
    assert callable(builder(tmp_path / "kernels.py", 2, 148))


@pytest.mark.parametrize("step", (6, 9))
def test_the_rubrics_size_is_built_for_few_sms(step):
    rubric, text = load_rubric(), read_text(REFERENCE)
    size = rubric.uneven[step][-1]
    with Builder(text) as builder:
        assert builder.build(step, size).artifact.grid[0] == rubric.few_sms[step, size]
        assert builder.build(step, (512, 256, 64)).artifact.grid[0] == 148


def test_ptx_alone_is_the_ptx_of_the_whole_and_is_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    with Builder(read_text(REFERENCE)) as builder:
        alone, whole, again = (builder.build(1, (128, 128, 64), whole=whole).artifact for whole in (0, 1, 0))
    assert alone.ptx == whole.ptx and not alone.cubin
    assert whole.cubin == again.cubin != b""
