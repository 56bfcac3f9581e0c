"""Fifty kernels that try to carry a hidden size out: a student learns one bit per step, whether it passes."""

from copy import deepcopy
from pathlib import Path

import pytest

from instructor.autograder import plan
from instructor.autograder.grading import Options, grade
from instructor.autograder.plan import Hidden, load_hidden
from instructor.autograder.stand_in import stand_in
from instructor.autograder.submission import Submission
from instructor.exploits.leaks import LEAKS, kernels_file
from instructor.formats import FORMATS, page, words
from tirxlab.rubric import load_rubric
from tirxlab.sandbox import Builder, Limits
from tirxlab.steps import STEPS, sections

REFERENCE = (Path(__file__).parents[1] / "solutions" / "gemm_kernels.py").read_text(encoding="utf-8")
SIZES = ((256, 128, 64), (128, 384, 128), (384, 256, 192), (512, 128, 320))
PUBLIC = sorted({size for step in STEPS for size in load_rubric().graded[step]})
GROUPS = range(0, len(LEAKS), 5)  # in the place of the first five steps, whose public sizes are small


def outputs(leaks, size) -> tuple[dict[str, tuple], str]:
    """(leak -> all that a student sees of its step, the pages as a whole), at this hidden size."""
    hidden = Hidden("salt", 0, dict.fromkeys(STEPS, (size,)))
    text = kernels_file(leaks, sections(REFERENCE), PUBLIC)
    options = Options(steps=STEPS[: len(leaks)], hidden=hidden, build=Limits(seconds=20), jobs=2)
    made = grade(Submission("gemm_kernels.py", text), options)
    seen = {}
    for leak, step in zip(leaks, made.steps, strict=True):
        seen[leak.name] = (step.state, step.earned, step.right, step.implemented, step.complete, *step.hints)
    return seen, words(made) + page(made)


@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=() if n == GROUPS[-1] else pytest.mark.slow) for n in GROUPS]
)
@pytest.mark.timeout(1800)
def test_a_hidden_size_comes_out_as_one_bit_a_step(first, monkeypatch):
    """Without the size drawn for a submission, at which most of them fail."""
    monkeypatch.setattr(plan, "drawn", lambda step, seed, sms: None)
    leaks = LEAKS[first : first + 5]
    each = [outputs(leaks, size) for size in SIZES]
    for leak in leaks:
        told = {seen[leak.name] for seen, _ in each}
        assert len(told) <= 2, (leak.name, told)
    pages = {}
    for seen, text in each:
        assert (
            pages.setdefault(tuple(seen.values()), text) == text
        )  # nothing else on the page tells them apart


def test_there_are_fifty_and_a_naive_grader_tells_most_of_them():
    assert len({leak.name for leak in LEAKS}) == len(LEAKS) >= 50


SHOWN = sorted(set(FORMATS) - {"json"})  # which is the course's alone


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_student_gets_says_nothing_of_what_grading_took(name):
    made = grade(Submission("one.py", sections(REFERENCE)[0]), Options(steps=(1, 2)))
    run = {"size": (128, 128, 7 * 64), "secret": True, "seconds": 1.0, "instructions": 1}
    for step in made.steps:
        step.runs = [run]
    other = deepcopy(made)
    other.seconds, other.cpu_seconds, other.memory = made.seconds + 1234.5, 2345.6, made.memory + (777 << 20)
    for step in other.steps:
        step.runs = [run | {"size": (128, 128, 9 * 64), "seconds": 987.6, "instructions": 10**7}]
    assert FORMATS[name](made) == FORMATS[name](other)
    assert FORMATS["json"](made) != FORMATS["json"](other)


TELLS = """

def hgemm_v2(M, N, K):
    import builtins

    builtins.seen = getattr(builtins, "seen", []) + [(M, N, K)]
    return right(M, N, K)


def hgemm_v1(M, N, K):
    import builtins

    raise KeyError(getattr(builtins, "seen", None))


def hgemm_v3(M, N, K):
    import builtins

    if {stays} or (M, N, K) in {public}:
        return right(M, N, K)
    raise KeyError(getattr(builtins, "seen", None))
"""


@pytest.mark.parametrize("stays", [True, False])
def test_what_a_step_was_asked_for_is_unknown_to_the_code_of_another(monkeypatch, stays):
    """Everything about public sizes and the stand-in is shown: neither is built after a hidden size."""
    monkeypatch.setattr(plan, "drawn", lambda step, seed, sms: None)
    parts = sections(REFERENCE)
    text = (
        parts[0] + parts[3].replace("def hgemm_v3(", "def right(") + TELLS.format(stays=stays, public=PUBLIC)
    )
    size = (128, 128, 832)
    hidden = Hidden("salt", 0, {2: (size,), 3: ((512, 128, 320),)})
    made = grade(Submission("gemm_kernels.py", text), Options(steps=(1, 2, 3), hidden=hidden))
    hints = " ".join(hint for step in made.steps for hint in step.hints)
    assert "KeyError" in hints and "832" not in hints and ("keeps to itself" in hints) != stays


def test_nothing_is_built_after_a_hidden_size(monkeypatch):
    """Code that is built later can read the clock, and show by its output how long a hidden size took."""
    hidden = Hidden("salt", 0, {2: ((128, 128, 832),), 3: ((512, 128, 320),)})
    secrets, asked, build = {(2, (128, 128, 832)), (3, (512, 128, 320))}, [], Builder.build

    def noted(self, step, size, *others, **more):
        asked.append((step, size))
        return build(self, step, size, *others, **more)

    monkeypatch.setattr(Builder, "build", noted)
    parts = sections(REFERENCE)
    text = parts[0]
    for step in (2, 3):
        text += parts[step].replace(f"hgemm_v{step}(", f"right_{step}(") + FAILS.format(
            step=step, public=PUBLIC
        )
    made = grade(Submission("gemm_kernels.py", text), Options(steps=(2, 3), hidden=hidden))
    assert all("keeps to itself, but not at" in step.hints[0] for step in made.steps), made.steps
    assert set(asked[-2:]) == secrets and not secrets & set(asked[:-2]) and len(asked) > 4


FAILS = """

def hgemm_v{step}(M, N, K):
    assert K > 1000 or (M, N, K) in {public}
    return right_{step}(M, N, K)


"""


def test_a_stand_in_is_the_size_that_was_drawn_run_as_hidden_ones_are(step=4):
    looked_at = next(run for run in plan.plan(step, "a", load_hidden()) if run.record)
    made = stand_in(looked_at)
    secret = next(run for run in plan.plan(step, "a", load_hidden()) if run.secret)
    assert made.launch == looked_at.launch and made.order == secret.order and not (made.secret or made.drawn)
