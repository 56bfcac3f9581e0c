"""The catalogue of causes: ids, texts and hints are consistent."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import ptxsim
from ptxsim.causes.catalogue import TABLES

SOURCES = [p for p in Path(ptxsim.__file__).parent.rglob("*.py") if "causes" not in p.parts]
CODE = {path: path.read_text(encoding="utf-8") for path in SOURCES}


def test_ids_are_unique():
    assert len(ptxsim.CAUSES) == sum(map(len, TABLES))


@pytest.mark.parametrize("cause", ptxsim.CAUSES.values(), ids=lambda cause: cause.id)
def test_a_cause_is_picked_somewhere(cause):
    assert any(f'"{cause.id}"' in text for text in CODE.values())


@pytest.mark.parametrize("cause", ptxsim.CAUSES.values(), ids=lambda cause: cause.id)
def test_a_text_has_named_fields_only(cause):
    assert all(name is None or name.isidentifier() for _, name, _, _ in Formatter().parse(cause.text))


def test_the_catalogue_names_every_cause_that_is_picked():
    picked = {name for text in CODE.values() for name in re.findall(r"CAUSES\[\"([\w-]+)\"\]", text)}
    assert picked and picked <= set(ptxsim.CAUSES)
