"""tcgen05.cp: every shape, multicast and source format against loops written from the text (9.7.16.9.2)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tcgen05_programs import descriptor, run, serious

# shape -> (rows, bytes of a row, lanes that row r is written to)
FORMS = {
    "128x256b": (128, 32, lambda r: [r]),
    "128x128b": (128, 16, lambda r: [r]),
    "4x256b": (4, 32, lambda r: [32 * r]),
    "64x128b.warpx2::02_13": (64, 16, lambda r: [r, r + 64]),
    "64x128b.warpx2::01_23": (64, 16, lambda r: [r % 32 + 64 * (r // 32) + s for s in (0, 32)]),
    "32x128b.warpx4": (32, 16, lambda r: [r, r + 32, r + 64, r + 96]),
}


def issue(form: str, bits: int, column: int = 4, group: int = 1) -> str:
    where = f"add.u32 %r12, %r8, {column}; mov.u64 %d20, {bits};"
    return f"{where} tcgen05.cp.cta_group::{group}.{form} [%r12], %d20;"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_rows_go_to_their_lanes(form, order):
    rows, width, lanes = FORMS[form]
    tile = np.random.default_rng(1).integers(0, 256, 8192, np.uint8)
    leading, stride = 2048, 128  # no swizzle: atoms of 8 rows of 16 bytes; the next 16 bytes 2048 further on
    out, result = run(issue(form, descriptor(0, leading, stride)), tile, order=order)
    want = np.zeros((128, 64), np.uint32)
    for r in range(rows):
        at = r // 8 * stride + r % 8 * 16
        row = np.concatenate([tile[at + c * leading : at + c * leading + 16] for c in range(width // 16)])
        for lane in lanes(r):
            want[lane, 4 : 4 + width // 4] = row.view(np.uint32)
    np.testing.assert_array_equal(out[0], want)
    assert not serious(result)


def test_swizzled_rows():
    tile = np.random.default_rng(2).integers(0, 256, 128 * 64, np.uint8)
    out, result = run(issue("128x128b", descriptor(0, 0, 512, 64)), tile)
    want = np.zeros((128, 64), np.uint32)
    for r in range(128):
        at = r * 64  # the 64 B swizzle folds address bits 7-8 onto bits 4-5
        at ^= (at >> 7 & 3) << 4
        want[r, 4:8] = tile[at : at + 16].view(np.uint32)
    np.testing.assert_array_equal(out[0], want)
    assert not serious(result)


def test_each_cta_of_a_pair_copies_its_own_bytes():
    tile = np.random.default_rng(3).integers(0, 256, (2, 1024), np.uint8)
    out, result = run(issue("32x128b.warpx4", descriptor(0, 0, 128), group=2), tile, group=2)
    for rank in range(2):
        for lane in range(128):
            at = lane % 32 // 8 * 128 + lane % 8 * 16
            np.testing.assert_array_equal(out[rank, lane, 4:8], tile[rank, at : at + 16].view(np.uint32))
    assert not serious(result)


@pytest.mark.parametrize("bits, kind", [(4, ml_dtypes.float4_e2m1fn), (6, ml_dtypes.float6_e3m2fn)])
def test_narrow_elements_get_a_byte_each(bits, kind):
    codes = np.random.default_rng(4).integers(0, 1 << bits, (32, 16), np.uint8)
    tile = np.full((32, 16), 0xA5, np.uint8)  # the padding of a group does not count
    for row, values in zip(tile, codes, strict=True):
        number = sum(int(v) << bits * i for i, v in enumerate(values))
        row[: 2 * bits] = list(number.to_bytes(2 * bits, "little"))
    name = {4: "b4x16_p64", 6: "b6x16_p32"}[bits]
    out, result = run(issue(f"32x128b.warpx4.b8x16.{name}", descriptor(0, 0, 128)), tile)
    stored = np.ascontiguousarray(out[0, :, 4:8]).view(np.uint8)
    for lane in range(128):
        np.testing.assert_array_equal(stored[lane] >> (2 if bits == 4 else 0), codes[lane % 32])
    assert not serious(result)


def test_columns_that_are_not_there_are_named():
    _, result = run(issue("128x256b", descriptor(0, 2048, 128), column=508), np.zeros(8192, np.uint8))
    assert any("passes the end of tensor memory" in text for text in serious(result))


def test_a_read_without_the_commit_is_a_race():
    """One line apart: the first thread reads the columns back before anything signals that the copy is
    complete.
    """
    work = issue("32x128b.warpx4", descriptor(0, 0, 128))
    _, result = run(work, np.zeros(1024, np.uint8))
    assert not serious(result)
    _, result = run(
        "mbarrier.arrive.shared::cta.b64 _, [%r7];" + work, np.zeros(1024, np.uint8), order="adverse"
    )
    assert any("tcgen05.cp" in text for text in serious(result))
