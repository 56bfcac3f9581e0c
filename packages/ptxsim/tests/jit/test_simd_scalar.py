"""Operations in vector code give the same results as the lane loop, for any mask, also in place."""

import numba
import numpy as np
import pytest

from ptxsim.isa.mathlib.inner import WHOLE
from ptxsim.jit import bytecode
from ptxsim.jit.codegen import _vectorises, cold_operation, hot_operations
from ptxsim.jit.simd_scalar import vector_operation

VECTOR = [op for op in hot_operations() if _vectorises(op)]
EDGES = [
    0,
    1,
    31,
    32,
    33,
    63,
    64,
    255,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x3F80_0000,
    0x7FC0_0000,
    2**63,
    2**64 - 1,
]


def register_file(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A row with operands in slots 1-4 and predicates 1-4, registers (8, 32) and predicates (8,)."""
    rng = np.random.default_rng(seed)
    registers = rng.integers(0, 2**64, (8, 32), dtype=np.uint64)
    edges = np.array(EDGES, np.uint64)
    pick = rng.random((8, 32)) < 0.5
    registers[pick] = rng.choice(edges, pick.sum())
    return np.zeros(bytecode.COLUMNS, np.int64), registers, rng.integers(0, 2**32, 8).astype(np.int64)


def run(function, op, seed: int, mask: int, target: int):
    row, registers, predicates = register_file(seed)
    for i, (column, kind) in enumerate(
        zip((bytecode.SRC0, bytecode.SRC1, bytecode.SRC2, bytecode.SRC3), op.src, strict=False)
    ):
        row[column] = 2 * (i + 1) + seed % 2 if kind == "pred" else i + 1
    row[bytecode.DST0] = target
    function(row.ctypes.data, mask, registers.ctypes.data, predicates.ctypes.data)
    return registers, predicates


def vector_code(op):
    """`cold(row, m, registers, predicates)` of one operation by vector code."""
    operation = vector_operation(op.dst, op.src, op.expr)

    signature = numba.void(numba.uint64, numba.int64, numba.uint64, numba.uint64)

    @numba.njit(signature, pipeline_class=WHOLE, no_cfunc_wrapper=True)
    def cold(row, m, registers, predicates):
        operation(row, m, registers, predicates)

    return cold


def same(a: np.ndarray, b: np.ndarray, op) -> bool:
    """Equal bits, except that a NaN of f32 arithmetic may carry any payload."""
    if op.dst[0] != "f32":
        return np.array_equal(a, b)
    x, y = (v.astype(np.uint32).view(np.float32) for v in (a, b))
    return bool(np.all((a == b) | (np.isnan(x) & np.isnan(y))))


@pytest.mark.parametrize("op", VECTOR, ids=lambda op: op.key)
def test_vector_code_equals_the_lane_loop(op):
    loop, vector = cold_operation(op), vector_code(op)
    for seed in range(4):
        for mask in (0xFFFF_FFFF, 0x1, 0x8421_F00F):
            for target in (5, 1):
                expected, got = run(loop, op, seed, mask, target), run(vector, op, seed, mask, target)
                assert same(expected[0], got[0], op)
                assert np.array_equal(expected[1], got[1])


def test_most_hot_operations_have_a_vector_form():
    assert len(VECTOR) > 80
