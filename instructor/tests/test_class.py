"""Grading a class: resumable, the same on a Dask cluster, with files written for the course."""

import ast
import base64
import csv
import hashlib
import json
import os
import random
import re
import zipfile
from dataclasses import replace

import pytest
from kernel_variants import REFERENCE, solved

from instructor.autograder import batch, plan
from instructor.autograder.batch import bundle
from instructor.autograder.grading import Options, grade
from instructor.autograder.points import Grade, StepGrade
from instructor.autograder.similar import builds, built_alike, hiding, similar
from instructor.autograder.submission import MOST_FILES, Submission, read_submission
from instructor.formats import FORMATS
from instructor.formats.summary import class_page, to_csv
from tirxlab.artifact import Artifact
from tirxlab.rubric import load_rubric
from tirxlab.steps import read_skeleton

WRONG = solved(1).replace("accum=False", "accum=True")
TEXTS = {
    "full": solved(1),
    "wrong": WRONG,
    "empty": read_skeleton(),
    "hostile": "import os\n\n\ndef hgemm_v1(M, N, K):\n    os._exit(0)\n",
    "broken": "def hgemm_v1(M, N, K:\n",
    "=cmd()": "",
}
EXPECTED = {"full": 4.25, "wrong": 0, "empty": 0, "hostile": 0, "broken": 0, "=cmd()": 0, "nothing": 0}


@pytest.fixture
def folder(tmp_path):
    """Six submissions, and a folder without one."""
    for name, text in TEXTS.items():
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "gemm_kernels.py").write_text(text)
    (tmp_path / "class" / "nothing").mkdir()
    return tmp_path / "class"


def a_class(folder, **more) -> batch.Class:
    return batch.Class(folder, folder.with_name("grades"), Options(steps=(1,), keep=True), **more)


def locally(made):
    return lambda work: batch.local(work, made.options, 2, 300)


@pytest.mark.timeout(500)
def test_a_class_is_graded_once_and_again_where_asked(folder):
    made = a_class(folder)
    rows = batch.grade_class(made, locally(made))
    assert {row["name"]: row["earned"] for row in rows} == EXPECTED
    assert next(row for row in rows if row["name"] == "nothing")["problem"].startswith("not graded")

    def refuse(work):
        raise AssertionError(f"graded twice: {sorted(work)}")

    assert batch.grade_class(a_class(folder), refuse) == rows
    (folder / "wrong" / "gemm_kernels.py").write_text(solved(1))
    asked = []
    roster = {"full": {"regrade": "yes"}}
    batch.grade_class(a_class(folder, roster=roster), lambda work: asked.extend(work) or [])
    assert asked == ["full", "wrong"]


@pytest.mark.timeout(500)
def test_a_bundle_gives_the_grade_again(folder):
    made = a_class(folder)
    one = {"full": made.read("full")}
    ((_, first),) = batch.local(one, made.options, 1, 300)
    data = made.write("full", one["full"], first)
    with zipfile.ZipFile(made.out / "full" / "bundle.zip") as archive:
        text = archive.read("gemm_kernels.py").decode()
        kept = json.loads(archive.read("grade.json"))
        artifact = Artifact.from_bytes(archive.read("artifacts/step1-128x128x64.lab"))
    again = grade(Submission("full", text), made.options)
    assert again.digest == kept["digest"] and again.earned == kept["earned"] == data["earned"]
    seeds = [run["seed"] for run in kept["steps"][0]["runs"]]
    assert seeds == [run["seed"] for run in again.steps[0].runs] and not artifact.is_draft
    for form in FORMATS.values():
        assert "4.25" in form(again)
    assert json.loads(FORMATS["autolab"](again).splitlines()[-1])["scores"] == {"step1": 4.25}
    page = FORMATS["html"](again)
    assert page.startswith("<!doctype html>") and "http" not in page and str(seeds[0]) not in page


@pytest.mark.parametrize("what", ["salt", "sizes", "points"])
def test_other_hidden_sizes_or_another_rubric_grade_a_class_again(folder, monkeypatch, what):
    made = a_class(folder)
    one = made.read("empty")
    made.write("empty", one, grade(one, made.options))
    assert a_class(folder).done("empty", one)
    hidden, rubric = plan.load_hidden(), load_rubric()
    if what == "points":
        monkeypatch.setattr(plan, "load_rubric", lambda: replace(rubric, points=rubric.points | {1: 6}))
    other = {"salt": {"salt": "another"}, "sizes": {"sizes": {1: ((128, 128, 64),)}}, "points": {}}[what]
    options = replace(made.options, hidden=replace(hidden, **other))
    assert batch.Class(folder, made.out, options).done("empty", one) is None


