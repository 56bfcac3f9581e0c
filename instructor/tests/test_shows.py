"""Techniques for show: the result keeps its points, the implementation loses them, and a hint says why."""

import pytest
from more_shows import MORE
from shows import SHOWS

from instructor.autograder.building import built_for
from instructor.autograder.judge import judge
from instructor.autograder.plan import load_hidden, plan
from tirxlab.sandbox import Builder

QUICK = {("threads-multiply", 1), ("both-at-once", 5), ("filled-once", 8), ("many-slices-at-once", 5)}


@pytest.mark.parametrize(
    "show",
    [
        pytest.param(s, id=f"{s.step}-{s.name}", marks=() if (s.name, s.step) in QUICK else pytest.mark.slow)
        for s in (*SHOWS, *MORE)
    ],
)
def test_what_is_for_show_earns_no_implementation(show):
    runs = plan(show.step, "a" * 64, load_hidden())
    late = "-from-" in show.name  # well-behaved before: seen in the cluster that is run alone
    run = next(run for run in runs if (run.alone if late else run.record))
    with Builder(show.text) as builder:
        run, built = built_for(run, builder.build)
    assert built.artifact, built.message
    judged = judge(run, built.artifact)
    assert judged.right, judged.reason
    assert show.words in judged.hint
