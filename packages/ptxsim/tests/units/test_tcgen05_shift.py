"""tcgen05.shift: rows of 32 lanes move by one, the last stays; tcgen05.cp adds the next one after them."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_programs import descriptor, run, serious


def random_cells(seed: int, ctas: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, (ctas, 128, 64), np.uint32)


@pytest.mark.parametrize("lane", [0, 32, 64, 96])
@pytest.mark.parametrize("group", [1, 2])
def test_rows_move(lane, group):
    cells = random_cells(lane, group)
    work = f"add.u32 %r12, %r8, {lane << 16 | 16}; tcgen05.shift.cta_group::{group}.down [%r12];"
    out, result = run(work, np.zeros((group, 1024), np.uint8), cells, group)
    want = cells.copy()
    want[:, lane : lane + 31, 16:24] = cells[:, lane + 1 : lane + 32, 16:24]
    np.testing.assert_array_equal(out, want)
    assert not serious(result)


def test_a_copy_puts_the_next_row_behind():
    """As in a convolution: four new rows, one for each 32 lanes, after the shift of all."""
    cells, tile = random_cells(7), np.random.default_rng(8).integers(0, 256, 1024, np.uint8)
    shifts = "".join(
        f"add.u32 %r12, %r8, {lane << 16}; tcgen05.shift.cta_group::1.down [%r12];"
        for lane in range(0, 128, 32)
    )
    work = f"""{shifts} add.u32 %r12, %r8, {31 << 16};
    mov.u64 %d20, {descriptor(0, 128, 256)}; tcgen05.cp.cta_group::1.4x256b [%r12], %d20;"""
    out, result = run(work, tile, cells)
    want = cells[0].reshape(4, 32, 64).copy()
    want[:, :31, :8] = want[:, 1:, :8]
    want[:, 31, :8] = np.concatenate([tile[:64].reshape(4, 16), tile[128:192].reshape(4, 16)], 1).view(
        np.uint32
    )
    np.testing.assert_array_equal(out[0], want.reshape(128, 64))
    assert not serious(result)


@pytest.mark.parametrize("at, text", [(16 << 16, "lane 16; expected 0, 32, 64 or 96"), (508, "pass the end")])
def test_what_is_not_legal(at, text):
    work = f"add.u32 %r12, %r8, {at}; tcgen05.shift.cta_group::1.down [%r12];"
    assert text in " ".join(serious(run(work, np.zeros(1024, np.uint8), random_cells(0))[1]))
