"""ptxsim.layouts.tmem against hand-copied corners of the ISA figures, bijection, and TVM's layout objects."""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.isa.layouts.tmem import LOAD_SHAPES, data_path, load_layout, operand_layout, result_layout

NUMS = (1, 2, 4, 8, 16, 32, 64, 128)
LOADS = [(shape, num) for shape, (_, _, top) in LOAD_SHAPES.items() for num in NUMS if num <= top]


@pytest.mark.parametrize(("shape", "num"), LOADS)
def test_load_covers_its_rectangle_once(shape, num):
    split = num if shape == "16x32bx2" else 0
    lane, column = load_layout(shape, num, split)
    rows = 32 if shape == "32x32b" else 16
    width = LOAD_SHAPES[shape][1] * num * (2 if split else 1)
    assert lane.shape == column.shape == (32, LOAD_SHAPES[shape][0] * num)
    assert sorted(zip(lane.flat, column.flat, strict=True)) == [
        (r, c) for r in range(rows) for c in range(width)
    ]


# (thread, register) -> (lane, column), read off figures 183-187 of PTX ISA 9.7.16.2.3.1
CORNERS = {
    ("32x32b", 4): {(0, 0): (0, 0), (5, 3): (5, 3), (31, 2): (31, 2)},
    ("16x64b", 2): {
        (0, 0): (0, 0),
        (1, 0): (8, 0),
        (2, 0): (0, 1),
        (3, 0): (8, 1),
        (4, 1): (1, 2),
        (31, 1): (15, 3),
    },
    ("16x128b", 2): {
        (0, 0): (0, 0),
        (3, 0): (0, 3),
        (4, 0): (1, 0),
        (0, 1): (8, 0),
        (0, 2): (0, 4),
        (31, 3): (15, 7),
    },
    ("16x256b", 2): {
        (0, 1): (0, 1),
        (1, 0): (0, 2),
        (4, 0): (1, 0),
        (0, 2): (8, 0),
        (3, 3): (8, 7),
        (0, 4): (0, 8),
    },
}


@pytest.mark.parametrize("case", CORNERS)
def test_load_corners(case):
    lane, column = load_layout(*case)
    for at, expected in CORNERS[case].items():
        assert (lane[at], column[at]) == expected


def test_split_load():
    lane, column = load_layout("16x32bx2", 2, 64)
    assert (lane[3, 1], column[3, 1]) == (3, 1) and (lane[19, 1], column[19, 1]) == (3, 65)


@pytest.mark.parametrize(("shape", "num"), [("8x8b", 1), ("32x32b", 3), ("16x256b", 64), ("16x128b", 128)])
def test_load_refuses(shape, num):
    with pytest.raises(ValueError, match=r"tcgen05\.ld"):
        load_layout(shape, num)


RESULTS = [
    ("A", dict(m=256, n=128, cta_group=2)),
    ("B", dict(m=128, n=128, cta_group=2)),
    ("D", dict(m=128, n=64)),
    ("F", dict(m=64, n=40)),
]


@pytest.mark.parametrize(("letter", "shape"), RESULTS)
def test_result_is_one_to_one(letter, shape):
    cta, lane, column = result_layout(**shape)
    m, n, pair = shape["m"], shape["n"], shape.get("cta_group", 1)
    assert data_path(m, pair) == letter
    assert cta.shape == lane.shape == column.shape == (m, n)
    assert len(set(zip(cta.flat, lane.flat, column.flat, strict=True))) == m * n
    assert (cta.max(), lane.max()) == (pair - 1, 111 if letter == "F" else 127)
    assert column.max() + 1 == n // (2 if letter == "B" else 1)


def test_result_corners():
    """PTX ISA 9.7.16.10.5: one row of each figure."""
    _, lane, column = result_layout(64, 64)
    assert lane[[0, 15, 16, 63], 0].tolist() == [0, 15, 32, 111] and column[16, 9] == 9
    cta, lane, column = result_layout(128, 256, cta_group=2)
    assert (cta[70, 0], lane[70, 0], column[70, 0]) == (1, 6, 0)
    assert (cta[70, 130], lane[70, 130], column[70, 130]) == (1, 70, 2)


@pytest.mark.parametrize(("m", "pair"), [(256, 1), (64, 2), (32, 1)])
def test_result_refuses(m, pair):
    with pytest.raises(ValueError, match="has no M="):
        result_layout(m, 64, pair)


def test_operand_in_tensor_memory():
    cta, lane, byte = operand_layout(256, 16, 2, cta_group=2)
    assert (cta[129, 3], lane[129, 3], byte[129, 3]) == (1, 1, 6)
    cta, lane, byte = operand_layout(64, 16, 2)
    assert (cta[20, 3], lane[20, 3], byte[20, 3]) == (0, 36, 6)
    assert np.array_equal(lane[:, 0], result_layout(64, 16)[1][:, 0])


# --- TVM's own layout objects ---


def tvm_apply(layout, shape, axes):
    """layout at every coordinate of shape -> one int array per axis name."""
    found = [layout.apply(int(r), int(c), shape=list(shape)) for r, c in np.ndindex(*shape)]
    return [np.array([int(f[axis]) if axis in f else 0 for f in found]).reshape(shape) for axis in axes]


@pytest.mark.parametrize(("shape", "num"), [("32x32b", 8), ("16x64b", 4), ("16x128b", 4), ("16x256b", 2)])
def test_loads_agree_with_tvm(shape, num):
    tvm_layout = pytest.importorskip("tvm.tirx.layout")
    lane, column = load_layout(shape, num)
    width = LOAD_SHAPES[shape][1] * num
    rows = 128 if shape == "32x32b" else 64
    theirs = tvm_layout.tcgen05_atom_layout(shape, (rows, width), "float32")
    if shape == "32x32b":
        thread, reg = tvm_apply(theirs, (rows, width), ("tid_in_wg", "m"))
        warp, thread = np.divmod(thread, 32)
    else:
        warp, thread, reg = tvm_apply(theirs, (rows, width), ("wid_in_wg", "laneid", "m"))
    per_warp = rows // 4
    assert (warp * per_warp + lane[thread, reg] == np.arange(rows)[:, None]).all()
    assert (column[thread, reg] == np.arange(width)[None, :]).all()


@pytest.mark.parametrize(("letter", "shape"), [case for case in RESULTS if not case[1].get("sparse")])
def test_results_agree_with_tvm(letter, shape):
    tvm_layout = pytest.importorskip("tvm.tirx.layout")
    _, lane, column = result_layout(**shape)
    rows = shape["m"] // shape.get("cta_group", 1)
    theirs = tvm_layout.tmem_datapath_layout(letter, rows, shape["n"])
    tvm_lane, tvm_column = tvm_apply(theirs, (rows, shape["n"]), ("TLane", "TCol"))
    assert (lane[:rows] == tvm_lane).all() and (column[:rows] == tvm_column).all()
