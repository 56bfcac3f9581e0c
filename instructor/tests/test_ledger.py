"""Attempts, late days, adjustments, the files that platforms import, the board and the status page."""

import csv
import itertools
import json
import random
from math import gcd
from types import SimpleNamespace

import pytest

from instructor.autograder.batch import failed
from instructor.autograder.hidden_sizes import BLOCK_K, WORKERS, candidates, draw, problems, render
from instructor.autograder.ledger import Rule, adjustments, finals, read_adjust
from instructor.autograder.plan import Hidden, load_hidden, plan
from instructor.autograder.points import OVER
from instructor.commands import grade_all
from instructor.commands.grade_all import write_finals
from instructor.formats import plain
from instructor.formats.board import board, places
from instructor.formats.exports import EXPORTS
from instructor.formats.status import status_page
from tirxlab.cli import app
from tirxlab.cli.common import UserError
from tirxlab.rubric import load_rubric


def row(name: str, total: float, problem: str = "", ms: float | None = None, digest: str = "d") -> dict:
    steps = [{"step": 10, "hints": [], "right": True, "implemented": True, "speed": "passed",
              "ms": {"4096": ms} if ms else {}}]  # fmt: skip
    return {
        "name": name,
        "student": "",
        "total": total,
        "out_of": 85,
        "problem": problem,
        "steps": steps,
        "digest": digest,
    }


ROSTER = {
    "a9": {"student": "ann", "attempt": "9", "late_days": "0"},
    "a10": {"student": "ann", "attempt": "10", "late_days": "2"},
    "b": {"student": "bo", "late_days": "1", "name": "=Bo", "email": "bo@x", "id": "7"},
}
ROWS = [row("a10", 80), row("a9", 70), row("b", 50), row("c", 10)]


@pytest.mark.parametrize(
    "rule, submission, final",
    [
        (Rule("latest", 10), "a10", 64.0),  # 80 less 2 days of 10 %
        (Rule("first", 10), "a9", 70.0),
        (Rule("best", 10), "a9", 70.0),  # best after the late days
        (Rule("best", 0), "a10", 80.0),
        (Rule("latest", 60), "a10", 0.0),  # never below nothing
    ],
)
def test_one_attempt_counts_and_late_days_cost(rule, submission, final):
    ann, bo, c = finals(ROWS, ROSTER, {}, rule)
    assert (ann.submission, ann.final, ann.attempts) == (submission, final, 2)
    assert c.student == "c" and c.final == 10 and bo.attempts == 1


def test_the_name_in_a_hand_in_gives_nobody_another_ones_attempt():
    mine = row("mine", 10) | {"student": "ann"}
    assert {f.student for f in finals([*ROWS, mine], ROSTER, {}, Rule())} == {"ann", "bo", "c", "mine"}


def test_the_name_of_a_file_gives_nobody_anothers_grade_or_adjustment(tmp_path):
    """A submission named like a student of the roster: only its own row can say whose it is."""
    (tmp_path / "adjust.csv").write_text("student,points\nann,3\nb,1\n")
    found = read_adjust(tmp_path / "adjust.csv")
    plain = {f.student: f for f in finals(ROWS, ROSTER, found, Rule())}
    loose = {f.student: f for f in finals([*ROWS, row("ann", 0)], ROSTER, found, Rule())}
    assert {name: loose.get(name) for name in plain} == plain
    assert loose["ann (not in the roster)"].final == 0
    eves = ROSTER | {"ann": {"student": "eve"}}
    listed = {f.student: f for f in finals([*ROWS, row("ann", 9)], eves, found, Rule())}
    assert {name: listed.get(name) for name in plain} == plain and listed["eve"].final == 9


@pytest.mark.parametrize("column", ["student", "id", "sis_id", "email", "name"])
@pytest.mark.parametrize("dress", [str, str.upper, " {} ".format, lambda name: name.replace("4", "\uff14")])
def test_nobody_takes_the_number_or_the_address_of_another(column, dress):
    """A platform finds a student by any of them: a second row would overwrite the first."""
    roster = {"a": {"student": "ann", "id": "i47", "sis_id": "s47", "email": "ann47@x", "name": "Ann 47"}}
    name = dress(roster["a"][column])
    made = finals([row("a", 80), row(name, 1)], roster, {}, Rule())
    assert [(f.student, f.final) for f in made if f.student == "ann"] == [("ann", 80)]
    for platform in ("canvas.csv", "moodle.csv", "gradescope.csv"):
        cells = [cell for line in csv.reader(EXPORTS[platform](made).splitlines()) for cell in line]
        assert cells.count(name) <= (name == roster["a"][column])


def test_the_adjustment_of_a_submission_under_its_students_number_counts():
    roster = {"47": {"student": "ann", "id": "47"}}
    (made,) = finals([row("47", 80)], roster, {"47": (2.0, "asked")}, Rule())
    assert made.final == 82


@pytest.mark.parametrize("days, final", [("-3", 80), ("0", 80), ("1", 72), ("2", 64)])
def test_who_is_early_gets_no_more(days, final):
    (made,) = finals([row("a", 80)], {"a": {"student": "ann", "late_days": days}}, {}, Rule("latest", 10))
    assert made.final == final


