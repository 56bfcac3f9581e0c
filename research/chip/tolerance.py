"""How far ptxsim's results may be from a chip's: PTX ISA bounds of approximate
instructions, otherwise zero.
"""

from __future__ import annotations

import re

import numpy as np

APPROXIMATE = {"approx": 4e-6, "full": 4e-6}  # relative; PTX ISA gives 2 ulp or 2**-20.9 and up
ERRORS = {  # (relative, absolute) from the PTX ISA's sections, where they allow more
    "sin.approx": (0.0, 2.0**-20.5),
    "cos.approx": (0.0, 2.0**-20.5),
    "lg2.approx": (2.0**-22, 2.0**-22),
    "tanh.approx.f32": (2.0**-11, 0.0),
    "tanh.approx.f16": (0.0, 2.0**-10.987),
    "tanh.approx.bf16": (0.0, 2.0**-8),
    "ex2.approx.f16": (2.0**-9.9, 0.0),
    "ex2.approx.ftz.bf16": (2.0**-7, 0.0),
}


FAULTS = {  # where the chip's result is a bug of ptxas 13.0 or of the chip, and ptxsim follows the ISA
    r"set\.\w+(\.(and|or|xor))?\.b?f16\.": "the integer 1 for a true that is read as an integer (9.7.7.1)",
    r"set\.\w+\.(and|or|xor)\.f32\.": "gives the integer 1 for a true of a floating type (9.7.6.1)",
    r"(atom|red)\.shared\.add\.noftz\.b?f16x2": "adds the low half only (9.7.13.6)",
    r"cvt\.rna\.(satfinite\.)?tf32": "rounds the payload of a NaN (9.7.9.21)",
}


def fault(name: str) -> str:
    """Why the chip's result of an instruction does not count; "" if it does."""
    return next((why for pattern, why in FAULTS.items() if re.match(pattern, name)), "")


SCALARS = {"f16": (2, "float16"), "bf16": (2, "bfloat16"), "f32": (4, "float32"), "f64": (8, "float64")}
_KINDS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}


def tolerance(name: str) -> tuple[float, float]:
    """(relative, absolute) tolerance of an instruction; (0, 0) for those that are exact to the last bit."""
    relative = max((APPROXIMATE.get(m, 0.0) for m in name.split(".")), default=0.0)
    bound = next((e for start, e in ERRORS.items() if name.startswith(start)), None)
    return bound or (relative, 1e-37 * bool(relative))


def as_float(raw: np.ndarray, kind: str) -> np.ndarray:
    """float64 of raw bits of a type of `_KINDS` or bfloat16."""
    if kind == "bfloat16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(float)
    return raw.view(_KINDS[kind]).astype(float)


def agree(name: str, kind: str, chip: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Per lane, whether two results (uint64 patterns of a type) agree; NaNs must have the chip's bits."""
    (relative, absolute) = tolerance(name)
    words = [m.removesuffix("x2") for m in name.split(".") if m.removesuffix("x2") in SCALARS]
    held = kind if kind in SCALARS else words[0] if words and kind[0] == "b" else None
    if not (relative or absolute) or held is None:
        return chip == ours
    width, numbers = SCALARS[held]
    halves = 2 if kind == "b32" and width == 2 else 1
    raw = [x.astype(f"u{width * halves}").view(f"u{width}") for x in (chip, ours)]
    a, b = (as_float(x, numbers) for x in raw)
    with np.errstate(invalid="ignore"):
        near = np.isclose(b, a, rtol=relative, atol=absolute)
    if name.startswith(("sin.", "cos.")):  # the bound holds from -pi to pi only
        near = np.isfinite(a) & np.isfinite(b)
    return (near | (raw[0] == raw[1])).reshape(-1, halves).all(1)
