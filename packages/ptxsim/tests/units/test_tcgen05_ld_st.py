"""tcgen05.ld and .st: what packing does to the second half of .16x32bx2 (PTX ISA 9.7.16.8.1)."""

from __future__ import annotations

import numpy as np
import pytest

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
