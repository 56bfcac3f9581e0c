"""The referee's page shows the measured results."""

import json

import pytest

from research.referee import gluon_page
from research.referee import hopper as rungs
from tirxlab.devices import sim


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


def test_two_warpgroups_that_wait_again_are_told_in_the_plural():
    key = "Hopper rung 5 (store) 256x256x256: no arrival"
    artifact = rungs.cases()[key]
    data, _ = rungs.arrays(key, artifact)
    first = sim.run(artifact, data).findings[0]
    assert "WG0, WG1 have waited for full 3 times and signalled empty 1 time, and wait again" in first.message
