"""Kernels of other hands: right as they are, and each mistake changes its own step."""

import ast
import re

import parked
import pytest

from research.advice import hands
from tirxlab.cli.runs import Job, Runner

STEPS = [
    (path, int(step))
    for path in sorted(hands.FOLDER.glob("*.py"))
    for step in re.findall(r"^def hgemm_v(\d+)", path.read_text(), re.M)
]
SIZE = (512, 512, 320)


@pytest.mark.parametrize("path, step", STEPS, ids=lambda one: getattr(one, "stem", one))
def test_a_kernel_of_another_hand_is_right(monkeypatch, path, step):
    parked.use(monkeypatch)
    with Runner(path) as runner:
        ((_, outcome),) = runner.run([Job(path, step, SIZE, order="adverse")])
    assert (outcome.verdict, outcome.right) == ("clean", True), outcome.message


def test_every_mistake_changes_its_own_step():
    for mistake in hands.planted():
        changed, step = ast.parse(mistake.text), mistake.source.builder
        right = ast.parse((hands.FOLDER / mistake.source.file).read_text())
        differs = [
            a.name for a, b in zip(changed.body, right.body, strict=True) if ast.dump(a) != ast.dump(b)
        ]
        assert differs == [step], mistake.what