NAMES = [
    b"new\nline",
    b"bad\xff",
    "\u202eltr".encode(),
    b"\x1b[2J",
    b"n" * 255,
    b"grades.csv",
    b"-rf",
    b"a\\nb",
    b"a\nb",
    b"grades.csv (submission)",
    b"grades.csv (submission) (submission)",
    b"GRADES.csv",
    ("o" + "\u0301" * 20).encode(),
    ("o" + "\u0301" * 3).encode() + rb"\u0301" * 17,
    b"n" * 25 + b".." + hashlib.sha256(b"n" * 255).hexdigest()[:16].encode(),
]


def test_any_name_becomes_the_name_of_a_folder_of_its_own(tmp_path):
    for name in NAMES:
        (tmp_path / "class" / os.fsdecode(name)).mkdir(parents=True)
    made = a_class(tmp_path / "class")
    assert len(made.names()) == len(NAMES) and not set(made.names()) & set(batch.SUMMARIES)
    grade_of = {key: batch.failed(key, "", made.read(key), (1,)) for key in made.names()}
    rows = [made.write(key, "", grade) for key, grade in grade_of.items()]
    for text in (to_csv(rows, {}), class_page(rows, [])):
        assert text.encode() and not any(c in text for c in ("\x1b", "\u202e", "\u0301" * 4))
    assert len(list(csv.DictReader(to_csv(rows, {}).splitlines()))) == len(NAMES)
    folders = {path.name for path in made.out.iterdir()}
    assert folders == {made.place(key).name for key in made.names()} and len(folders) == len(NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"steps": 3}',
        '{"steps": [{}]}',
        "[" * 5000,
        '{"steps": [], "regraded": true}',
        "\x00",
    ],
)
def test_a_grade_that_is_damaged_is_given_again(folder, text):
    made = a_class(folder)
    one = made.read("empty")
    made.write("empty", one, grade(one, made.options))
    whole = made.done("empty", one)
    assert whole["earned"] == 0
    path = made.out / "empty" / "grade.json"
    path.write_text(text)
    assert made.done("empty", one) is None
    path.write_text(json.dumps(whole | {"earned": 99, "total": 99}))
    assert made.done("empty", one) == whole  # derived values are derived again
    path.write_text(json.dumps(whole | {"problem": "not graded: the process died"}))
    assert made.done("empty", one) is None


@pytest.mark.parametrize(
    "data, words",
    [
        (b"submission,student\na,x\na,y\n", "two rows for a"),
        (b"name\nx\n", "must name the columns"),
        (b"submission\n\xff\n", "not a CSV file"),
        (b'submission\n"' + b"x" * 200_000, "not a CSV file"),
        (b"", "must name the columns"),
    ],
)
def test_an_odd_roster_is_one_line(tmp_path, data, words):
    (tmp_path / "roster.csv").write_bytes(data)
    with pytest.raises(ValueError, match=words):
        batch.read_roster(tmp_path / "roster.csv")


