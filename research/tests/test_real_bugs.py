"""Public fixes: the fault is found, the fixed kernel has no `error`. Eight pairs always, all with `slow`."""

from __future__ import annotations

import pytest

from research.real_bugs.corpus import load_case, load_corpus, outcome, run

ALWAYS = {
    "cutlass_3324", "flashinfer_5334", "flashkda_0025", "sglang_37663", "tilelang_2674", "tirx_kernels_0009",
    "tirx_kernels_0202_elected", "triton_11731",
}  # fmt: skip
CASES = load_corpus()


def _parameter(case):
    marks = [] if case.name in ALWAYS else [pytest.mark.slow]
    if case.open:
        marks.append(pytest.mark.xfail(reason=case.open, strict=False))
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
def test_the_fault_comes_first(case):
    before = run(case, mended=False)
    assert outcome(case, before) == "cause first", [str(finding) for finding in before.findings]


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=[] if c.name in ALWAYS else [pytest.mark.slow]) for c in CASES]
)
def test_the_mended_kernel_has_no_error(case):
    after = run(case, mended=True)
    assert after.verdict in ("clean", "review"), [str(finding) for finding in after.findings]


def test_cases_say_where_they_come_from():
    assert ALWAYS <= {case.name for case in CASES}
    for case in CASES:
        assert case.link.startswith("https://github.com/"), case.name
        repository, number = case.source.split(",")[0].split("#")
        assert f"github.com/{repository}/" in case.link and case.link.endswith(f"/{number}"), case.name
        assert "BEFORE(" in case.text or "AFTER(" in case.text, case.name


def test_a_file_without_its_opening_lines_is_refused(tmp_path):
    (tmp_path / "odd.cu").write_text("// source: a/b#1, 2026-01-01\nKERNEL(32) {}\n")
    with pytest.raises(ValueError, match="odd.cu: no line `// link"):
        load_case(tmp_path / "odd.cu")
