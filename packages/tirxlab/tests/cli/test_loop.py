"""A student's workflow: check without a step, check --watch, progress, hints, findings for editors."""

import itertools
import json
import re
from pathlib import Path

import pytest

from tirxlab.cli import hint, outcomes, record, save_loop, score
from tirxlab.cli.common import REFERENCE
from tirxlab.cli.runs import Job, Outcome, Runner
from tirxlab.steps import STEPS, sections

WAIT = "            Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), 0)"
SIZES = [(128, 128, 64), (128, 128, 192)]


def test_check_without_a_step_takes_the_first_that_is_not_clean(run, kernels):
    file = kernels()
    status, out, _ = run("check", "--kernels", file)
    assert status == 0 and "Step 1 is next: read docs/steps/step01.md, fill in its TODOs" in out
    file = kernels(1, edit=(WAIT, "            pass"))
    status, out, _ = run("check", "--kernels", file)
    assert status == 1 and "race: tensor memory" in out
    file = kernels(1)
    assert run("check", "--kernels", file)[0] == 0
    status, out, _ = run("check", "--kernels", file)
    assert status == 0 and "Step 2 is next" in out and "verdict" not in out  # step 1 is not run again


def test_progress_says_what_the_checks_said(run, kernels):
    file = kernels(1, edit=(WAIT, "            pass"))
    run("check", "1", "--kernels", file)
    run("check", "1", "--kernels", file)
    file = kernels(1, 2)
    said = json.loads(run("progress", "--kernels", file, "--json")[1])
    assert said["steps"]["1"] | {"text": ""} == said["steps"]["1"] | {"text": "", "state": "changed since"}
    run("check", "1", "--kernels", file)
    status, out, _ = run("progress", "--kernels", file)
    rows = {line.split()[0]: line for line in out.splitlines()[1:11]}
    assert status == 0 and re.search(r"clean +2 +5 / 5$", rows["1"])  # one version failed twice, one passed
    assert "not checked" in rows["2"] and "not begun" in rows["3"]
    assert "5 of 100 points by these checks" in out and "Next: step 2" in out


def test_progress_knows_what_score_found(run, kernels):
    file = kernels(1, 2)
    Path(file).write_text(Path(file).read_text().replace("phase_mma ^ 1", "phase_mma"))
    status, out, _ = run("score", "1,2", "--kernels", file)
    assert status == 1 and "5 of 10 points" in out
    rows = json.loads(run("progress", "--kernels", file, "--json")[1])["steps"]
    assert [rows[step]["state"] for step in "12"] == ["clean", "fails"]
    assert rows["2"]["count"] == 1 and "deadlock" in rows["2"]["said"]


def test_score_runs_the_orders_that_check_runs(run, kernels):
    file = kernels(1, edit=(WAIT, "            pass"))
    made = [json.loads(run(*words, "1", "--kernels", file, "--json")[1]) for words in (["check"], ["score"])]
    (problem,) = made[1]["steps"][0]["problems"]
    assert problem.startswith(
        f"{made[0]['runs'][0]['size']}, order {made[0]['runs'][0]['order']}: error: race"
    )
    outcomes = [
        Outcome(4, "512", "sim", order, True, "clean", 1.0, digest=order) for order in ("program", "adverse")
    ]
    score.judged(Path(file), outcomes)
    assert not outcomes[1].passed and "depends on the order" in outcomes[1].message


@pytest.mark.parametrize("verdict", ["clean", "review", "incomplete", "error"])
def test_a_run_that_was_given_up_passes_no_more_than_one_with_an_error(verdict):
    outcome = Outcome(4, "512", "sim", "program", True, verdict, 1.0)
    assert outcome.passed == (verdict in ("clean", "review"))


def test_a_text_that_was_clean_is_clean_when_it_comes_back(run, kernels):
    file = kernels(1)
    run("check", "1", "--kernels", file)
    kernels(1, edit=(WAIT, "            pass"))
    assert run("check", "1", "--kernels", file)[0] == 1
    kernels(1)
    assert "5 of 100 points by these checks" in run("progress", "--kernels", file)[1]
    assert "Step 2 is next" in run("check", "--kernels", file)[1]
    kernels(1, edit=(WAIT, "            pass"))
    assert "0 of 100 points by these checks" in run("progress", "--kernels", file)[1]


@pytest.mark.parametrize(
    ("written", "step", "following"),
    [((7, 9), 9, "step 1,"), ((*range(1, 8), 9), 9, "step 8,"), (range(1, 10), 9, "step 10,"),
     ((1, 2), 2, "step 3,"), (STEPS, 10, "./lab score")],
)  # fmt: skip
def test_the_step_that_comes_next_is_one_left_out_or_the_following(kernels, written, step, following):
    text = Path(kernels(*written)).read_text()
    done = [Outcome(step, "1024", "sim", "program", True, "clean", 1.0)]
    assert f"Next: {following}" in outcomes.what_next(text, done)


def test_a_damaged_record_is_an_empty_one(run, kernels):
    file = kernels(1)
    record.place(Path(file)).write_text('{"1": {"count": "x", "more": 1}')
    assert "not checked" in run("progress", "--kernels", file)[1]