def test_a_roster_may_have_a_mark_and_rows_of_any_length(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_bytes(b"\xef\xbb\xbfsubmission,student,late_days\na,x,1,more,more\nb\n,,\n\n,,\n")
    rows = batch.read_roster(path)
    assert list(rows) == ["a", "b"] and rows["a"]["late_days"] == "1" and rows["b"]["late_days"] == ""


@pytest.mark.skipif(batch.fcntl is None, reason="no file locks here")
def test_two_runs_do_not_grade_into_one_folder(tmp_path):
    with (
        batch.alone(tmp_path / "out"),
        pytest.raises(RuntimeError, match="another run"),
        batch.alone(tmp_path / "out"),
    ):
        pass
    with batch.alone(tmp_path / "out"):
        pass


def test_a_submission_whose_process_dies_is_tried_again_and_then_marked():
    work = {"x": Submission("x", solved(1))}
    done = list(batch.local(work, Options(steps=(1,), step_seconds=None), 1, 60))  # an error of the lab
    ((key, made),) = done
    assert key == "x" and made.problem.startswith("not graded") and made.earned == 0


ROWS = [
    {
        "name": name,
        "student": "=1+1",
        "total": points,
        "out_of": 8.5,
        "problem": "",
        "seconds": 1.0,
        "cpu_seconds": 1.0,
        "memory": 1 << 30,
        "lab": "0.1.0",
        "digest": "d",
        "steps": [
            {"step": 1, "title": "<b>", "earned": points, "possible": 8.5, "right": points > 0}
            | {"implemented": points > 0, "findings": ["race"] if points else []}
        ],
    }
    for name, points in (("<script>", 0.0), ("b", 8.5))
]


def test_a_roster_finds_submissions_without_their_endings(tmp_path):
    file = tmp_path / "roster.csv"
    file.write_text("\ufeffsubmission,late_days\nab12,1\ncd34.py,2\nzz99,3\n", encoding="utf-8")
    found = batch.match_roster(batch.read_roster(file), ["ab12.tar", "cd34.py", "ef56"])
    days = {name: row["late_days"] for name, row in found.items()}
    assert days == {"ab12.tar": "1", "cd34.py": "2", "zz99": "3"}


def test_the_summary_is_whole_and_harmless():
    roster = {"b": {"submission": "b", "student": "bb", "late_days": "2"}}
    rows = list(csv.DictReader(to_csv(ROWS, roster).splitlines()))
    assert [row["step1"] for row in rows] == ["0.0", "8.5"] and rows[1]["late_days"] == "2"
    assert rows[0]["student"] == "'=1+1"  # not a formula
    page = class_page(ROWS, [("b", "<script>", 0.9)], hidden=["z<b>", "y"])
    assert "read these:\ny, z&lt;b&gt;" in page and "read these" not in class_page(ROWS, [])
    assert "<script>" not in page and "race" in page and "90 %" in page and "http" not in page


def test_a_message_with_lines_like_the_graders_stands_apart():
    step = StepGrade(1, "t", 5, "wrong", hints=["at 64: x\n85 of 85 points\nconfined: namespaces"])
    said = FORMATS["text"](Grade("a", "d", "lab", "sim", [step])).splitlines()
    assert [line for line in said if line.startswith(("85 of", "confined"))] == []
    assert said[-1].startswith("0 of") and "    85 of 85 points" in said


def test_what_reads_alike_is_found_whatever_the_names_and_comments():
    other = REFERENCE.replace("tile_scheduler", "sched").replace("phase_mma", "p").replace("# ", "#  ")
    own = "def hgemm_v1(M, N, K):\n" + "".join(f"    a{n} = [{n}, {n * n}, M % {n + 3}]\n" for n in range(60))
    (pair,) = similar({"a": REFERENCE, "b": other, "c": own})
    assert pair[:2] == ("a", "b") and pair[2] > 0.9
    assert similar({"a": "(((", "b": "\0", "c": read_skeleton()}) == []


def evaded(text: str, rng: random.Random) -> str:
    """A copy disguised as independent work: other names and numbers, brackets, `pass`, idle lines."""
    out = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if re.match(r"\w+ = \w+$", line.strip()) and rng.random() < 0.8:
            name, value = line.strip().split(" = ")
            line = f"{indent}{name} = ({value})"
        line = re.sub(r"\bphase_(\w+)\b", r"q\1", line).replace("128", "0x80")
        out.append(line)
        if line.strip().startswith(("phase", "stage", "Tx.ptx")) and line.rstrip().endswith(("0", ")")):
            out += [indent + rng.choice(["pass", "0", "None", "...", '"idle"'])]
    return "\n".join(out) + "\n"


def test_copies_stay_listed_however_many_and_however_they_are_dressed():
    texts = {f"s{n}": evaded(REFERENCE, random.Random(n)) for n in range(5)} | {"first": REFERENCE}
    found = similar(texts)
    assert len(found) == 15 and min(part for _, _, part in found) > 0.9


def test_a_copy_stays_listed_beside_any_amount_of_other_text():
    """The text has more runs than are kept, so only a part of the copy's runs are among them."""
    rng = random.Random(1)
    lines = ["    _ = a" + "".join(f"{rng.choice('+-*/%&|^')}a" for _ in range(60)) for _ in range(600)]
    ((one, other, part),) = similar({"copy": "\n".join([REFERENCE, *lines, ""]), "first": REFERENCE})
    assert (one, other) == ("copy", "first") and part > 0.9


def whole(line: str) -> bool:
    return bool(re.match(r" +(Tx\.\S+\(.*\)|\w+ = [\w. ]+)$", line))


def behind(line: str, *more: str) -> str:
    """The line, followed by others if it is a whole statement."""
    indent = line[: len(line) - len(line.lstrip())]
    return "\n".join([line, *(indent + one for one in more)]) if whole(line) else line


DRESSED = {  # how a copy is disguised as independent work
    "renamed": lambda line: re.sub(r"\b(phase|stage|tma|Dreg|wg_id|warp_id)(\w*)", r"x\1\2y", line),
    "numbers": lambda line: re.sub(r"\b(\d+)\b", lambda m: hex(int(m[1])), line) if '"' not in line else line,
    "brackets": lambda line: re.sub(r"= (\w+)$", r"= ((\1))", line),
    "commented": lambda line: line.partition("  #")[0] + "  # mine",
    "pass": lambda line: behind(line, "pass"),
    "idle": lambda line: behind(line, "0"),
    "unread": lambda line: behind(line, "_ = 0", "a = a = 0", "x, y = M, 1", "del x"),
    "read in vain": lambda line: behind(line, "y = z = M", "y += int(z)", "max(y, 1)"),
    "asserts": lambda line: behind(line, "assert 1", "x: int"),
    "blocks": lambda line: behind(line, "if 0:", "    M", "for _ in range(3): pass"),
    "folded": lambda line: re.sub(r"\b(\d+)\b", r"(\1 + 0)", line) if whole(line) else line,
    "functions": lambda line: behind(line, "def idle(): pass", "lambda: 0", "0 < 1 < 2"),
    "spaced": lambda line: line.replace(", ", " , ").replace(" = ", "  =  "),
    "strings": lambda line: re.sub(r'"[a-z0-9]+"', '"other"', line),
}


@pytest.mark.parametrize("how", DRESSED)
def test_a_copy_in_any_dress_is_found_where_lines_would_not_tell(how):
    copy = "\n".join(DRESSED[how](line) if line.startswith(" ") else line for line in REFERENCE.splitlines())
    assert copy.splitlines() != REFERENCE.splitlines() and ast.parse(copy)
    ((_, _, part),) = similar({"a": REFERENCE, "b": copy})
    assert part > 0.95


def test_text_that_runs_text_is_compared_by_what_it_builds():
    code = base64.b64encode(f"\n\n{solved(1)}".encode())  # each line in another place
    packed = f"import base64, linecache\ntext = base64.b64decode({code!r}).decode()\n"
    packed += 'linecache.cache["p.py"] = len(text), None, text.splitlines(True), "p.py"\n'
    packed += 'exec(compile(text, "p.py", "exec"))\n\n\n'
    packed += "def hgemm_v1(M, N, K, make=hgemm_v1):\n    return make(M, N, K)\n"
    texts = {"plain": solved(1), "packed": packed, "other": solved(2)}
    made = {}
    for key, text in texts.items():
        graded = grade(Submission(key, text), Options(steps=(1, 2), keep=True))
        made[key] = bundle(Submission(key, text), graded)
    assert hiding(texts) == {"packed"} and not any("packed" in pair for pair in similar(texts))
    made_of = builds(made.items())[0]
    assert built_alike(made_of, hiding(texts)) == [("packed", "plain", 1.0)]
    assert built_alike(made_of, set()) == []  # steps so early


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_grades(folder):
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    made = a_class(folder)
    expected = {row["name"]: row["earned"] for row in batch.grade_class(made, locally(made))}
    other = batch.Class(folder, folder.with_name("on-dask"), made.options)
    more = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **more) as cluster:

        def losing(work):
            for number, item in enumerate(batch.on_dask(work, other.options, cluster.scheduler_address)):
                if number == 0:
                    next(iter(cluster.workers.values())).process.process.kill()
                yield item

        rows = batch.grade_class(other, losing)
    assert {row["name"]: row["earned"] for row in rows} == expected


