"""Scalar operations as LLVM vector code, for all 32 lanes of a warp at once, from the text of
`ScalarOp.expr`.

`vector_operation(dst, sources, expr)` returns a numba intrinsic `f(row, m, registers, predicates)`, or None
if the text uses something that has no vector form here; jit/codegen.py then generates a loop over lanes
instead. Both are generated from the same text, and a test compares them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from llvmlite import ir
from numba import types

from ptxsim.isa.mathlib.intrinsic import intrinsic
from ptxsim.isa.operands import type_bits
from ptxsim.jit import simd_half as vector_half
from ptxsim.jit.bytecode import DST0, SRC0, SRC1, SRC2, SRC3
from ptxsim.jit.intrinsics import word_at

LANES = 32
I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
V1, V32, V64 = (ir.VectorType(t, LANES) for t in (I1, I32, I64))
VF = ir.VectorType(ir.FloatType(), LANES)
_CONSTANTS = {
    "M8": 0xFF, "M16": 0xFFFF, "M32": 0xFFFF_FFFF, "W16": 16, "W32": 32, "W64": 64, "SIGN32": 1 << 31,
    "MAGNITUDE32": 0x7FFF_FFFF, "INFINITY32": 0x7F80_0000, "CANONICAL32": 0x7FFF_FFFF,
}  # fmt: skip
_ORDER = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_SOURCES = (SRC0, SRC1, SRC2, SRC3)


class NoVectorForm(Exception):
    """The expression needs the lane loop."""


@dataclass
class Value:
    kind: str  # "u" uint64, "s" int64, "f" float32, "w" float64 that came from float32, "p" predicate
    ir: object


def splat(number: int):
    return ir.Constant(V64, [number] * LANES)


def vector_operation(dst: tuple[str, ...], sources: tuple[str, ...], expr: str):
    """The intrinsic of an operation with one destination, or None if there is no vector form."""
    tree = ast.parse(expr, mode="eval").body
    kinds = {name: kind for name, kind in zip("abcd", sources, strict=False)}
    if len(dst) != 1 or len(sources) > 4 or {"f64"} & {*dst, *sources} or not _vectorises(tree, kinds):
        return None

    @intrinsic
    def operation(typingctx, row, m, registers, predicates):
        def codegen(context, builder, signature, args):
            _emit(builder, dst[0], sources, tree, *args)
            return context.get_dummy_value()

        return types.void(types.uint64, types.int64, types.uint64, types.uint64), codegen

    return operation


def _vectorises(tree, kinds: dict) -> bool:
    """Whether an expression can be translated; tries it on a function that is thrown away."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 4), "probe")
    builder = ir.IRBuilder(function.append_basic_block())
    try:
        values = {
            name: Value(_kind_of(kind), ir.Constant(_vector_of(kind), None)) for name, kind in kinds.items()
        }
        _Translator(builder, values).visit(tree)
    except NoVectorForm:
        return False
    return True


def _kind_of(kind: str) -> str:
    if kind == "pred":
        return "p"
    if kind == "f32":
        return "f"
    return "s" if kind[0] == "s" and "x" not in kind else "u"


def _vector_of(kind: str):
    return {"p": V1, "f": VF}.get(_kind_of(kind), V64)


# ---- one operation ----


def _emit(builder, dst: str, sources: tuple[str, ...], tree, row, m, registers, predicates) -> None:
    values = {}
    for name, kind, number in zip("abcd", sources, _SOURCES, strict=False):
        slot = _column(builder, row, number)
        if kind == "pred":
            values[name] = Value(
                "p", builder.bitcast(builder.trunc(_mask(builder, predicates, slot), I32), V1)
            )
        else:
            values[name] = _typed(
                builder, kind, builder.load(_lanes(builder, registers, slot), align=8, typ=V64)
            )
    result = _Translator(builder, values).visit(tree)
    target = _column(builder, row, DST0)
    if dst == "pred":
        bits = builder.zext(builder.bitcast(result.ir, I32), I64)
        pointer = word_at(builder, predicates, target)
        kept = builder.and_(builder.load(pointer, typ=I64), builder.not_(m))
        builder.store(builder.or_(kept, builder.and_(bits, m)), pointer)
    else:
        _store(builder, _lanes(builder, registers, target), _raw(builder, dst, result), m)


def _column(builder, row, number: int):
    return builder.load(word_at(builder, row, ir.Constant(I64, number)), typ=I64)


def _lanes(builder, registers, slot):
    pointer = word_at(builder, registers, builder.mul(slot, ir.Constant(I64, LANES)))
    return builder.bitcast(pointer, V64.as_pointer())


def _mask(builder, predicates, code):
    one = ir.Constant(I64, 1)
    value = builder.load(word_at(builder, predicates, builder.ashr(code, one)), typ=I64)
    return builder.xor(value, builder.neg(builder.and_(code, one)))


