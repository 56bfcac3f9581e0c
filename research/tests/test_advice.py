"""Mistakes of known cause: every rule makes some, each is valid Python, and
findings are judged by cause id.
"""

from __future__ import annotations

import ast
import itertools
import re

import pytest

import ptxsim
from research.advice import lists
from research.advice.families import FAMILIES, SPECIFIC, judged
from research.advice.mistakes import RULES, draw, mistakes
from research.advice.slips import SLIPS, draw_slips, slips
from research.mutation.sources import SOURCES

STEPS = [source for source in SOURCES if source.name.startswith("step")]


def builder(mistake) -> str:
    """The function that contains the mistake: the rest of the file is unchanged."""
    text = mistake.text[mistake.text.index(f"def {mistake.source.builder}(") :]
    return text.partition("\ndef ")[0]


def test_families_name_causes_of_the_catalogue():
    assert set().union(*FAMILIES.values()) <= set(ptxsim.CAUSES)
    assert {rule.family for rule in (*RULES, *SLIPS)} == set(FAMILIES) >= set(SPECIFIC)


def test_every_rule_makes_mistakes_that_are_python():
    made = [mistake for source in STEPS for mistake in mistakes(source)]
    for mistake in made[::7]:
        ast.parse(builder(mistake))
    assert {m.family for m in made} == {rule.family for rule in RULES}
    assert all(m.text != m.source.text() and m.old != m.new for m in made)


def test_every_slip_has_a_place_and_is_python():
    made = [mistake for source in SOURCES for mistake in slips(source)]
    for mistake in made[::5]:
        ast.parse(builder(mistake))
    assert {m.what for m in made} == {slip.what for slip in SLIPS} and len(SLIPS) >= 90
    code = [[re.sub(r"#.*", "", text) for text in (m.text, m.source.text())] for m in made]
    assert all(one != other for one, other in code)  # a line that moves in or out keeps its text


@pytest.mark.parametrize("drawn", [draw, draw_slips])
def test_a_seed_draws_the_same_mistakes_once_each(drawn):
    one, other = ([m.text for m in itertools.islice(drawn(5), 40)] for _ in range(2))
    assert one == other and len(set(one)) == 40
    assert one != [m.text for m in itertools.islice(drawn(6), 40)]


def test_a_round_of_slips_has_each_once():
    drawn = [m.what for m in itertools.islice(draw_slips(7), len(SLIPS))]
    assert len(set(drawn)) == len(SLIPS)


@pytest.mark.parametrize(
    "family, cause, localised, verdict",
    [
        ("slot", "shifted", "", "right"),
        ("slot", "ahead-count", "line", "wrong"),
        ("slot", "not-ready", "line", "right"),
        ("slot", "not-ready", "", "vague"),
        ("buffer", "slot", "name", "wrong"),
        ("buffer", "buffer", "", "right"),
    ],
)
def test_advice_for_another_family_is_wrong(family, cause, localised, verdict):
    assert judged(family, cause, localised) == verdict


def test_a_list_that_was_run_moves_into_the_store_and_the_table_goes_on(tmp_path):
    table, packed = tmp_path / "slips.toml", tmp_path / "slips.tar.bz2"
    first = "[[slip]]\nwhat = \"one\"\nedits = [['a#', 'b']]\n"
    second = '\n# A second list.\n\n[[slip]]\nlist = 2\nwhat = "two"\n'
    table.write_text(lists.HEAD + first)
    lists.pack(table, packed)
    assert table.read_text() == lists.HEAD and lists.texts(table, packed) == {1: first}
    table.write_text(table.read_text() + first + second)
    lists.pack(table, packed)
    assert lists.texts(table, packed) == {1: first + first, 2: second}


def test_lists_are_numbered_from_1_without_a_gap():
    numbers = list(lists.texts())
    assert numbers == list(range(1, len(numbers) + 1))
