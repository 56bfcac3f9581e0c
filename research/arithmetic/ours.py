"""ptxsim's matrix units on many tiles: the functions that a launch calls, without a launch."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ptxsim.isa.layouts.fragments import mma_d
from ptxsim.isa.number_formats import DECODERS
from ptxsim.units import mma, wgmma
from research.arithmetic.forms import BITS, Form, result


def product(form: Form, registers: list[np.ndarray], codes: tuple) -> np.ndarray:
    """Patterns of D (tiles, m, n) as ptxsim has them, of the registers and the patterns of A, B and C."""
    return _warps(form, registers) if form.unit == "mma" else _warpgroups(form, codes)


def _warps(form: Form, given: list[np.ndarray]) -> np.ndarray:
    bitwise = form.last.split(".")[1] if form.last else ""
    unit = mma.MmaForm(form.m, form.n, form.k, form.a, form.b, form.d, form.d, False, bitwise)
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


def _decoded(codes: np.ndarray, kind: str) -> np.ndarray:
    decoder = DECODERS[kind]
    return decoder.decode(codes.astype(f"u{decoder.bytes}").view(decoder.raw))


def _warpgroups(form: Form, codes: tuple) -> np.ndarray:
    a, b = (_decoded(x, kind) for x, kind in zip(codes, (form.a, form.b), strict=False))
    raw = codes[2].astype(f"u{BITS[form.d] // 8}")
    c = raw.view({"f16": np.float16, "f32": np.float32, "s32": np.int32}[form.d])
    c = c.astype(np.int64 if form.d == "s32" else np.float32)
    found = np.empty(c.shape, np.uint16 if form.d == "f16" else np.uint32)
    for tile in range(len(a)):
        raw = wgmma.added(c[tile], wgmma.multiply(a[tile], b[tile], form.d), True, form.d)
        found[tile] = _as_matrix(raw, form)
    return found.astype(np.uint32)


def _as_matrix(raw: np.ndarray, form: Form) -> np.ndarray:
    """Patterns (m, n) of registers_of of a whole matrix, which takes columns for elements of a thread."""
    if form.d != "f16":
        return raw.T
    return np.stack([raw & np.uint64(0xFFFF), raw >> np.uint64(16)], 1).reshape(-1, raw.shape[1]).T
