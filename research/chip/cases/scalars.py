"""One case for every form of the scalar table (ptxsim/isa/scalar*.py) that sm_90a has."""

from __future__ import annotations

import random
import sys
import zlib
from pathlib import Path

import numpy as np

from ptxsim.isa.scalar import table as scalar
from ptxsim.isa.scalar.forms import Form
from research.chip.case import HEAD, Case
from research.chip.tolerance import tolerance

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from record_scalar import ROWS, kernel, pattern

FLOATS = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16"}
NEWER = ("f32x2", "e2m1", "e2m3", "e3m2", "ue8m0", "s2f6", ".f32.f16", ".f32.bf16")  # not on sm_90a
NEWER += ("bf16x2.e4m3", "bf16x2.e5m2")  # not in PTX before 9.2


def forms() -> list[tuple[Form, str]]:
    """Each form of the table with one of its spellings that ptxas accepts: the first after the middle."""
    found = []
    for family in scalar.FAMILIES:
        for form in family.forms:
            spellings = [".".join((family.name, *words)) for words, _ in form.expand()]
            middle = len(spellings) // 2
            order = spellings[middle:] + spellings[:middle]
            found.append(
                (form, next((s for s in order if not ("bf16" in s and ("s8" in s or "u8" in s))), order[0]))
            )
    return found


def cases() -> list[Case]:
    return [case for i, (_, name) in enumerate(forms()) if (case := scalar_case(i, name)) is not None]


def scalar_case(i: int, name: str) -> Case | None:
    """A case with a row of operands per thread; None for forms that sm_90a
    lacks or the harness cannot spell.
    """
    op, *mods = name.split(".")
    mixed = op in ("add", "sub", "fma")  # f32 with a 16-bit operand
    if any(w in name for w in NEWER if mixed or w[0] != ".") or "|" in name or op == "lop3":
        return None
    op, *mods = name.split(".")
    form, words = scalar.spellings(op)[scalar.ordered(tuple(mods))][0]
    built = form.build(words, scalar.HOT)
    if any("x2" in k and k[0] == "e" for k in (*built.dst, *built.src)):
        return None
    rng = random.Random(zlib.crc32(name.encode()))
    data = np.zeros((6, ROWS), np.uint64)
    for k, kind in enumerate(built.src):
        data[k] = [pattern(name, k, kind, rng) for _ in range(ROWS)]
    if op in ("sin", "cos"):  # the error is given from -pi to pi
        data[0] = (data[0].astype(np.uint32).view(np.float32) % np.float32(3.14)).view(np.uint32)
        data[0][(data[0] & 0x7F80_0000) == 0x7F80_0000] = 0
    if "rna" in mods:  # the chip turns a NaN with its payload in the low bits into infinity: limits.md
        data[0] |= (((data[0] & 0x7F80_0000) == 0x7F80_0000) & ((data[0] & 0x7F_FFFF) != 0)) * np.uint64(
            1 << 22
        )
    data[5] = [rng.getrandbits(1) for _ in range(ROWS)]
    text = HEAD.format(version="9.0", target="sm_90a") + kernel(i, name, built).replace(
        f".entry k{i}(", ".entry k("
    )
    arrays = {"a": data, "b": np.zeros((2, ROWS), np.uint64)}
    rtol, atol = tolerance(name)
    return Case(
        f"scalar.{i:03}.{name}",
        text,
        arrays,
        ("b",),
        ROWS,
        compare=_compare(built, mods),
        rtol=rtol,
        atol=atol,
    )


def _compare(built, mods) -> str:
    return f"scalar:{built.dst[0]}:{'.'.join(mods)}"