def test_hints_come_in_stages_and_begin_with_what_the_check_named(run, kernels):
    file = kernels()
    said = [run("hint", "1", "--kernels", file)[1] for _ in range(4)]
    assert ["place", "rule", "idiom", "idiom"] == [re.search(r"\((\w+)\)", text)[1] for text in said]
    assert "The TODOs are in gemm_kernels.py, line" in said[0]
    file = kernels(1, edit=(WAIT, "            pass"))
    run("check", "1", "--kernels", file)
    said = run("hint", "1", "--kernels", file, "--from-start")[1]
    assert re.search(
        r"hint 1 of 4 \(place\): the last check stopped at gemm_kernels.py, line \d+: error: race", said
    )


def test_no_hint_is_the_answer():
    """No statement of a solution's TODO region occurs in the hints of its step."""
    regions = sections(REFERENCE.read_text(encoding="utf-8"))
    known = hint.tomllib.loads(hint.HINTS.read_text(encoding="utf-8"))
    assert set(known) == {f"step{step}" for step in STEPS}
    for step in STEPS:
        text = " ".join(" ".join(known[f"step{step}"][stage].split()) for stage in hint.STAGES)
        inside = re.findall(r"# TODO\[begin\](.*?)# TODO\[end\]", regions[step], re.DOTALL)
        lines = [line.strip() for part in inside for line in part.splitlines()]
        code = {line for line in lines if len(line) > 24 and not line.startswith("#")}
        ends = {"while tile_scheduler.valid():", "tile_scheduler.next_tile()"}  # shown by the page of step 6
        assert not [line for line in code - ends if line in text]


def test_a_save_runs_what_failed_last_first_in_the_same_processes(kernels, capsys):
    """Step 2 fails at its second size only; the next save starts there, and
    builds in the same child process.
    """
    flip = "phase_mma = phase_mma ^ 1"
    file = Path(kernels(2, edit=(flip, "phase_mma = phase_mma ^ 0")))

    def jobs_of(step: int) -> list[Job]:
        return [Job(file, step, size, "sim") for size in SIZES]

    with Runner(file) as runner:
        save_loop.once(runner, file, file.read_text(), 2, jobs_of)
        out = capsys.readouterr().out
        assert "step 2 at 128x128x192" in out and "fails (2 of 2 runs" in out
        child, worker = runner.builder.student.process, runner.pool.workers
        save_loop.once(runner, file, file.read_text() + "\n# again\n", 2, jobs_of)
        assert "fails (1 of 2 runs" in capsys.readouterr().out
        save_loop.once(runner, file, Path(kernels(2)).read_text(), 2, jobs_of)
        out = capsys.readouterr().out
        assert "step 2 is clean (2 of 2 runs" in out and "Next: step 1, Single-tile" in out
        assert runner.builder.student.process is child and runner.pool.workers is worker


def test_only_another_text_counts_as_a_save(tmp_path):
    file = tmp_path / "k.py"
    file.write_text("a = 1\n")
    seen = save_loop.texts(file)
    assert next(seen) == "a = 1\n"
    file.write_text("a = 1\n")
    other = tmp_path / "new"
    other.write_text("a = 2\n")
    other.replace(file)  # as editors save
    assert list(itertools.islice(seen, 1)) == ["a = 2\n"]


@pytest.mark.parametrize("name", ["gcc", "github", "sarif"])
def test_findings_for_machines_name_file_and_line(run, kernels, name):
    file = kernels(1, edit=(WAIT, "            pass"))
    status, out, _ = run("check", "1", "--kernels", file, "--format", name)
    line = next(
        n for n, text in enumerate(Path(file).read_text().splitlines(), 1) if "Tx.copy(Dreg_wg" in text
    )
    assert status == 1
    if name == "gcc":
        assert out.startswith(f"{file}:{line}:1: error: race: ") and f"{file}:{line}:1: note: " in out
    elif name == "github":
        assert out.startswith(f"::error file={file},line={line}::race: ")
    else:
        result = json.loads(out)["runs"][0]["results"][0]
        place = result["locations"][0]["physicalLocation"]
        assert result["ruleId"] == "race" and place["region"]["startLine"] == line
        assert place["artifactLocation"]["uri"] == file


def test_every_build_error_is_a_line_for_machines(run, kernels):
    file = kernels(1, edit=(WAIT, "            mma_bar.wait(0, 0)\n            Tx.cta_sync()"))
    status, out, _ = run("check", "1", "--kernels", file, "--format", "gcc")
    assert status == 1 and [": error: build: " in line for line in out.splitlines()] == [True, True]
    assert run("check", "1", "--format", "xml")[0] == 2


def test_the_editor_s_task_reads_these_lines():
    """The problem matcher of .vscode/tasks.json matches a line as `check --format gcc` writes it."""
    root = Path(__file__).resolve().parents[4]
    task = json.loads((root / ".vscode" / "tasks.json").read_text(encoding="utf-8"))["tasks"][0]
    matcher = task["problemMatcher"]["pattern"]
    found = re.match(matcher["regexp"], "gemm_kernels.py:105:1: warning: proxy-fence: no fence")
    names = {name: found[matcher[name]] for name in ("file", "line", "severity", "message")}
    assert names == {
        "file": "gemm_kernels.py", "line": "105", "severity": "warning", "message": "proxy-fence: no fence",
    }  # fmt: skip
    assert "--format gcc" in task["command"]