@pytest.mark.parametrize("name", ["Points Possible", "    Points Possible", "points possible (read only)"])
def test_no_student_is_the_row_of_maxima(name):
    made = finals([row(name, 3), row("other", 4)], {}, {}, Rule())
    heads = [line[0] for line in csv.reader(EXPORTS["canvas.csv"](made).splitlines())]
    assert [head.strip().casefold().startswith("points possible") for head in heads].count(True) == 1


def test_nobody_stands_on_the_board_under_the_name_of_another(tmp_path):
    for name, student in (("a", ""), ("b", "ann")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "grade.json").write_text(json.dumps(row(name, 5) | {"student": student}))
    (tmp_path / "roster.csv").write_text("submission,nickname\na,ann\n")
    assert app.main(["board", str(tmp_path)]) == 0
    assert "ann" not in (tmp_path / "board.html").read_text()
    assert app.main(["board", str(tmp_path), "--roster", str(tmp_path / "roster.csv")]) == 0
    assert (tmp_path / "board.html").read_text().count("<td>ann</td>") == 1


def test_the_order_of_submissions_changes_nothing():
    made = {str(finals(list(order), ROSTER, {}, Rule("best", 5))) for order in itertools.permutations(ROWS)}
    assert len(made) == 1


def test_what_may_still_be_the_best_keeps_a_grade_open():
    lost = [row("a10", 0, "not graded: a worker died"), row("a9", 70)]
    refused = [row("a10", 0, "not graded: no tar", digest=""), row("a9", 70)]
    for rows, rule, graded in ((lost, "best", False), (lost, "first", True), (lost, "latest", False),
                               (refused, "best", True)):  # fmt: skip
        assert [one.graded for one in finals(rows, ROSTER, {}, Rule(rule))] == [graded], (rows, rule)


@pytest.mark.parametrize("rule, said", [("latest", "a9"), ("first", "a10"), ("best", "a9")])
def test_handing_in_again_does_not_shake_off_a_penalty_unseen(tmp_path, capsys, rule, said):
    """A line of adjust.csv for an attempt that does not count is reported, like one for nobody."""
    (tmp_path / "adjust.csv").write_text("submission,points\na9,-60\na10,-50\nnobody,1\nb,2\n")
    made = SimpleNamespace(out=tmp_path, roster=ROSTER)
    write_finals(made, ROWS, Rule(rule))
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(": nobody") and f"(the {rule} one)" in second
    assert second.endswith(f": {said}")


def test_adjustments_are_added_last(tmp_path):
    (tmp_path / "adjust.csv").write_text("submission,points,comment\nb,-5,asked\nann,3.5,\n")
    found = read_adjust(tmp_path / "adjust.csv")
    ann, bo, _ = finals(ROWS, ROSTER, found, Rule("latest", 10))
    assert (ann.final, bo.final, bo.comment) == (67.5, 40.0, "asked")
    assert read_adjust(tmp_path / "none.csv") == {}


@pytest.mark.parametrize(
    "text, words",
    [("submission,points\nb,x\n", "line 2"), ("submission,points\n,3\n", "names no submission"),
     ("submission,points\nb,1\nb,2\n", "already has a line"), ("submission,points\nb,nan\n", "not a number"),
     ("\xff", "UTF-8")],
)  # fmt: skip
def test_an_adjust_csv_that_is_none_is_one_line(tmp_path, text, words):
    (tmp_path / "adjust.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=words):
        read_adjust(tmp_path / "adjust.csv")


@pytest.mark.parametrize(
    "rows, said", [("ann,0\nann.py,3", "two rows for ann.py"), ("ann,soon", "'soon' is not a number")]
)
def test_a_roster_that_cannot_be_used_is_told_before_grading(tmp_path, rows, said):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "ann.py").write_text("")
    (tmp_path / "roster.csv").write_text(f"submission,late_days\n{rows}\n")
    with pytest.raises(UserError, match=said):
        grade_all.run(
            tmp_path / "class", roster=tmp_path / "roster.csv", step="all", attempts="latest", late=0
        )
    assert not (tmp_path / "class-grades").exists()


COLUMNS = ("final", "GEMM kernels", "Total Score")  # of the points


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_have_a_line_for_each_student_and_no_formula(name):
    made = finals([*ROWS, row("late", 0, "not graded: the machine")], ROSTER, {}, Rule())
    lines = list(csv.reader(EXPORTS[name](made).splitlines()))
    assert len(lines) == 1 + len(made) + (name == "canvas.csv") and len({len(line) for line in lines}) == 1
    assert not any(cell[:1] in "=+-@" for line in lines for cell in line if cell)
    at = next(lines[0].index(column) for column in COLUMNS if column in lines[0])
    (late,) = [line for line in lines if "late" in line]
    assert late[at] == ""  # what is not graded has no points yet


