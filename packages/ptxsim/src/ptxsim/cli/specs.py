"""Arguments of kernels on the command line: turns words into arrays, scalars and tensor maps.

A.npy                      an array from a file
zeros:f32:1024             an array of zeros; ones, nan and arange work the same way
random:f16:128x64:7        random numbers from seed 7: normally distributed, or uniform for integer types
map:A.npy:box=64x128:swizzle=128:fill=nan      a tensor map of an array; box: innermost dimension first
5   1.5   u64:7   f32:1.5  scalars
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import ml_dtypes
import numpy as np

from ptxsim.cli.common import Bad
from ptxsim.machine.tensor_map import TensorMap

DTYPES = {
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)},
    **{"f16": np.dtype("f2"), "f32": np.dtype("f4"), "f64": np.dtype("f8")},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
_FILLS = ("zeros", "ones", "nan", "arange", "random")
_FORMS = "FILE.npy, zeros:f32:1024, random:f16:128x64:SEED, map:A.npy:box=64x128:swizzle=128, 5, f32:1.5"


def argument(word: str):
    """The array, scalar or tensor map that a word describes. Raises Bad for any other word."""
    head, _, rest = word.partition(":")
    if head == "map":
        return _map(word, rest)
    if head in DTYPES and rest:
        return _scalar(word, DTYPES[head], rest)
    if head in _FILLS or word.endswith(".npy"):
        return array(word)
    try:
        return int(word, 0)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        raise Bad(f"an argument must be one of {_FORMS} (got {word!r})") from None


def array(word: str) -> np.ndarray:
    """The array of `zeros:f32:64x64`, `random:f16:128x64:7`, or of a .npy file."""
    if word.endswith(".npy"):
        return _read(word)
    fill, *parts = word.split(":")
    if fill not in _FILLS or not 2 <= len(parts) <= 3 or parts[0] not in DTYPES:
        form = f"{'|'.join(_FILLS)}:TYPE:SHAPE, TYPE {'|'.join(DTYPES)}"
        raise Bad(f"an array must be FILE.npy or {form} (got {word!r})")
    return _filled(word, fill, DTYPES[parts[0]], extents(parts[1], word), parts[2] if parts[2:] else "0")


def _read(path: str) -> np.ndarray:
    try:
        data = np.load(Path(path), allow_pickle=False)
    except OSError as error:
        raise Bad(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError):
        raise Bad(f"{path} is not a complete .npy file of numbers") from None
    if not data.size or data.dtype.names or data.dtype.kind not in "biufcV":  # V: numpy has no name for bf16
        raise Bad(f"{path} holds no numbers (it has shape {data.shape}, type {data.dtype})")
    return np.ascontiguousarray(data.astype(data.dtype.newbyteorder("="), copy=False))


def _filled(word: str, fill: str, dtype: np.dtype, shape: tuple[int, ...], seed: str) -> np.ndarray:
    if math.prod(shape) * max(dtype.itemsize, 8 if fill in ("arange", "random") else 1) > _memory():
        raise Bad(f"{word} does not fit into this computer's memory")
    if fill == "random":
        if not seed.isdecimal():
            raise Bad(f"the seed must be a number (got {word!r})")
        rng = np.random.default_rng(int(seed))
        if dtype.kind in "iu":
            return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        return rng.standard_normal(shape).astype(dtype)
    if fill == "nan" and dtype.kind in "iu":
        raise Bad(f"integers have no NaN (got {word!r})")
    if fill == "arange":
        return np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    return np.full(shape, {"zeros": 0, "ones": 1, "nan": np.nan}[fill], dtype)


def _memory() -> int:
    """The size of this computer's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def extents(text: str, word: str) -> tuple[int, ...]:
    """The shape that a text such as `128x64` describes: (128, 64)."""
    found = _positive(text)
    if not found:
        raise Bad(f"a shape must be numbers such as 128x64 (got {word!r})")
    return found


def triple(text: str, option: str) -> tuple[int, ...]:
    """The extents of a grid, block or cluster: one to three numbers, separated by `x` or `,`."""
    found = _positive(text.replace(",", "x"))
    if not 1 <= len(found) <= 3:
        raise Bad(f"{option} must be up to three positive numbers such as 16x4 (got {text!r})")
    return found


def _positive(text: str) -> tuple[int, ...]:
    """The positive numbers that `x` separates; () if there is anything else."""
    parts = text.split("x")
    return tuple(map(int, parts)) if all(part.isdecimal() and int(part) for part in parts) else ()


def _scalar(word: str, dtype: np.dtype, text: str):
    try:
        value = int(text, 0) if dtype.kind in "iu" else float(text)
        return np.array(value).astype(dtype)[()] if dtype.kind not in "iu" else dtype.type(value)
    except (ValueError, OverflowError):
        raise Bad(f"{text!r} is not a valid {word.partition(':')[0]} (got {word!r})") from None


def _map(word: str, rest: str) -> TensorMap:
    parts = rest.split(":")
    pairs = (part.partition("=") for part in parts if "=" in part)
    options = {name: value for name, _, value in pairs}
    unknown = set(options) - {"box", "swizzle", "fill"}
    if unknown or "box" not in options:
        raise Bad(f"a tensor map must be map:ARRAY:box=64x128[:swizzle=128][:fill=nan] (got {word!r})")
    data = array(":".join(part for part in parts if "=" not in part))
    swizzle = options.get("swizzle", "0")
    if not swizzle.isdecimal():
        raise Bad(f"the swizzle must be 0, 32, 64 or 128 (got {word!r})")
    try:
        return TensorMap(
            data, box=extents(options["box"], word), swizzle=int(swizzle), fill=options.get("fill", "zero")
        )
    except ValueError as error:
        raise Bad(f"{word}: {error}") from None
