"""`./lab hidden`: a course's own sizes, and no size lost that something was graded with."""

import pytest

from instructor.autograder import plan
from instructor.autograder.hidden_sizes import DEFAULT_SALT, draw
from tirxlab.steps import STEPS, size_text


@pytest.fixture
def hidden(tmp_path, monkeypatch):
    """hidden.toml as it came with the lab, in a folder of the test's own."""
    path = tmp_path / "hidden.toml"
    path.write_text(plan.HIDDEN.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(plan, "HIDDEN", path)
    return path


def test_what_comes_with_the_lab_is_known_to_anybody_and_what_new_makes_is_not(run, hidden):
    status, out, _ = run("hidden", "check", "--quick")
    assert status == 1 and "anybody knows it" in out
    assert run("hidden", "new")[0] == 0
    assert run("hidden", "check", "--quick")[:2] == (0, "")
    assert hidden.stat().st_mode & 0o077 == 0


def test_one_secret_makes_the_same_again_and_no_old_file_is_lost(run, hidden):
    texts = [hidden.read_text()]
    for secret in (f"{word} word of many letters" for word in ("one", "two", "one")):
        assert run("hidden", "new", "--secret", secret)[0] == 0
        texts.append(hidden.read_text())
    assert texts[1] == texts[3] != texts[2]
    assert [(hidden.with_name(f"hidden.old{n}.toml")).read_text() for n in (1, 2, 3)] == texts[:3]


def test_a_secret_that_a_student_could_guess_is_refused(run, hidden):
    """The sizes drawn for a file are shown to its author: with a word list, they reveal a short secret."""
    digest, words = (
        "a student's own",
        [f"{season}{year}" for season in ("fall", "spring") for year in range(2024, 2028)],
    )
    told = [plan.plan(step, digest, draw("spring2026"))[-1].size for step in STEPS[1:]]
    guessed = [w for w in words if [plan.plan(s, digest, draw(w))[-1].size for s in STEPS[1:]] == told]
    assert guessed == ["spring2026"]
    before = hidden.read_text()
    status, _, err = run("hidden", "new", "--secret", "spring2026")
    assert status == 2 and "guessed" in err and hidden.read_text() == before


@pytest.mark.parametrize(
    "salt, said", [(DEFAULT_SALT, "anybody knows"), ("spring2026", "guessed"), ("x" * 43, "")]
)
def test_who_grades_or_packs_with_a_salt_that_is_no_secret_is_told(run, hidden, tmp_path, salt, said):
    hidden.write_text(hidden.read_text().replace(DEFAULT_SALT, salt))
    (tmp_path / "class").mkdir()
    for command in (
        ("grade-all", str(tmp_path / "class")),
        ("package", "autolab", "--output", str(tmp_path / "a")),
    ):
        status, _, err = run(*command)
        assert status == 0 and (said in err if said else "salt" not in err)


def test_show_prints_the_size_of_each_step(run, hidden):
    status, out, _ = run("hidden", "show")
    sizes = plan.load_hidden(hidden).sizes
    assert status == 0 and all(size_text(size) in out for rows in sizes.values() for size in rows)


@pytest.mark.parametrize("text", ["", "salt = 3", "[sizes]\n1 = 3", "\x00"])
def test_a_file_that_is_none_is_one_line(run, hidden, text):
    hidden.write_text(text)
    status, _, err = run("hidden", "show")
    assert status == 2 and len(err.splitlines()) == 1 and "hidden.toml" in err


def test_another_word_is_refused(run):
    status, _, err = run("hidden", "make")
    assert status == 2 and "new, show, check" in err