def _typed(builder, kind: str, raw) -> Value:
    """The 64-bit lanes of a register as a value of type `kind`, the way the table's expressions see it."""
    form, width = _kind_of(kind), type_bits(kind)
    if form == "f":
        return Value("f", builder.bitcast(builder.trunc(raw, V32), VF))
    if width == 64:
        return Value(form, raw)
    if form == "s":
        return Value("s", builder.sext(builder.trunc(raw, ir.VectorType(ir.IntType(width), LANES)), V64))
    return Value("u", builder.and_(raw, splat((1 << width) - 1)))


def _raw(builder, kind: str, value: Value):
    """The 64-bit lanes of a result, cut to the width of its type."""
    if value.kind == "f":
        nan = builder.fcmp_unordered("uno", value.ir, value.ir)
        canonical = ir.Constant(V32, [0x7FFF_FFFF] * LANES)  # f32_result
        return builder.zext(builder.select(nan, canonical, builder.bitcast(value.ir, V32)), V64)
    width = type_bits(kind)
    return value.ir if width == 64 else builder.and_(value.ir, splat((1 << width) - 1))


def _store(builder, pointer, lanes, m) -> None:
    """Stores the active lanes; the others keep their values."""
    full = builder.icmp_unsigned("==", m, ir.Constant(I64, 0xFFFF_FFFF))
    with builder.if_else(full) as (all_lanes, some_lanes):
        with all_lanes:
            builder.store(lanes, pointer, align=8)
        with some_lanes:
            active = builder.bitcast(builder.trunc(m, I32), V1)
            old = builder.load(pointer, align=8, typ=V64)
            builder.store(builder.select(active, lanes, old), pointer, align=8)


# ---- expression text -> vectors ----


class _Translator(ast.NodeVisitor):
    def __init__(self, builder, values: dict[str, Value]):
        self.builder, self.values = builder, values

    def generic_visit(self, node):
        raise NoVectorForm(ast.dump(node))

    def visit_Name(self, node) -> Value:
        if node.id in self.values:
            return self.values[node.id]
        if node.id in _CONSTANTS:
            return Value("u", splat(_CONSTANTS[node.id]))
        raise NoVectorForm(node.id)

    def visit_Constant(self, node) -> Value:
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return Value("u", splat(node.value))
        raise NoVectorForm(repr(node.value))

    def visit_BinOp(self, node) -> Value:
        a, b = self.visit(node.left), self.visit(node.right)
        integer, floating = _ARITHMETIC.get(type(node.op), (None, None))
        if a.kind == b.kind == "f" and floating:
            return Value("f", getattr(self.builder, floating)(a.ir, b.ir))
        if a.kind != b.kind or a.kind not in "us" or integer is None:
            return self._shift(node, a, b)
        return Value(a.kind, getattr(self.builder, integer)(a.ir, b.ir))

    def _shift(self, node, a: Value, b: Value) -> Value:
        """Shifts by constants only; shifts by variables use shl(), shr_u(), shr_s()."""
        constant = isinstance(node.right, ast.Call | ast.Constant | ast.Name)
        if a.kind == b.kind == "u" and constant and isinstance(b.ir, ir.Constant):
            if isinstance(node.op, ast.LShift):
                return Value("u", self.builder.shl(a.ir, b.ir))
            if isinstance(node.op, ast.RShift):
                return Value("u", self.builder.lshr(a.ir, b.ir))
        raise NoVectorForm(ast.dump(node.op))

    def visit_UnaryOp(self, node) -> Value:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Invert) and value.kind in "us":
            return Value(value.kind, self.builder.not_(value.ir))
        if isinstance(node.op, ast.Not) and value.kind == "p":
            return Value("p", self.builder.not_(value.ir))
        if isinstance(node.op, ast.USub) and value.kind == "s":
            return Value("s", self.builder.neg(value.ir))
        raise NoVectorForm(ast.dump(node.op))

    def visit_BoolOp(self, node) -> Value:
        parts = [self.visit(v) for v in node.values]
        if any(p.kind != "p" for p in parts):
            raise NoVectorForm("boolean")
        combine = self.builder.and_ if isinstance(node.op, ast.And) else self.builder.or_
        result = parts[0].ir
        for part in parts[1:]:
            result = combine(result, part.ir)
        return Value("p", result)

    def visit_Compare(self, node) -> Value:
        if len(node.ops) != 1:
            raise NoVectorForm("chained comparison")
        a, b = self.visit(node.left), self.visit(node.comparators[0])
        return self._compare(_ORDER[type(node.ops[0])], a, b)

    def _compare(self, sign: str, a: Value, b: Value) -> Value:
        if a.kind != b.kind:
            raise NoVectorForm("mixed comparison")
        if a.kind == "f":
            unordered = sign == "!="
            compare = self.builder.fcmp_unordered if unordered else self.builder.fcmp_ordered
            return Value("p", compare(sign, a.ir, b.ir))
        if a.kind == "p":
            return Value("p", self.builder.icmp_unsigned(sign, a.ir, b.ir))
        compare = self.builder.icmp_signed if a.kind == "s" else self.builder.icmp_unsigned
        return Value("p", compare(sign, a.ir, b.ir))

    def visit_IfExp(self, node) -> Value:
        test, a, b = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        if test.kind != "p" or a.kind != b.kind:
            raise NoVectorForm("conditional")
        return Value(a.kind, self.builder.select(test.ir, a.ir, b.ir))

    def visit_Call(self, node) -> Value:
        name = ast.unparse(node.func)
        if name in _ROUNDED:
            return self._round_to_nearest(name, node.args)
        handler = _CALLS.get((name, len(node.args)))
        if handler is None:
            raise NoVectorForm(name)
        return handler(self, [self.visit(arg) for arg in node.args])

    def _round_to_nearest(self, name: str, args: list) -> Value:
        """Translates f16_of(np.float64(x), RN, False) of a float32 x."""
        value = self.visit(args[0])
        if value.kind != "w" or [ast.unparse(a) for a in args[1:]] != ["RN", "False"]:
            raise NoVectorForm("rounding")
        return Value("u", self.builder.zext(_ROUNDED[name](self.builder, value.ir), V64))


