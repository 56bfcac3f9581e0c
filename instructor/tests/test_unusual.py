"""Right kernels that do not look like the reference earn all points: nobody is graded for likeness."""

from dataclasses import replace

import pytest
from more_unusual import MORE
from unusual import kernels, make, of_step

from instructor.autograder.building import built_for
from instructor.autograder.judge import judge
from instructor.autograder.plan import load_hidden, plan
from tirxlab.sandbox import Builder

EACH = 24
MADE = [(step, name, text) for step in range(1, 11) for name, text in kernels(step, EACH)]
MADE += [(step, f"{one.name}-alone", make(step, [one])) for one in MORE for step in one.steps]
PAIRS = ("256-columns", "backwards"), ("256-columns", "scattered")  # the first CTAs get no tile, or some
MADE += [
    (step, "+".join(pair), make(step, [one for one in (*MORE, *of_step(step)) if one.name in pair]))
    for pair in PAIRS
    for step in (7, 8)
]
QUICK = {(4, "256-columns-alone"), (5, "two-products-alone"), (5, "k-tiles-of-128-alone")}
QUICK |= {
    (4, "warp-2-issues"),
    (5, "3-stages"),
    (7, "one-arrives"),
    (7, "256-columns+backwards"),
    (8, "256-rows-alone"),
}


def test_there_are_choices_for_every_step_and_twenty_kernels_of_each_from_5_on():
    assert all(of_step(step) for step in range(1, 11))
    counts = {step: sum(one == step for one, _, _ in MADE) for step in range(5, 11)}
    assert min(counts.values()) > EACH
    assert QUICK <= {(step, name) for step, name, _ in MADE}


@pytest.mark.parametrize(
    "step, text",
    [
        pytest.param(step, text, id=f"{step}-{name}", marks=() if (step, name) in QUICK else pytest.mark.slow)
        for step, name, text in MADE
    ],
)
def test_an_unusual_right_kernel_lacks_nothing(step, text):
    with Builder(text) as builder:
        for run in [run for run in plan(step, "a" * 64, load_hidden()) if run.record or run.alone]:
            run, built = built_for(run, builder.build)
            assert built.artifact, built.message
            judged = judge(run, built.artifact)
            assert (judged.right, judged.reason, judged.hint) == (True, "", "")


@pytest.mark.slow
def test_a_cluster_without_tiles_says_nothing_of_the_others():
    """With tiles in chunks the last CTAs get none, and the seed may choose one of these."""
    (chunks,) = [choice for choice in of_step(7) if choice.name == "in-chunks"]
    (run,) = [run for run in plan(7, "a" * 64, load_hidden()) if run.alone]
    with Builder(make(7, [chunks])) as builder:
        built = builder.build(7, run.size)
    judged = judge(replace(run, seed=147), built.artifact)
    assert (judged.right, judged.reason, judged.hint) == (True, "", "")