@pytest.mark.parametrize(
    "names, whose",
    [
        (["bob.tar"], "bob.tar"),
        (["bob.tar", "bob.x"], "bob.tar"),  # no ending that a row may leave out
        (["bob.tar", "bob.z.py"], "bob.tar"),
        (["bob", "bob.tar"], "bob"),
        (["bob.py", "bob.tar"], "bob"),  # which of them is meant nobody knows: the row is told
    ],
)
def test_another_file_takes_nobodys_row_of_the_roster(names, whose):
    assert batch.match_roster({"bob": {"late_days": "1"}}, names) == {whose: {"late_days": "1"}}


def test_nothing_that_may_be_a_hand_in_is_left_out_in_silence(tmp_path):
    for name in (".ana", "...", "ana", ".git"):
        (tmp_path / "class" / name).mkdir(parents=True)
    for name in ("notes.txt", ".DS_Store", "._ana.py", ".bo.py"):
        (tmp_path / "class" / name).touch()
    made = a_class(tmp_path / "class")
    assert made.names() == ["ana"] and made.left_out() == ["...", ".ana", ".bo.py", "notes.txt"]


def test_a_file_is_found_among_any_number_of_others(tmp_path):
    for number in range(MOST_FILES + 500):
        (tmp_path / f"{number}.txt").touch()
    (tmp_path / "gemm_kernels.py").write_text("x = 1")
    assert read_submission(tmp_path).text == "x = 1"
