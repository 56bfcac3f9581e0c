"""tcgen05.ld and .st: the cells of each shape, and the effect of packing on the second half of .16x32bx2 (PTX
ISA 9.7.16.8.1).
"""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.events.records import TmemCells
from ptxsim.isa.layouts.tmem import LOAD_SHAPES
from ptxsim.machine.tensor_memory import COLUMNS, LANES
from ptxsim.units.tcgen05_ld_st import _packed_cells, cells


@pytest.mark.parametrize("count, split", [(1, 8), (4, 16), (16, 40)])
def test_packing_doubles_the_columns_but_not_the_offset_of_the_second_half(count, split):
    lanes, (low, high) = _packed_cells("16x32bx2", count, split)
    thread = np.arange(32)
    for register in range(count):
        assert (low[register] == 2 * register + (thread >= 16) * split).all()
        assert (high[register] == low[register] + 1).all() and (lanes[register] == thread % 16).all()


@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b"])
def test_other_shapes_pack_two_columns_in_a_row(shape):
    _, columns = cells(shape, 4)
    assert (_packed_cells(shape, 4)[1] == np.stack([2 * columns, 2 * columns + 1])).all()


@pytest.mark.parametrize("shape", LOAD_SHAPES)
@pytest.mark.parametrize("cells_of", [cells, _packed_cells])
def test_cells_that_are_a_block_are_those_of_the_layout(shape, cells_of):
    lanes, columns = cells_of(shape, 4, 40 if shape == "16x32bx2" else 0)
    found = TmemCells.of(0, lanes + 32, columns + 7)
    memory = np.arange(LANES * COLUMNS, dtype=np.uint32).reshape(LANES, COLUMNS)
    before, expected = memory.sum(), memory[found.index]
    assert (found.block is not None) == (shape == "32x32b" and cells_of is cells)
    assert (found.held(memory) == expected).all()
    found.put(memory, np.uint64(1 << 40) + expected + 1)
    assert (memory[found.index] == expected + 1).all() and memory.sum() == before + expected.size
