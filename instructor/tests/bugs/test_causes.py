"""The first finding names the cause; all others come after it, one line each in a report."""

from __future__ import annotations

import pytest
from corpus import build_bug, matches, of_file, on_one_screen, run_bug

import utils

BUGS = [bug for name in ("causes", "slips", "walks", "strays", "places") for bug in of_file(name)]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_cause_stands_on_top(bug):
    artifact = build_bug(bug)
    run = run_bug(bug, artifact)
    assert matches(bug, run.findings[0]), [str(f).split("\n")[0] for f in run.findings]
    assert on_one_screen(run)
    told = utils.report(run, artifact).splitlines()
    assert sum(line.startswith("error: ") for line in told) == 1
    assert sum(line.startswith("also: ") for line in told) == min(len(run.findings) - 1, utils.ALSO)
