"""Operands that ptxas accepts with a legal spelling of an instruction: registers of the right class."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ptxsim.isa.scalar.forms import ScalarOp

REGISTERS = """.reg .pred %p<8>; .reg .b8 %c<8>; .reg .b16 %h<40>; .reg .b32 %r<160>; .reg .b64 %d<72>;
.reg .f32 %f<8>; .reg .f64 %fd<8>; .reg .b128 %q<4>; .shared .align 1024 .b8 sm[2048];
"""
_BITS = re.compile(r"(?:b|u|s|f|bf|tf)(\d+)(x2)?$")


def scalar_operands(name: str, op: ScalarOp) -> str:
    """Operands of an operation of the scalar table."""
    sources = [f"{_class(kind)}{i}" for i, kind in enumerate(op.src, 3)]
    if name.startswith("lop3"):
        sources[3] = "0x40"
    kinds = ["b16"] if re.search(r"\.s(8|16)\.bf16$", name) else op.dst
    return ", ".join(["|".join(f"{_class(kind)}{i}" for i, kind in enumerate(kinds, 1)), *sources])


def _class(kind: str) -> str:
    if kind in ("pred", "f32", "f64"):
        return {"pred": "%p", "f32": "%f", "f64": "%fd"}[kind]
    return {8: "%c" if kind == "b8" else "%h", 16: "%h", 32: "%r", 64: "%d"}[int(re.sub(r"\D", "", kind))]


def unit_operands(parts: Sequence[str]) -> str | None:
    """Operands of an instruction that is not a scalar operation; None if none are known."""
    name = ".".join(parts)
    for prefix, make in _MAKERS:
        if name.startswith(prefix):
            return make(parts) if callable(make) else make
    return None


def _vector(kind: str, count: int, first: int = 1) -> str:
    items = [f"{kind}{i}" for i in range(first, first + count)]
    return _braces(items) if count > 1 else items[0]


def _braces(items: Sequence[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _value(parts: Sequence[str], first: int = 1) -> str:
    """The operand of the data of a load, store or atomic, by the last type and the vector."""
    bits = [int(m[1]) * (2 if m[2] else 1) for part in parts if (m := _BITS.match(part))][-1]
    count = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
    kind = {8: "%h", 16: "%h", 32: "%r", 64: "%d", 128: "%q"}[bits]
    return _vector(kind, count, first)


def _hint(parts: Sequence[str]) -> str:
    return ", %d9" * ("L2::cache_hint" in parts)


def _load(parts: Sequence[str]) -> str:
    return f"{_value(parts)}, [%d40]{_hint(parts)}"


def _store(parts: Sequence[str]) -> str:
    return f"[%d40], {_value(parts)}{_hint(parts)}"


def _atomic(parts: Sequence[str]) -> str:
    more = f", {_value(parts, 33)}" * ("cas" in parts)
    return f"{_value(parts)}, [%d40], {_value(parts, 17)}{more}{_hint(parts)}"


def _reduction(parts: Sequence[str]) -> str:
    return f"[%d40], {_value(parts, 17)}{_hint(parts)}"


def _coordinates(parts: Sequence[str]) -> str:
    rows = any("4" in part for part in parts if part.startswith("tile::"))
    count = 5 if rows else next(int(part[0]) for part in parts if re.fullmatch(r"\dd", part))
    return _braces([f"%r{i}" for i in range(1, count + 1)])


def _offsets(parts: Sequence[str]) -> str:
    mode = next((part for part in parts if part in ("im2col", "im2col::w", "im2col::w::128")), "")
    if not mode:
        return ""
    count = int(next(part for part in parts if re.fullmatch(r"\dd", part))[0]) - 2
    return ", " + _braces([f"%h{i}" for i in range(1, (count if mode == "im2col" else 2) + 1)])


def _tensor(parts: Sequence[str]) -> str:
    box = f"[%d40, {_coordinates(parts)}]"
    if parts[3] == "prefetch":
        return f"{box}{_offsets(parts)}{_hint(parts)}"
    if "bulk_group" in parts:
        return f"{box}, [%r9]{_hint(parts)}"
    mask = ", %h9" * ("multicast::cluster" in parts)
    return f"[%r9], {box}, [%r10]{_offsets(parts)}{mask}{_hint(parts)}"


def _bulk(parts: Sequence[str]) -> str:
    bar = "" if "bulk_group" in parts else ", [%r10]"
    to, source = ("[%d40]", "[%r9]") if "bulk_group" in parts else ("[%r9]", "[%d40]")
    if parts.count("shared::cta") and "global" not in parts:
        source = "[%r11]"
    mask = ", %h9" * ("multicast::cluster" in parts)
    ends = ", 4, 8" * ("ignore_oob" in parts)
    bytes_of_16 = ", %h9" * ("cp_mask" in parts)
    return f"{to}, {source}, %r12{ends}{bar}{mask}{_hint(parts)}{bytes_of_16}"


def _cp_async(parts: Sequence[str]) -> str:
    return f"[%r9], [%d40], 16{_hint(parts)}"


def _bar(parts: Sequence[str]) -> str:
    if "popc" in parts:
        return "%r1, 1, 64, %p1"
    if "red" in parts:
        return "%p2, 1, 64, %p1"
    return "1, 64"


def _mbarrier(parts: Sequence[str]) -> str:
    what = ".".join(parts[1:])
    bar = "[%r10]" if any(part.startswith("shared") for part in parts) else "[%d40]"
    if what.startswith(("init", "expect_tx", "complete_tx")):
        return f"{bar}, 16"
    if what.startswith("inval"):
        return bar
    if what.startswith("pending_count"):
        return "%r1, %d1"
    if what.startswith(("test_wait", "try_wait")):
        return f"%p1, {bar}, {'%r1' if 'parity' in parts else '%d1'}"
    state = "_" if "shared::cluster" in parts else "%d1"
    count = ", 16" if "expect_tx" in parts or "noComplete" in parts else ""
    return f"{state}, {bar}{count}"


def _tcgen_vector(parts: Sequence[str]) -> str:
    times = int(next(part for part in parts if re.fullmatch(r"x\d+", part))[1:])
    wide = {"16x128b": 2, "16x256b": 4}
    count = times * next((n for shape, n in wide.items() if shape in parts), 1)
    return _braces([f"%r{i}" for i in range(1, count + 1)])


def _tcgen_ld(parts: Sequence[str]) -> str:
    column = ", 2" * ("16x32bx2" in parts)
    value = ", %r150" * ("red" in parts)
    return f"{_tcgen_vector(parts)}{value}, [%r140]{column}"


def _tcgen_st(parts: Sequence[str]) -> str:
    column = ", 2" * ("16x32bx2" in parts)
    return f"[%r140]{column}, {_tcgen_vector(parts)}"


def _tcgen_mma(parts: Sequence[str]) -> str:
    sparse = ", [%r142]" * ("sp" in parts)
    a = "[%r141]" if "ashift" in parts else "%d1"
    scales = ", [%r143], [%r144]" * ("block_scale" in parts)
    return f"[%r140], {a}, %d2{sparse}, %r1{scales}, %p1"


_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "s32": 4, "s4": 0.5, "u4": 0.5, "b1": 0.125}


def _fragment(elements: int, kind: str) -> str:
    size = _BYTES.get(kind, 1) * elements / 32
    if kind == "f64":
        return _braces([f"%d{i}" for i in range(1, int(size // 8) + 1)])
    return _braces([f"%r{i}" for i in range(1, max(1, int(size // 4)) + 1)])


def _shape(parts: Sequence[str]) -> tuple[int, int, int]:
    found = next(m for part in parts if (m := re.fullmatch(r"m(\d+)n(\d+)k(\d+)", part)))
    return int(found[1]), int(found[2]), int(found[3])


def _types(parts: Sequence[str]) -> list[str]:
    return [part for part in parts if re.fullmatch(r"(b?f|s|u|tf|b)\d+|e\dm\d", part)]


def _mma(parts: Sequence[str]) -> str:
    (m, n, k), (d, a, b, c) = _shape(parts), _types(parts)
    sparse = parts[1].startswith("sp")
    sizes = (m * n, d), (m * k // (1 + sparse), a), (k * n, b), (m * n, c)
    return ", ".join(_fragment(*one) for one in sizes) + ", %r150, 0" * sparse


def _wgmma(parts: Sequence[str]) -> str:
    (m, n, _), (d, a, *_) = _shape(parts), _types(parts)
    registers = m * n // 128 // (2 if d == "f16" else 1)
    signs = ", 1, 1" * (d in ("f16", "f32")) + ", 0, 0" * (a in ("f16", "bf16"))
    sparse = ", %r150, 0" * ("sp" in parts)
    return f"{_vector('%r', registers)}, %d1, %d2{sparse}, %p1{signs}"


def _wmma_vector(which: str, parts: Sequence[str], kind: str) -> str:
    m, n, k = _shape(parts)
    if kind == "f16" and which in "ab":
        return _vector("%r", 8)
    elements = {"a": m * k, "b": k * n}.get(which, m * n)
    if kind == "f64":
        return _braces([f"%fd{i}" for i in range(1, elements // 32 + 1)])
    count = max(1, int(elements * _BYTES.get(kind, 1)) // 128)
    return _braces([f"%r{i}" for i in range(1, count + 1)])


def _wmma_load(parts: Sequence[str]) -> str:
    return f"{_wmma_vector(parts[2], parts, _types(parts)[-1])}, [%d40], %r150"


def _wmma_store(parts: Sequence[str]) -> str:
    return f"[%d40], {_wmma_vector('c', parts, _types(parts)[-1])}, %r150"


def _wmma_mma(parts: Sequence[str]) -> str:
    kinds = _types(parts)
    d, a, b, c = kinds if len(kinds) == 4 else (kinds[0], "f16", "f16", kinds[1])
    return ", ".join(_wmma_vector(w, parts, kind) for w, kind in zip("dabc", (d, a, b, c), strict=True))


def _matrix_registers(parts: Sequence[str]) -> str:
    count = int(next(part for part in parts if re.fullmatch(r"x\d", part))[1:])
    return _braces([f"%r{i}" for i in range(1, count * (2 if "m16n16" in parts else 1) + 1)])


def _async_store(parts: Sequence[str]) -> str:
    return f"[%r9], {_value(parts)}, [%r10]"


def _replace(parts: Sequence[str]) -> str:
    ordinal = any(part in ("global_stride", "box_dim", "global_dim", "element_stride") for part in parts)
    constant = any(
        part in ("elemtype", "interleave_layout", "swizzle_mode", "fill_mode", "swizzle_atomicity")
        for part in parts
    )
    value = "1" if constant else "%d1" if "b64" in parts else "%r1"
    return f"[%d40]{', 1' * ordinal}, {value}"


def _ranged_policy(parts: Sequence[str]) -> str:
    return "%d1, [%d40], %r1, %r2"


Maker = Callable[[Sequence[str]], str] | str
_MAKERS: list[tuple[str, Maker]] = [
    ("activemask", "%r1"),
    ("applypriority", "[%d40], 128"),
    ("discard", "[%d40], 128"),
    ("atom", _atomic),
    ("red.async", _async_store),
    ("st.async", _async_store),
    ("st.bulk", "[%d40], %d1, 0"),
    ("redux", "%r1, %r2, -1"),
    ("red", _reduction),
    ("ldmatrix", lambda parts: f"{_matrix_registers(parts)}, [%r9]"),
    ("stmatrix", lambda parts: f"[%r9], {_matrix_registers(parts)}"),
    ("ldu", _load),
    ("ld", _load),
    ("st", _store),
    ("bar.warp", "-1"),
    ("barrier.cluster", ""),
    ("bar", _bar),
    ("brkpt", ""),
    ("trap", ""),
    ("clusterlaunchcontrol.try", "[%r9], [%r10]"),
    ("clusterlaunchcontrol.query_cancel.is", "%p1, %q1"),
    ("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4", "{%r1, %r2, %r3, %r4}, %q1"),
    ("clusterlaunchcontrol.query_cancel", "%r1, %q1"),
    ("cp.async.bulk.commit", ""),
    ("cp.async.bulk.wait", "1"),
    ("cp.async.bulk.prefetch.tensor", _tensor),
    ("cp.async.bulk.prefetch", lambda parts: f"[%d40], 16{_hint(parts)}"),
    ("cp.async.bulk.tensor", _tensor),
    ("cp.reduce.async.bulk.tensor", _tensor),
    ("cp.async.bulk", _bulk),
    ("cp.reduce.async.bulk", _bulk),
    ("cp.async.commit", ""),
    ("cp.async.wait_all", ""),
    ("cp.async.wait_group", "1"),
    ("cp.async.mbarrier", lambda parts: "[%r10]" if any("shared" in p for p in parts) else "[%d40]"),
    ("cp.async", _cp_async),
    ("createpolicy.cvt", "%d1, %d2"),
    ("createpolicy.fractional", "%d1"),
    ("createpolicy.range", _ranged_policy),
    ("elect", "%r1|%p1, -1"),
    ("fence.proxy.tensormap::generic.acquire", "[%d40], 128"),
    ("fence", ""),
    ("membar", ""),
    ("griddepcontrol", ""),
    ("match.all", lambda parts: f"%r1|%p1, {_value(parts, 2)}, -1"),
    ("match.any", lambda parts: f"%r1, {_value(parts, 2)}, -1"),
    ("mbarrier", _mbarrier),
    ("mma", _mma),
    ("movmatrix", "%r1, %r2"),
    ("nanosleep", "%r1"),
    ("pmevent", "1"),
    ("prefetch", "[%d40]"),
    ("setmaxnreg", "64"),
    ("shfl", "%r1|%p1, %r2, 1, 31, -1"),
    ("tcgen05.alloc", "[%r9], 64"),
    ("tcgen05.dealloc", "%r1, 64"),
    ("tcgen05.commit", lambda parts: "[%d40]" + ", %h9" * ("multicast::cluster" in parts)),
    ("tcgen05.cp", "[%r140], %d1"),
    ("tcgen05.shift", "[%r140]"),
    ("tcgen05.ld", _tcgen_ld),
    ("tcgen05.st", _tcgen_st),
    ("tcgen05.mma", _tcgen_mma),
    ("tcgen05.", ""),
    ("tensormap.cp", "[%d40], [%r9], 128"),
    ("tensormap.replace", _replace),
    ("vote.sync.ballot", "%r1, %p1, -1"),
    ("vote", "%p1, %p2, -1"),
    ("wgmma.mma", _wgmma),
    ("wgmma.wait", "1"),
    ("wgmma", ""),
    ("wmma.load", _wmma_load),
    ("wmma.store", _wmma_store),
    ("wmma.mma", _wmma_mma),
    ("cvta", "%d1, %d2"),
    ("isspacep", "%p1, %d1"),
    ("mapa", lambda parts: f"{_value(parts)}, {_value(parts, 2)}, %r1"),
    ("getctarank", lambda parts: f"%r1, {_value(parts, 2)}"),
    ("bra", "END"),
    ("ret", ""),
    ("exit", ""),
]
