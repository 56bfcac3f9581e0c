"""Kernels by other authors: correct unchanged, and each mistake changes its own step."""

import ast
import functools
import re

import parked
import pytest

from research.advice import hands
from research.advice.mistakes import Mistake
from research.advice.trials import row_of
from tirxlab.cli.runs import Job, Runner

STEPS = [
    (hand, int(step))
    for hand in hands.HANDS
    for step in re.findall(r"^def hgemm_v(\d+)", hands.kernels(hand), re.M)
]
SIZE = (512, 512, 320)


def planted(what: str) -> Mistake:
    """The mistake with this description."""
    return next(one for one in hands.planted() if one.what.startswith(what))


@pytest.mark.parametrize("hand, step", STEPS)
def test_a_kernel_of_another_hand_is_right(monkeypatch, tmp_path, hand, step):
    parked.use(monkeypatch)
    path = tmp_path / f"{hand}.py"
    path.write_text(hands.kernels(hand))
    with Runner(path) as runner:
        ((_, outcome),) = runner.run([Job(path, step, SIZE, order="adverse")])
    assert (outcome.verdict, outcome.right) == ("clean", True), outcome.message


@functools.cache
def statements(text: str) -> list[tuple[str, str]]:
    return [(getattr(node, "name", ""), ast.dump(node)) for node in ast.parse(text).body]


def test_every_mistake_changes_its_own_step():
    for mistake in hands.planted():
        right = statements(hands.kernels(mistake.source.file.removesuffix(".py")))
        pairs = zip(statements(mistake.text), right, strict=True)
        assert [a[0] for a, b in pairs if a != b] == [mistake.source.builder], mistake.what


TOLD = {  # words that identify the mistake -> the cause of the first finding
    "The guard of the next load is off by one": "load-outside",
    "Lets only the warp that issued the MMAs wait for the last commit": "never-waits",
    "Uses one strip buffer for both strips, as the store is waited for": "group-late",
    "Moves the ring on before the next load": "leaves-ring",
    "Moves the first loads into the loop over tiles": "loaded-again",
    "Counts the K tiles of the loading thread anew with each output tile": "stays",
    "Goes back to one accumulator in both roles": "columns-stay",
    "Slots and flips of all three roles start again with each tile": "again",
    "Thinks that A and B of a round arrive together and waits for A alone": "ahead-unwaited",
}


@pytest.mark.parametrize("what", TOLD)
def test_the_first_finding_names_the_cause(monkeypatch, what):
    parked.use(monkeypatch)
    row = row_of(planted(what), wall=0)
    assert row["findings"][0]["evidence"]["cause"] == TOLD[what], row["message"]


@pytest.mark.parametrize(
    "what, said",
    [
        ("The barrier of an accumulator counts one warpgroup", "for all of them? Then init must count"),
        ("The loaders take the next tile for the next number", "take the same tile in the same round"),
    ],
)
def test_the_message_asks_for_the_cause(monkeypatch, what, said):
    parked.use(monkeypatch)
    row = row_of(planted(what), wall=0)
    assert said in row["message"]


def test_all_lines_at_which_a_warp_has_waited_are_seen(monkeypatch):
    parked.use(monkeypatch)
    what = "Waits for the first accumulator again before the second product"
    row = row_of(planted(what), wall=0)
    assert "has passed its waits (lines 596 and 602): 12 times on [0], 0 on [1]" in row["message"]


def test_a_commit_whose_index_begins_in_front_of_its_array_is_not_meant_for_another(monkeypatch):
    """Its address is the array's minus one element, plus the warp's number, by the program text alone."""
    parked.use(monkeypatch)
    row = row_of(planted("Gives the state that waits for an empty accumulator two stages"), wall=0)
    assert len(row["findings"]) > 1
    assert "misrouted" not in {one["evidence"].get("cause") for one in row["findings"]}