def test_the_board_goes_by_points_then_by_time_and_shows_only_who_wants_to():
    rows = [
        row("a", 80, ms=0.1),
        row("b", 80, ms=0.09),
        row("c", 85),
        row("d", 80),
        row("e", 80, ms=0.1),
        row("x", 99),
    ]
    names = {key: f"<{key}>" for key in "abcde"}
    for order in (rows, rows[::-1]):
        made = places(order, names, 10, (4096,) * 3)
        assert [(p.rank, p.name) for p in made] == [
            (1, "<c>"),
            (2, "<b>"),
            (3, "<a>"),
            (3, "<e>"),
            (5, "<d>"),
        ]
    page = board(made, 10, "4096")
    assert "<c>" not in page and "&lt;c&gt;" in page and "http" not in page
    assert made[1].light == pytest.approx(2e-9 * 4096**3 / 0.09 / 2382)


def test_the_board_shows_a_name_once_and_nothing_that_is_not_graded():
    rows = [
        row("a1", 40, ms=0.1),
        row("a2", 70),
        row("b", 0, "not graded: a worker died"),
        row("c", 70, ms=1),
    ]
    made = places(rows, {"a1": "ann", "a2": "ann", "b": "bo", "c": "cy"}, 10, (4096,) * 3)
    assert [(one.rank, one.name, one.points) for one in made] == [(1, "cy", 70), (2, "ann", 70)]


def test_the_status_page_counts_what_is_not_graded_timed_out_or_refused():
    slow = row("slow", 0)
    slow["steps"][0]["hints"] = [f"the run {OVER}"]
    bad = row("bad", 0, "not graded: no tar", digest="")
    rows = {"ok": row("ok", 1), "bad": bad, "wait": None, "slow": slow,
            "lost": row("lost", 0, "not graded: the worker died")}  # fmt: skip
    page = status_page(rows)
    for words in ("<td>refused</td><td class=\"n\">1", "<td>timed out</td><td class=\"n\">1",
                  "<td>not graded</td><td class=\"n\">1", "<td>waiting</td><td class=\"n\">1",
                  "refresh"):  # fmt: skip
        assert words in page
    assert "refresh" not in status_page({"ok": row("ok", 1)})


@pytest.mark.parametrize("seed", range(30))
def test_sizes_from_a_secret_have_no_problem_and_come_again(tmp_path, seed):
    secret = str(random.Random(seed).random())
    made = draw(secret)
    assert problems(made) == [] and draw(secret) == made and draw(secret + "x") != made
    (tmp_path / "hidden.toml").write_text(render(made))
    assert load_hidden(tmp_path / "hidden.toml") == made


def test_there_are_many_sizes_to_draw_from_and_a_bad_one_is_named():
    assert all(len(candidates(step)) >= 12 for step in range(3, 11))
    bad = load_hidden().__class__(
        "x", 0, {2: ((128, 128, 1088),), 6: ((256, 384, 320),), 9: ((100, 256, 1088),)}
    )
    said = " ".join(problems(bad))
    public = {size for step in (2,) for size in load_rubric().graded[step]}
    assert ("is public" in said) == ((128, 128, 1088) in public)
    assert "below 1024" in said and "second tile" in said and "not a multiple" in said and WORKERS and BLOCK_K


def test_a_hidden_launch_on_few_sms_gives_some_ctas_two_tiles():
    size = (896, 640, 1088)  # 35 tiles of step 6
    assert problems(Hidden("x" * 16, 0, {6: (size,)}, {(6, size): 28})) == []
    assert "second tile" in problems(Hidden("x" * 16, 0, {6: (size,)}))[0]
    assert "even number" in problems(Hidden("x" * 16, 0, {6: (size,)}, {(6, size): 27}))[0]
    (run,) = [run for run in plan(6, "a", draw("secret")) if run.secret]
    assert run.sms < 148 and run.place.endswith(f" with SM_COUNT = {run.sms}")


def test_what_deals_tiles_out_well_on_a_chip_does_on_the_few_sms_of_a_hidden_launch():
    """For example bx * 35 % SM_COUNT: right on 148 SMs, and on the 1 and 6 of the public sizes."""
    made = [*draw("secret").few_sms.items(), *load_hidden().few_sms.items()]
    workers = {sms // (1 if step < 9 else 2) for (step, _), sms in made}
    factors = [n for n in range(1, 148) if gcd(n, 148) == 1]
    assert workers and all(gcd(n, few) == 1 for n in factors for few in workers)


def test_grades_that_failed_can_be_exported():
    made = plain(failed("x", "", "no tar", (1,)))
    assert all("x" in export(finals([made], {}, {}, Rule())) for export in EXPORTS.values())


def test_the_board_counts_what_the_course_adds_or_takes(tmp_path):
    """By submission or by student, as final.csv does; never below 0."""
    roster = {"a": {"student": "ann"}, "b": {"student": "bo"}, "c": {}}
    rows = [row("a", 50), row("b", 40), row("c", 3)]
    adjusted = adjustments(
        rows, roster, {"ann": (-20.0, "copied"), "b": (5.0, "found a bug"), "c": (-9.0, "")}
    )
    made = places(rows, {"a": "A", "b": "B", "c": "C"}, 10, (4096,) * 3, adjusted)
    assert [(one.name, one.points) for one in made] == [("B", 45), ("A", 30), ("C", 0)]
