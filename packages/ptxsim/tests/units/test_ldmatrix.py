"""ldmatrix, stmatrix and movmatrix against the element tables of the ISA, written out independently here."""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel, run_registers, vector

import ptxsim

LANE = np.arange(32)
FILL = "shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; st.shared.v4.b32 [%x1], {%r0, %r1, %r2, %r3}; bar.sync 0;"
# thread t gives the address of row 31 - t, so that the addresses matter
REVERSED = "sub.u32 %x2, 31, %t; shl.b32 %x2, %x2, 4; add.u32 %x2, %sm, %x2;"


def rows_of(data: np.ndarray) -> np.ndarray:
    """uint8 (32, 16): the rows that the lanes' addresses name."""
    return np.ascontiguousarray(data.T).view(np.uint8).reshape(32, 16)[::-1]


def load(modifiers: str, count: int, data: np.ndarray) -> np.ndarray:
    """Registers (count, 32) after an ldmatrix of rows 31, 30, .. of `data` (4, 32)."""
    text = f"{FILL} {REVERSED} ldmatrix.sync.aligned.{modifiers} {vector('o', 0, count)}, [%x2];"
    return run_registers(register_kernel(text, 4, count, shared=512, target="sm_100a"), data, count)


@pytest.fixture
def data() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 2**32, (4, 32), dtype=np.uint32)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transpose", [False, True])
def test_ldmatrix_m8n8(data, count, transpose):
    out = load(f"m8n8.x{count}{'.trans' * transpose}.shared.b16", count, data)
    halves = rows_of(data).copy().view(np.uint16).reshape(4, 8, 8)
    for i in range(count):
        matrix = halves[i].T if transpose else halves[i]
        pairs = matrix[LANE // 4, LANE % 4 * 2] + (
            matrix[LANE // 4, LANE % 4 * 2 + 1].astype(np.uint32) << 16
        )
        assert np.array_equal(out[i], pairs)


@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_m16n16_is_the_8_bit_operand_of_mma(data, count):
    """Register h holds row lane / 4 + 8h of the transposed matrix, columns 4 * (lane % 4) and up."""
    out = load(f"m16n16.x{count}.trans.shared.b8", 2 * count, data)
    for i in range(count):
        matrix = rows_of(data)[16 * i : 16 * i + 16].T
        for h in range(2):
            expected = np.stack([matrix[LANE // 4 + 8 * h, LANE % 4 * 4 + j] for j in range(4)], 1)
            assert np.array_equal(out[2 * i + h], np.ascontiguousarray(expected).view(np.uint32)[:, 0])


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("source, bits", [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_ldmatrix_packed_rows(data, count, source, bits):
    out = load(f"m8n16.x{count}.shared.b8x16.{source}", count, data)
    for i in range(count):
        for lane in range(32):
            row = int.from_bytes(rows_of(data)[8 * i + lane // 4].tobytes(), "little")
            values = [(row >> (bits * (lane % 4 * 4 + j))) & ((1 << bits) - 1) for j in range(4)]
            assert out[i, lane] == sum(v << 8 * j for j, v in enumerate(values))


@pytest.mark.parametrize("modifiers, count", [
    *((f"m8n8.x{n}{t}.shared.b16", n) for n in (1, 2, 4) for t in ("", ".trans")),
    *((f"m16n8.x{n}.trans.shared.b8", n) for n in (1, 2, 4)),
])  # fmt: skip
def test_stmatrix_then_read(data, modifiers, count):
    """What stmatrix wrote is read back row by row, 4 registers each; rows it does not name keep 0xFF."""
    store = f"{REVERSED} stmatrix.sync.aligned.{modifiers} [%x2], {vector('r', 0, count)}; bar.sync 0;"
    read = "shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%x1];"
    ptx = register_kernel(f"{store} {read}", 4, 4, shared=512, target="sm_100a")
    # if fewer rows are stored than read, the checks report that the others are uninitialised
    out = run_registers(ptx, data, 4, expect="clean" if count == 4 else None)
    rows = rows_of(out)
    assert (rows[8 * count :] == 0xFF).all()
    for i in range(count):
        bytes_of = np.ascontiguousarray(data[i]).view(np.uint8).reshape(32, 4)
        if "b8" in modifiers:
            expected = np.zeros((8, 16), np.uint8)
            for j in range(4):
                expected[LANE % 4 * 2 + j % 2, LANE // 4 + 8 * (j // 2)] = bytes_of[:, j]
        else:
            matrix = np.zeros((8, 8), np.uint16)
            halves = bytes_of.view(np.uint16)
            for j in range(2):
                matrix[LANE // 4, LANE % 4 * 2 + j] = halves[:, j]
            expected = np.ascontiguousarray(matrix.T if "trans" in modifiers else matrix).view(np.uint8)
        assert np.array_equal(rows[8 * i : 8 * i + 8], expected)


def test_movmatrix_transposes(data):
    text = "movmatrix.sync.aligned.m8n8.trans.b16 %o0, %r0;"
    out = run_registers(register_kernel(text, 4, 1), data, 1)
    matrix = np.ascontiguousarray(data[0]).view(np.uint16).reshape(8, 8)
    assert np.array_equal(np.ascontiguousarray(out[0]).view(np.uint16).reshape(8, 8), matrix.T)


@pytest.mark.parametrize("text, message", [
    ("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%o0}, [%sm];", "not modelled"),
    ("ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%o0, %o0}, [%sm];", "not a modelled form of ldmatrix"),
    ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%o0}, [%sm];", "takes 2 registers, not 1"),
    ("stmatrix.sync.aligned.m16n8.x1.shared.b8 [%sm], {%r0};", "not a modelled form of stmatrix"),
    ("movmatrix.sync.aligned.m8n8.b16 %o0, %r0;", "not a modelled form of movmatrix"),
])  # fmt: skip
def test_refused(text, message):
    with pytest.raises(ptxsim.PtxError, match=message):
        ptxsim.load(register_kernel(text, 1, 1, shared=512))


@pytest.mark.parametrize(
    "offset, kind", [("8", "misaligned"), ("4096", "out-of-bounds"), ("33554432", "cluster")]
)
def test_bad_row_addresses_are_findings(data, offset, kind):
    text = f"{FILL} {REVERSED} ldmatrix.sync.aligned.m8n8.x4.shared.b16 {vector('o', 0, 4)}, [%x2+{offset}];"
    module = ptxsim.load(register_kernel(text, 4, 4, shared=512))
    result = module.launch("k", block=32, args=[data, np.zeros_like(data)])
    assert [f.kind for f in result.findings] == [kind]
