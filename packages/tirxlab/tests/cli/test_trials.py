"""`check` tries small changes of a step that fails, and says which one makes it right."""

import json
import threading
import time
from types import SimpleNamespace

import pytest

from tirxlab.cli import trials
from tirxlab.cli.trials import ENOUGH, MANY, Trials, size, unproven
from tirxlab.explain.repairs import Edit

INIT = "mbarrier.init(mma_bar.ptr_to([0]), 1)"
WRONG = INIT.replace("1)", "2)")


def test_a_repair_stands_in_place_of_the_hint(run, kernels):
    file = kernels(1, edit=(INIT, WRONG))
    status, out, err = run("check", "1", "--device", "sim", "--kernels", file, "--trials")
    assert status == 1 and "trying small changes of step 1" in err
    assert f"tried: with `Tx.ptx.{INIT}` instead of `Tx.ptx.{WRONG}` in line" in out
    assert "hint:" not in out


def test_without_trials_the_hint_stays(run, kernels):
    file = kernels(1, edit=(INIT, WRONG))
    _, out, _ = run("check", "1", "--device", "sim", "--kernels", file, "--no-trials", "--json")
    (row,) = json.loads(out)["runs"]
    assert row["findings"][0]["hint"] in row["message"] and row["repairs"] == []


def test_a_hint_that_many_trials_did_not_bear_out_says_so():
    assert unproven("hint: flip the phase", ENOUGH - 1) == "hint: flip the phase"
    said = unproven("hint: flip the phase", ENOUGH)
    assert said.startswith(f"hint: flip the phase\n(none of the {ENOUGH} small changes tried")
    assert unproven("", ENOUGH) == ""


@pytest.mark.parametrize("uses", [0, MANY - 1, MANY, 9])
def test_a_constant_of_many_places_is_a_large_edit(uses):
    text = "def f():\n    DEPTH = 3\n" + "    g(DEPTH)\n" * uses + "    h(3)\n\ndef k():\n    g(DEPTH)\n"
    local, constant = text.rindex("3"), text.index("3")
    sizes = [size(Edit("number", ((at, at + 1, "2"),)), text) for at in (local, constant)]
    assert sizes[0] == 2 and sizes[1] == 2 + (uses if uses >= MANY else 0)


def test_one_lane_at_a_time_reads_the_text(monkeypatch):
    """CPython 3.11 fails if two threads build syntax trees at the same time."""
    inside, most = [], []

    def alone(text: str, step: int) -> str:
        inside.append(step)
        most.append(len(inside))
        time.sleep(0.005)
        inside.pop()
        return text

    monkeypatch.setattr(trials, "alone", alone)
    edits = [SimpleNamespace(applied=lambda text: text)] * 12
    made = object.__new__(Trials)
    made.todo, made.lock, made.left, made.over, made.tried = (
        enumerate(edits),
        threading.Lock(),
        None,
        False,
        0,
    )
    made.text, made.failed = "", SimpleNamespace(step=1)
    lanes = [threading.Thread(target=lambda: [made._next() for _ in range(6)]) for _ in range(2)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    assert made.tried == 12 and max(most) == 1
