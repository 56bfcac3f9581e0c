"""Slips that only show in D: a wrong element is traced back through the run, which names the place."""

from __future__ import annotations

import re

import parked
import pytest

from research.advice.slips import slips
from research.advice.trials import row_of
from research.mutation.sources import SOURCES

TOLD = {  # words that identify the slip -> the message about an element
    "two products take turns in tensor memory, and the MMA chooses by the parity": (
        r"that product is in column 0 .*nothing reads it there.*reads column 128 .*look at the columns"
    ),
    "the registers for D are those of one CTA's columns, as in the step before": (
        r"its thread has read that, from column 0 .* comes from column 128 .*happens to these registers"
    ),
    "the consumers take the blocks of A by turns, from stage to stage": (
        r"reads column 0 .*where row 640 of A times row 0 of B is: .*and at the rows that line"
    ),
    "A and B lie in one buffer, one below the other, and the MMA's rows of B": (
        r"multiplies row 0 of A times row 64 of A for it"
    ),
    "the rows are thought to lie in the lanes as mma.sync lays a fragment out": (
        r"is in lane 1, column 0 .* reads lane 4, column 0 .*look at the row under which .*at the lanes"
    ),
    "the rows of A go by the warp's number, as in mma(), but it is warp 3": (
        r"no load of this cluster takes row 0 of A, but A\[384:512\]"
    ),
    "the blocks of rows are shared out consumer by consumer in the loads of A": (
        r"in another CTA of its cluster than the one that stores .*loads of a CTA and its store take"
    ),
    "the cast stands in front of the read of tensor memory": r"\(their index, the cast, the order of these",
    "the rows of the product are thought to be dealt out to the four warps in turn": (
        r"reads lane 32, .*look at the row under which line 212 puts it"
    ),
    "a column of TMEM is thought to hold two values of the product, as 32 bits": (
        r"look at the columns that line (\d+) reads in each round, at what happens to .* from line \1 "
    ),
    "tensor memory belongs to the SM, so the first write-back is thought to read": (
        r"by a thread that has read nothing from tensor memory"
    ),
    "the rows of D are thought to be dealt out to the CTAs one by one": (
        r"in another cluster than the one that stores this element"
    ),
}


@pytest.fixture(autouse=True)
def _processes(monkeypatch):
    parked.use(monkeypatch)


@pytest.mark.parametrize("what", TOLD)
def test_the_way_of_a_wrong_element_names_the_place(what):
    slip = next(slip for source in SOURCES for slip in slips(source, (what,)))
    said = row_of(slip, wall=0)["message"]
    assert re.search(TOLD[what], said, re.DOTALL), said
