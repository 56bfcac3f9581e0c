"""The referee's page says what was measured."""

import json

import pytest

from research.referee import gluon_page


def test_the_table_of_gluon_kernels_is_that_of_the_results():
    readme = (gluon_page.HERE / "README.md").read_text()
    assert gluon_page.page(readme) == readme


def test_a_tool_that_says_nothing_has_found_nothing():
    assert not gluon_page.found("consan", {"said": "", "result": "hung"})
    assert gluon_page.found("consan", {"said": "Deadlock detected", "result": "failed"})
    assert not gluon_page.found("ptxsim", {"verdict": "review", "said": "race: .."})


def test_files_of_different_cases_are_refused(tmp_path):
    files = []
    for number, case in enumerate(("a: none", "a: none", "b: none")):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text(json.dumps({case: {"said": "", "result": "right"}}) + "\n")
    with pytest.raises(ValueError, match="the same cases"):
        gluon_page.merged(files)
