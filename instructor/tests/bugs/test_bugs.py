"""Every bug of the corpus leads to its finding, on one screen, and its correct twin is clean in both orders.

By default one twin, and one bug of each group that no other test runs whole; all with `./lab test --all`
(marked slow).
"""

from __future__ import annotations

import pytest
from corpus import FILES, Bug, bug_source, build_bug, matches, of_file, on_one_screen, run_bug, wrong_result

BUGS = [bug for name in FILES for bug in of_file(name)]
WHOLE = {  # run by test_causes.py and test_wording.py
    bug.name for name in ("causes", "slips", "walks", "strays", "places", "wording") for bug in of_file(name)
}
FIRST = set({bug.group: bug.name for bug in reversed(BUGS)}.values()) - WHOLE


def _twins() -> list[Bug]:
    """One bug for each correct kernel that the corpus compares with."""
    return list({(bug.step, bug.size, bug.ctas): bug for bug in reversed(BUGS)}.values())


def _parameters(bugs: list[Bug], quick: set[str]) -> list:
    slow = pytest.mark.slow
    return [pytest.param(bug, id=bug.name, marks=() if bug.name in quick else slow) for bug in bugs]


def test_corpus_is_large_and_names_are_unique():
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 75


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_edits_fit_the_reference(bug):
    assert bug_source(bug) != bug_source(bug, mutated=False)
    assert bug.why and bug.names


@pytest.mark.parametrize("bug", _parameters(BUGS, FIRST))
def test_bug_is_found(bug):
    if bug.kind == "build":
        with pytest.raises(Exception) as refused:
            build_bug(bug)
        assert bug.names in str(refused.value)
        return
    run = run_bug(bug, build_bug(bug))
    if bug.kind == "result":
        assert bug.names in wrong_result(bug, run)
        return
    assert any(matches(bug, finding) for finding in run.findings), [str(f) for f in run.findings]
    assert on_one_screen(run)


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("bug", _parameters(_twins(), {_twins()[0].name, _twins()[-1].name}))
def test_correct_twin_is_clean(bug, order):
    run = run_bug(bug, build_bug(bug, mutated=False), order)
    assert run.verdict == "clean", [str(f) for f in run.findings]
