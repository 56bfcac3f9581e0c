"""What units report of their work: spans and cells are those of the operands,
and equal work is one object.
"""

from __future__ import annotations

import ast
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

import ptxsim
from ptxsim.events.records import Footprint, Rectangle, SharedSpan, rectangles
from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor
from ptxsim.units import tcgen05_cp, tcgen05_product, tcgen05_shift

SOURCE = Path(ptxsim.__file__).parent
A, B, OTHER = (encode_matrix_descriptor(MatrixDescriptor(at, 16, 1024, 128)) for at in (1024, 17408, 33792))
FORM = (64 >> 3) << 17 | (128 >> 4) << 24 | 1 << 4, "f16", 1, False, 0, False, False
OPERANDS = {"a": A, "b": B, "lane": 0, "column": 32, "scales": (), "metadata": -1}


def mma(ranks=(0,), form=FORM, **changed) -> Footprint:
    return tcgen05_product.footprint(form, ranks, tuple((OPERANDS | changed).values()))


def test_equal_work_is_one_footprint():
    assert mma() is mma()
    assert mma().reads[0] is mma(column=64).reads[0]


@pytest.mark.parametrize("name, value", [("a", OTHER), ("b", OTHER), ("column", 64), ("a", ("tmem", 0))])
def test_each_operand_makes_another_one(name, value):
    one, other = mma(), mma(**{name: value})
    parts = ("reads", "cells_read", "cells_written", "descriptors")
    changed = {part for part in parts if getattr(one, part) != getattr(other, part)}
    wanted = {"a": {"reads", "descriptors"}, "b": {"reads", "descriptors"}, "column": {"cells_written"}}
    assert changed == wanted[name] | ({"cells_read"} if isinstance(value, tuple) else set())


def test_an_mma_states_what_it_touches():
    told = mma()
    assert [(s.rank, s.first, s.last) for s in told.reads] == [(0, 1024, 17407), (0, 17408, 25599)]
    assert told.cells_written == (Rectangle(0, 0, 128, 32, 64),)
    assert (told.tile, told.descriptors, told.ranks) == ((128, 64), (A, B), (0,))


def test_a_pair_of_ctas_reads_and_writes_in_both():
    form = (64 >> 3) << 17 | (256 >> 4) << 24 | 1 << 4, "f16", 2, False, 0, False, False
    told = mma((0, 1), form)
    assert [s.rank for s in told.reads] == [0, 0, 1, 1]
    assert told.cells_written == (Rectangle(0, 0, 128, 32, 64), Rectangle(1, 0, 128, 32, 64))


def test_an_illegal_descriptor_reads_nothing():
    assert not tcgen05_cp._footprint(("128x128b", ""), 7 << 61, 0, 0, (0,)).reads
    assert [s.first for s in mma(a=A | 7 << 61).reads] == [17408]


@pytest.mark.parametrize("form", tcgen05_cp.SHAPES)
def test_the_cells_of_a_copy_are_its_lanes(form):
    told = tcgen05_cp._footprint(form, A, 0, 8, (0, 1))
    written = np.zeros((2, 128, 512), bool)
    for cell in told.cells_written:
        assert not written[cell.block].any()
        written[cell.block] = True
    wanted = np.zeros(128, bool)
    wanted[tcgen05_cp.target_lanes(form, 0)] = True
    assert (written[:, :, 8] == wanted).all()
    assert written.any((0, 1)).sum() == tcgen05_cp.SHAPES[form][0] // 32


def test_a_shift_writes_eight_columns_of_its_lanes():
    assert tcgen05_shift._footprint(32, 8, (1,)).cells_written == (Rectangle(1, 32, 32, 8, 8),)


def test_runs_of_lanes_are_rectangles():
    assert rectangles(0, np.array([0, 1, 2, 8, 9]), 4, 2) == [(0, 0, 3, 4, 2), (0, 8, 2, 4, 2)]


@pytest.mark.parametrize(
    "record, field", [(Footprint((0,)), "ranks"), (SharedSpan.of(0, np.arange(4)), "rank")]
)
def test_records_never_change(record, field):
    with pytest.raises(FrozenInstanceError):
        setattr(record, field, ())


def code(text: str) -> str:
    """A program without its docstrings and comments."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body[0].value.value = ""
    return ast.unparse(tree)


@pytest.mark.parametrize("name", ["tcgen05.cp", "tcgen05.shift"])
def test_a_unit_is_one_file(name):
    """No listener, and nothing else in the simulator, names the instruction or imports its unit."""
    named = re.compile(rf"{re.escape(name)}\b|{name.replace('.', '_')}\b")
    texts = {file.name: file.read_text() for file in SOURCE.rglob("*.py")}
    files = [file for file, text in texts.items() if named.search(text) and named.search(code(text))]
    assert files == [name.replace(".", "_") + ".py"]
