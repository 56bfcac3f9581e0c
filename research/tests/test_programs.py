"""The manifest of programs of other projects is well formed, and a run is judged as its entry says."""

import re

import pytest

from research import packed
from research.programs.__main__ import (
    TABLE,
    Program,
    judge,
    known_rows,
    manifest,
    runs,
    summary,
    write_table,
)

SOURCES, PROGRAMS = manifest()


def test_the_manifest_is_what_it_claims():
    assert len(PROGRAMS) >= 60 and len({p.source for p in PROGRAMS}) >= 8
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS)
    assert {p.source for p in PROGRAMS} == set(SOURCES)
    assert all(re.fullmatch(r"[0-9a-f]{40}", source["commit"]) for source in SOURCES.values())
    for program in PROGRAMS:
        re.compile(program.right), re.compile(program.wrong)


def launch(verdict: str, *findings: tuple[str, str]) -> dict:
    return {"verdict": verdict, "findings": [{"severity": s, "message": m} for s, m in findings]}


ENDED = "ptxsim: 1 launch of 1 kernel as on an NVIDIA H200: 1 clean; ..; the program ended with {}\n"
CASES = [  # exit code of the command, of the program, what it printed, launches, (reached, accusations)
    (0, 0, "Test PASSED", [launch("clean")], ("right", 0)),
    (0, 0, "Test FAILED", [launch("clean")], ("ran", 0)),
    (1, 0, "Test PASSED", [launch("error", ("error", "race"))], ("right", 1)),
    (1, 1, "Test PASSED", [launch("clean")], ("ran", 0)),
    (3, 0, "Test PASSED", [launch("incomplete", ("incomplete", "others are not checked"))], ("right", 0)),
    (3, 0, "", [launch("incomplete", ("incomplete", "ptxsim cannot run k: ..."))], ("loaded", 0)),
    (124, 0, "", [], ("loaded", 0)),
]


@pytest.mark.parametrize("code, own, text, launches, expected", CASES)
def test_how_a_run_is_judged(code, own, text, launches, expected):
    program = Program("a/b", "a", right="PASSED", wrong="FAILED")
    row = judge(program, code, text, ENDED.format(own), launches)
    assert (row["reached"], row["accusations"]) == expected


def test_an_accusation_that_is_deserved_does_not_count():
    program = Program("a/b", "a", accused="it fails on purpose")
    assert judge(program, 1, "", ENDED.format(0), [launch("error", ("error", "x"))])["accusations"] == 0


def test_the_summary_counts_programs_that_are_right_in_every_order():
    reached = [("a/x", "right"), ("a/x", "right"), ("b/y", "right"), ("b/y", "ran")]
    rows = [{"name": name, "reached": stage, "accusations": 0} for name, stage in reached]
    told = "2 programs of 2 sources: 2 load, 2 run, 1 right in every order, 0 accused"
    assert summary(rows) == told


def test_what_was_not_built_is_told_and_what_was_is_run(tmp_path):
    built = tmp_path / "a" / "b"
    rows = list(runs(Program("a/b", "a", right="hello"), tmp_path, ["program", "adverse"]))
    assert [(row["order"], row["reached"], row["why"]) for row in rows] == [
        ("program", "", "not built"),
        ("adverse", "", "not built"),
    ]
    built.parent.mkdir()
    built.write_text("#!/bin/sh\necho hello\n")
    built.chmod(0o755)
    (row,) = runs(Program("a/b", "a", right="hello"), tmp_path, ["program"])
    assert row["reached"] == "right" and row["launches"] == 0


def test_orders_that_came_out_alike_share_a_row_of_the_table(tmp_path):
    table, rows = tmp_path / TABLE.name, {}
    for program in (Program("a/b", "a"), Program("a/c", "a")):
        for row in runs(program, tmp_path, ["program", "adverse"]):
            seconds = 1 if row["order"] == "program" else 2
            rows[row["name"], row["order"]] = row | {"seconds": seconds}
    rows["a/c", "program"]["why"] = "another reason"
    write_table(table, rows)
    assert len(packed.read(table).splitlines()) == 1 + 1 + 2
    known = known_rows(table)
    assert {key: row["seconds"] for key, row in known.items()} == {
        k: str(r["seconds"]) for k, r in rows.items()
    }
    assert [known[key]["why"] for key in rows] == [row["why"] for row in rows.values()]


def test_the_table_is_written_as_it_was_read(tmp_path):
    write_table(tmp_path / TABLE.name, known_rows(TABLE))
    assert packed.read(tmp_path / TABLE.name) == packed.read(TABLE)
