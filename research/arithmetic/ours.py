"""ptxsim's matrix units on many tiles: the functions that a launch calls, without a launch."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ptxsim.isa.address_map import SHARED_START
from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor, operand_addresses
from ptxsim.isa.layouts.fragments import mma_d, wgmma_d
from ptxsim.isa.number_formats import DECODERS
from ptxsim.units import mma
from ptxsim.units.mma_form import MmaForm
from ptxsim.units.wgmma_form import WgmmaForm
from ptxsim.units.wgmma_product import block_of_registers, multiply_now
from research.arithmetic.forms import BITS, Form, result


def product(form: Form, registers: list[np.ndarray], codes: tuple) -> np.ndarray:
    """Bit patterns of D (tiles, m, n) as ptxsim computes them, from the
    registers and patterns of A, B and C.
    """
    return _warps(form, registers) if form.unit == "mma" else _warpgroups(form, codes)


def _warps(form: Form, given: list[np.ndarray]) -> np.ndarray:
    bitwise = form.last.split(".")[1] if form.last else ""
    unit = MmaForm(form.m, form.n, form.k, form.a, form.b, form.d, form.d, False, bitwise)
    operands = mma._operand("a", form.m, form.k, form.a), mma._operand("b", form.n, form.k, form.b)
    ends = np.cumsum([len(given[2]), *map(len, given)])  # slots of D, A, B, C
    slots = [tuple(range(end - size, end)) for end, size in zip(ends, np.diff([0, *ends]), strict=True)]
    run = mma.multiplier(unit, mma.Layout(*operands, *mma_d(form.m, form.n)))
    held = np.zeros((given[0].shape[1], ends[-1], 32), np.uint64)
    held[:, ends[0] :] = np.concatenate(given).transpose(1, 0, 2)
    program = SimpleNamespace(slots=SimpleNamespace(unset=frozenset()))
    cluster = SimpleNamespace(
        launch=SimpleNamespace(program=program),
        registers=held,
        checks=None,
        dry=False,
        tensor_operations=0,
        lanes_at_start=lambda warp: 0xFFFF_FFFF,
    )
    for warp in range(len(held)):
        run(cluster, SimpleNamespace(warp=warp, mask=0xFFFF_FFFF), slots)
    out = held[:, : ends[0]].transpose(1, 0, 2)
    return result(form, out if form.d == "f64" else out.astype(np.uint32))


def _warpgroups(form: Form, codes: tuple) -> np.ndarray:
    """The product with A in shared memory; A in registers gives the same."""
    unit = WgmmaForm(form.n, form.k, form.d, form.a, form.b, False, False, False, False, False, False)
    block, (rows, columns) = block_of_registers(unit), wgmma_d(form.n)
    a, b = (codes[i].astype(f"u{DECODERS[kind].bytes}") for i, kind in enumerate((form.a, form.b)))
    c, found = codes[2].astype(f"u{BITS[form.d] // 8}"), np.empty(codes[2].shape, np.uint32)
    for tile in range(len(a)):
        window, descriptors = _in_shared([a[tile], b[tile]])
        held = np.ascontiguousarray(c[tile][rows, columns]).view(np.uint32).reshape(4, 32, -1)
        files = np.ascontiguousarray(held.transpose(0, 2, 1), np.uint64)
        addresses = np.array([one.ctypes.data for one in files], np.int64)
        at = addresses.ctypes.data
        multiply_now(block.address, window.ctypes.data, window.size, *descriptors, at, at, at, 0, 15)
        raw = np.ascontiguousarray(files.transpose(0, 2, 1).astype(np.uint32)).view(c.dtype)
        found[tile][rows, columns] = raw.reshape(128, -1)
    return found


def _in_shared(matrices: list[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """Shared memory that holds K-major matrices without a swizzle, and their descriptors."""
    window, descriptors, start = np.zeros(1 << 16, np.uint8), [], SHARED_START
    for matrix in matrices:
        desc = MatrixDescriptor(start, leading=128, stride=256, swizzle=0)
        places = operand_addresses(desc, *matrix.shape, matrix.itemsize, mn_major=False)
        window.view(matrix.dtype)[places // matrix.itemsize] = matrix
        descriptors.append(encode_matrix_descriptor(desc, "sm_90"))
        start += 32 * len(matrix)
    return window, descriptors
