"""atom and red: every operation and type, in global and shared memory, with and without conflicts."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from research.chip.case import Case, program

INTEGERS = [f"{op}.{t}" for op in ("add", "min", "max") for t in ("u32", "s32", "u64", "s64")]
INTEGERS = [o for o in INTEGERS if o != "add.s64"] + [
    f"{op}.{t}" for op in ("and", "or", "xor") for t in ("b32", "b64")
]
INTEGERS += ["inc.u32", "dec.u32"]
EXCHANGES = ["exch.b32", "exch.b64", "cas.b32", "cas.b64", "cas.b16", "exch.b128"]
FLOATS = [
    "add.f32",
    "add.f64",
    "add.noftz.f16",
    "add.noftz.f16x2",
    "add.noftz.bf16",
    "add.noftz.bf16x2",
    "min.noftz.f16",
    "max.noftz.bf16x2",
]
NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
VECTORS = ["add.v2.f32", "add.v4.f32", "add.noftz.v2.f16x2", "add.noftz.v4.bf16x2", "min.noftz.v2.f16"]


def cases() -> list[Case]:
    found = [
        own(op, space) for op in (*INTEGERS, *EXCHANGES[:5], *FLOATS[:6]) for space in ("global", "shared")
    ]
    found += [
        shared_by_all(op, space) for op in (*INTEGERS, "add.f32", "add.f64") for space in ("global", "shared")
    ]
    found += [subnormal(space) for space in ("global", "shared")]
    return found


def width_of(operation: str) -> int:
    kind = operation.rsplit(".", 1)[1]
    return int(kind.lstrip("busf").removesuffix("x2")) // 8 * (2 if kind.endswith("x2") else 1)


def _values(operation: str, count: int, rng) -> np.ndarray:
    """Random elements, as raw bytes in unsigned integers of the element's width."""
    kind, size = operation.rsplit(".", 1)[1].removesuffix("x2"), width_of(operation)
    if kind in NUMPY:
        per = 2 if operation.endswith("x2") else 1
        return rng.integers(-9, 9, count * per).astype(NUMPY[kind]).view(f"u{size}")
    return (
        rng.integers(0, 1 << 8 * size, count, dtype=f"u{size}")
        if size < 8
        else rng.integers(0, 2**63, count, dtype=np.uint64)
    )


def _registers(size: int) -> tuple[str, str, str, str, str]:
    """(type, b, c, old, other) registers of an element."""
    if size == 8:
        return "b64", "%e0", "%e1", "%e2", "%e3"
    if size == 2:
        return "b16", "%h0", "%h1", "%h2", "%h3"
    return "b32", "%r0", "%r1", "%o0", "%o1"


def own(operation: str, space: str) -> Case:
    """Each thread works on its own element; the old value and the new one are stored."""
    size, rng = width_of(operation), np.random.default_rng(10)
    kind, b, c, old, other = _registers(size)
    start, operand = _values(operation, 32, rng), _values(operation, 32, rng)
    if operation.startswith("cas"):  # every other thread compares with the current value
        operand[::2] = start[::2]
    third = f", {c}" if operation.startswith("cas") else ""
    at, copy_in, copy_out = _place(space, size, kind, other)
    red = ""
    if not operation.startswith(("exch", "cas")):
        red = f"red.{space}.{operation} [{at}], {b};"
    body = f"""mul.wide.u32 %y0, %t, {size}; add.u64 %in, %in, %y0; add.u64 %out, %out, %y0;
    ld.global.{kind} {b}, [%in]; ld.global.{kind} {c}, [%in+{32 * size}]; {copy_in}
    atom.{space}.{operation} {old}, [{at}], {b}{third}; {red}
    {copy_out} st.global.{kind} [%out+{32 * size}], {old};"""
    inputs = np.concatenate([operand, _values(operation, 32, rng)])
    arrays = {"in": inputs, "out": np.concatenate([start, np.zeros_like(start)])}
    return Case(f"atom.own.{space}.{operation}", program(body), arrays, ("out",), shared=1024)


def _place(space: str, size: int, kind: str, other: str) -> tuple[str, str, str]:
    """(address of the thread's element, text that fills it, text that writes it back) in `space`."""
    if space == "global":
        return "%out", "", ""
    here = f"mul.lo.u32 %x0, %t, {size}; add.u32 %x0, %sm, %x0;"
    fill = f"{here} ld.global.{kind} {other}, [%out]; st.shared.{kind} [%x0], {other};"
    return "%x0", fill, f"ld.shared.{kind} {other}, [%x0]; st.global.{kind} [%out], {other};"


def shared_by_all(operation: str, space: str) -> Case:
    """128 threads, 4 elements: the result does not depend on the order (floats are small integers)."""
    size, rng = width_of(operation), np.random.default_rng(11)
    kind, b, _, old, other = _registers(size)
    values, start = _values(operation, 128, rng), _values(operation, 4, rng)
    if operation.startswith(("inc", "dec")):
        values[:] = 5
        start[:] = 3
    to_shared = f"""setp.lt.u32 %s0, %t, 4; @!%s0 bra FILLED; mul.lo.u32 %x0, %t, {size}; add.u32 %x0, %sm, %x0;
    mul.wide.u32 %y2, %t, {size}; add.u64 %y2, %out, %y2; ld.global.{kind} {other}, [%y2];
    st.shared.{kind} [%x0], {other}; FILLED: bar.sync 0;"""
    back = f"""bar.sync 0; @!%s0 bra DONE; ld.shared.{kind} {other}, [%x0]; st.global.{kind} [%y2], {other}; DONE:"""
    point = f"and.b32 %x1, %t, 3; mul.lo.u32 %x1, %x1, {size};"
    if space == "shared":
        at, point = "%x2", point + " add.u32 %x2, %sm, %x1;"
    else:
        at, point, to_shared, back = "%y3", point + " cvt.u64.u32 %y3, %x1; add.u64 %y3, %out, %y3;", "", ""
    body = f"""mul.wide.u32 %y0, %t, {size}; add.u64 %in, %in, %y0; ld.global.{kind} {b}, [%in];
    {to_shared} {point} atom.relaxed.gpu.{space}.{operation} {old}, [{at}], {b}; red.{space}.{operation} [{at}], {b};
    {back}"""
    arrays = {"in": values, "out": start}
    return Case(f"atom.all.{space}.{operation}", program(body), arrays, ("out",), 128, shared=1024)


def subnormal(space: str) -> Case:
    """add.f32 of subnormal numbers (PTX ISA 9.7.13.6: global memory may flush them)."""
    case = own("add.f32", space)
    tiny = np.full(32, 2.0**-140, np.float32).view(np.uint32)
    case.name = f"atom.subnormal.{space}"
    case.arrays["in"][:32] = tiny
    case.arrays["out"][:32] = tiny
    return case