_ARITHMETIC = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.BitAnd: ("and_", None),
    ast.BitOr: ("or_", None),
    ast.BitXor: ("xor", None),
}


def _reinterpret(kind: str):
    def call(t: _Translator, args: list[Value]) -> Value:
        if args[0].kind not in "us":
            raise NoVectorForm("conversion")
        return Value(kind, args[0].ir)

    return call


def _widen(t: _Translator, args: list[Value]) -> Value:
    if args[0].kind != "f":
        raise NoVectorForm("float64")
    return Value("w", args[0].ir)


def _from_half(convert):
    def call(t: _Translator, args: list[Value]) -> Value:
        if args[0].kind != "u":
            raise NoVectorForm("conversion")
        return Value("f", convert(t.builder, t.builder.trunc(args[0].ir, V32)))

    return call


def _sign_extend(bits: int):
    def call(t: _Translator, args: list[Value]) -> Value:
        if args[0].kind not in "us":
            raise NoVectorForm("sign extension")
        narrow = t.builder.trunc(args[0].ir, ir.VectorType(ir.IntType(bits), LANES))
        return Value("s", t.builder.sext(narrow, V64))

    return call


def _pick(sign: str):
    def call(t: _Translator, args: list[Value]) -> Value:
        a, b = args
        if a.kind not in "us":
            raise NoVectorForm("min / max of floats has rules of its own")
        return Value(a.kind, t.builder.select(t._compare(sign, a, b).ir, a.ir, b.ir))

    return call


def _shift_by(operation: str, clamp: bool):
    """Shifts of 64-bit lanes by any count: 64 and more give 0, or (arithmetic) all sign bits."""

    def call(t: _Translator, args: list[Value]) -> Value:
        value, count = args
        b = t.builder
        large = b.icmp_unsigned(">", count.ir, splat(63))
        safe = b.select(large, splat(63 if clamp else 0), count.ir)
        shifted = getattr(b, operation)(value.ir, safe)
        return Value(value.kind, shifted if clamp else b.select(large, splat(0), shifted))

    return call


def _fma(t: _Translator, args: list[Value]) -> Value:
    name, module = f"llvm.fma.v{LANES}f32", t.builder.module
    function = module.globals.get(name) or ir.Function(module, ir.FunctionType(VF, [VF] * 3), name)
    return Value("f", t.builder.call(function, [a.ir for a in args]))


_ROUNDED = {"f16_of": vector_half.f16_of_f32, "bf16_of": vector_half.bf16_of_f32}
_CALLS = {
    ("np.uint64", 1): _reinterpret("u"),
    ("np.int64", 1): _reinterpret("s"),
    ("np.float64", 1): _widen,
    ("f16_f32", 1): _from_half(vector_half.f32_of_f16),
    ("bf16_f32", 1): _from_half(vector_half.f32_of_bf16),
    ("sext8", 1): _sign_extend(8),
    ("sext16", 1): _sign_extend(16),
    ("sext32", 1): _sign_extend(32),
    ("min", 2): _pick("<"),
    ("max", 2): _pick(">"),
    ("shl", 2): _shift_by("shl", False),
    ("shr_u", 2): _shift_by("lshr", False),
    ("shr_s", 2): _shift_by("ashr", True),
    ("fma_f32", 3): _fma,
}
