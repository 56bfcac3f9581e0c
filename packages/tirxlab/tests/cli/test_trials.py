"""`check` tries small changes of a step that fails, and says which one makes it right."""

import json

from tirxlab.cli.trials import ENOUGH, unproven

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
