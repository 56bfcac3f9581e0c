"""Runs a ScalarOp on arrays, for tests: the loop that the interpreter generates, in its plainest form."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numba import njit, uint64

from ptxsim.frontend.ast import Instr, Pair, Reg
from ptxsim.isa.mathlib import all as mathlib
from ptxsim.isa.mathlib.inner import WHOLE
from ptxsim.isa.scalar import table as scalar

LOAD = {
    "f32": "as_f32({})",
    "f64": "as_f64({})",
    "pred": "({} != ZERO)",
    "s8": "sext8({})",
    "s16": "sext16({})",
    "s32": "sext32({})",
    "s64": "np.int64({})",
    "u8": "({} & M8)",
    "b8": "({} & M8)",
}
STORE = {"f32": "f32_result({})", "f64": "f64_bits({})", "pred": "(ONE if {} else ZERO)"}
MASK = {"8": 0xFF, "16": 0xFFFF, "32": 0xFFFFFFFF, "64": 2**64 - 1}


def instr(name: str, count: int = 3, pair: bool = False) -> Instr:
    """An instruction of this spelling with `count` register operands, the first one `p|q` if `pair`."""
    op, *mods = name.split(".")
    operands = [Reg(f"%r{i}") for i in range(count)]
    if pair:
        operands[0] = Pair(Reg("%p1"), Reg("%p2"))
    return Instr(None, op, tuple(mods), tuple(operands), 7, name)


def find(name: str, sources: int | None = None, pair: bool = False) -> scalar.ScalarOp:
    """The operation of a spelling; `sources` picks among forms that differ in the number of operands."""
    one = instr(name, pair=pair)
    ops = scalar._lookup(one.op, one.mods + ("|",) * pair)
    picked = [op for op in ops if sources is None or len(op.src) == sources]
    assert picked, f"{name} is not in the table"
    return picked[0]


def store(kind: str, text: str) -> str:
    """Raw bits of a value, cut to the width of its type."""
    text = STORE.get(kind, "np.uint64({})").format(text)
    digits = "".join(c for c in kind if c.isdigit())[-2:] if kind != "pred" else "64"
    return f"{text} & np.uint64({MASK[digits.lstrip('f')]:#x})"


@cache
def compiled(op: scalar.ScalarOp):
    """`f(*sources, carry)`, compiled: raw bits to raw bits, several in a tuple.

    The loop over values is not compiled: with it each operation took twice the time.
    """
    names = "abcde"[: len(op.src)]
    lines = [f"def run({', '.join(names)}, cc):"]
    for name, kind in zip(names, op.src, strict=True):
        lines.append(f"    {name} = " + LOAD.get(kind, "{}").format(name))
    outs = [f"v{k}" for k in range(len(op.dst) + (op.carry in ("out", "both")))]
    lines.append(f"    {', '.join(outs)} = {op.expr}")
    results = [store(kind, out) for out, kind in zip(outs, (*op.dst, "u64"), strict=False)]
    lines.append(f"    return {', '.join(results)}")
    scope = {**vars(mathlib), "np": np}
    exec("\n".join(lines), scope)
    made = njit(pipeline_class=WHOLE, no_cfunc_wrapper=True)(scope["run"])
    made.compile((uint64,) * (len(op.src) + 1))
    made.disable_compile()  # a Python int is not an int64 here
    return made, len(outs)


def thin(cases, step: int) -> list:
    """Test cases of which every `step`-th always runs; the rest are slow, since each is compiled."""
    return [_param(case, bool(number % step)) for number, case in enumerate(cases)]


def every_word(cases) -> list:
    """Test cases of which those always run whose spelling has a word that none before has at that place; the
    rest are slow. `vadd2.u32.u32.u32` and `vadd4.u32.u32.u32` run, `vsub4.u32.u32.u32` need not.
    """
    known: set[tuple[int, str]] = set()
    made = []
    for case in cases:
        words = set(enumerate(_id(case).replace("-", ".").split(".")))
        made.append(_param(case, slow=words <= known))
        known |= words
    return made


def _param(case, slow: bool):
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=[pytest.mark.slow] * slow, id=_id(case))


def _id(case) -> str:
    return "-".join(map(str, case)) if isinstance(case, tuple) else str(case)


def run(name_or_op, *sources, carry=None, pair: bool = False):
    """Results of an operation on arrays of raw bits: one uint64 array, or a tuple of them."""
    sources = [np.atleast_1d(np.asarray(s, dtype=np.uint64)) for s in sources]
    op = name_or_op if isinstance(name_or_op, scalar.ScalarOp) else find(name_or_op, len(sources), pair)
    function, count = compiled(op)
    carry = 0 if carry is None else carry
    columns = np.broadcast_arrays(*sources, np.asarray(carry, np.uint64))
    made = [function(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
    results = np.array(made, np.uint64).reshape(-1, count).T
    return results[0] if count == 1 else tuple(results)
