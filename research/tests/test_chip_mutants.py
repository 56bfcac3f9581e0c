"""Mutants on a chip and on ptxsim: the outcome of each, and what ptxsim let pass."""

import json
from pathlib import Path

import pytest

from research.chip import mutants

HUNG = "the kernel did not finish within 6 s and its process was killed"


def row(chip: dict, verdict: str, same: bool = True) -> dict:
    return {"kernel": "hopper-1", "operator": "no copy", "chip": chip, "verdict": verdict, "same": same}


@pytest.mark.parametrize(
    "chip, verdict, same, passes",
    [
        ({"same": 10}, "clean", True, False),
        ({"same": 3, "other bits": 7}, "clean", True, True),
        ({"same": 3, "other bits": 7}, "review", True, True),
        ({"same": 3, "other bits": 7}, "clean", False, False),  # D differs on ptxsim too
        ({"same": 4, HUNG: 1}, "clean", True, True),
        ({HUNG: 1}, "error", True, False),
        ({"same": 10}, "error", True, False),
        ({"not run: no GPU": 1}, "clean", True, False),
    ],
)
def test_what_fails_on_a_chip_must_be_found(chip, verdict, same, passes):
    found = mutants.summary([row(chip, verdict, same)])
    assert bool(found["let pass"]) == passes and sum(count for *_, count in found["table"]) == 1


def test_no_mutant_that_failed_on_the_chip_was_let_pass():
    """In the recorded run; and the table counts every mutant."""
    file = Path(mutants.__file__).parent / "results/mutants-nvidia-h200.json"
    recorded = json.loads(file.read_text())
    assert recorded["let pass"] == []
    assert sum(count for *_, count in recorded["table"]) == recorded["mutants"] == 991


def test_a_store_without_its_suffix_is_refused_at_once(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mutants", "make", "set"])
    with pytest.raises(SystemExit):
        mutants.main()
    assert "set: the name of a store ends in .tar.xz" in capsys.readouterr().err
