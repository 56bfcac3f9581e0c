"""Parses variables and their initialisers (PTX ISA 5.1-5.4), parameter lists and function directives."""

from __future__ import annotations

import math
import struct

import numpy as np

from ptxsim.frontend.ast import Function, Imm, Sym, Var
from ptxsim.frontend.lexer import Tokens, constant

TYPE_BYTES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    **{"b128": 16, "f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "tf32": 4, "f32": 4, "f64": 8, "pred": 1},
    **{"u16x2": 4, "s16x2": 4, "f32x2": 8, "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2},
    **{"texref": 8, "samplerref": 8, "surfref": 8},
}
SPACES = ("reg", "param", "shared", "local", "const", "global", "sreg", "tex")
FUNCTION_DIRECTIVES = {
    *("maxntid", "reqntid", "minnctapersm", "maxnctapersm", "maxnreg", "noreturn", "pragma", "attribute"),
    *("explicitcluster", "reqnctapercluster", "maxclusterrank", "blocksareclusters"),
    *("abi_preserve", "abi_preserve_control"),
}
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}  # bytes -> how struct packs it
_MAX_REGS = 1 << 18
_MAX_INIT = 1 << 28
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}


def declaration(tokens: Tokens, linkage: tuple[str, ...] = (), single: bool = False) -> list[Var]:
    """Parse `.space qualifiers .type name<N>[dims] = init, ...`; the cursor is at the space.

    A range `%r<8>` gives eight Vars. `single` stops after one name (parameters). The `;` is not consumed.
    """
    space = tokens.take("dot", "a state space")[1:]
    align, lanes, kind, attributes = 0, 1, "", linkage
    while tokens.kind() == "dot":
        word = tokens.peek()[1:]
        tokens.i += 1
        if word == "align":
            multiple = tokens.integer()
            if multiple & (multiple - 1) or multiple < 0:
                raise tokens.error(f"alignment {multiple} is not a power of two")
            align = align if "ptr" in attributes else multiple  # after .ptr: alignment of the pointee (5.4.7)
        elif word in _VECTOR:
            lanes = _VECTOR[word]
        elif word in TYPE_BYTES:
            kind = word
        elif word == "attribute":
            attributes += _attribute(tokens)
        elif word == "ptr" or word in SPACES:
            attributes += ("ptr" if word == "ptr" else f"ptr.{word}",)
        else:
            raise tokens.error(f"'.{word}' does not belong in a declaration", tokens.i - 1)
    if not kind:
        raise tokens.error(f"the .{space} declaration names no type")
    found = []
    while True:
        found += _declarator(tokens, Var("", space, kind, align, lanes, 0, attributes=attributes))
        if single or not tokens.accept(","):
            return found


def _attribute(tokens: Tokens) -> tuple[str, ...]:
    first = tokens.i
    tokens.skip_group("(", ")")
    inside = tokens.slice(first + 1, tokens.i - 2) if tokens.i - first > 2 else ""
    return tuple(item.strip().lstrip(".") for item in inside.split(", ."))


def _declarator(tokens: Tokens, shape: Var) -> list[Var]:
    line = tokens.line(tokens.i)
    name = tokens.take("word", "a name")
    if tokens.accept("<"):
        count = tokens.number()
        tokens.expect(">")
        if count > _MAX_REGS:
            raise tokens.error(f"{count} variables in one declaration; at most {_MAX_REGS} are supported")
        names = [f"{name}{index}" for index in range(count)]
    else:
        names = [name]
    lanes, dims = shape.count, _dimensions(tokens)
    count = lanes * math.prod(dims)
    item = TYPE_BYTES[shape.type]
    align = shape.align or item * (lanes if not dims or lanes > 1 else 1)
    variable = Var(names[0] if names else "", shape.space, shape.type, align, count, count * item)
    variable.attributes, variable.line = shape.attributes, line
    variable.extern = "extern" in shape.attributes
    if tokens.accept("="):
        _initialise(tokens, variable, dims, lanes)
    if len(names) == 1:
        return [variable]
    return [Var(n, shape.space, shape.type, align, count, count * item, line=line) for n in names]


def _dimensions(tokens: Tokens) -> list[int]:
    dims: list[int] = []
    while tokens.accept("["):
        size = 0 if tokens.peek() == "]" else tokens.integer()
        if size < 0 or (size == 0 and dims):
            raise tokens.error(f"array dimension {size}")
        dims.append(size)
        tokens.expect("]")
    return dims


def _initialise(tokens: Tokens, variable: Var, dims: list[int], lanes: int) -> None:
    """Fill in variable.init and .relocs; `[]` takes its size from the initialiser (PTX ISA 5.4.4)."""
    item = TYPE_BYTES[variable.type]
    at = tokens.i
    shape = dims + ([lanes] if lanes > 1 else [])
    if tokens.kinds[at + 1 : at + 2] == ["list"]:
        if _numbers(tokens, variable, shape):
            return
        tokens.unfold(at + 1)
    values: dict[int, Imm | Sym] = {}
    used = _items(tokens, shape, 0, values)
    if dims and dims[0] == 0:
        inner = math.prod(shape[1:])
        variable.count = -(-used // inner) * inner
        variable.size = variable.count * item
    if variable.size > _MAX_INIT or (values and max(values) >= variable.count):
        raise tokens.error(f"the initialiser does not fit into {variable.count} elements", at)
    data = bytearray(variable.size)
    for index, value in values.items():
        if isinstance(value, Sym):
            variable.relocs.append((index * item, value))
        else:
            data[index * item : (index + 1) * item] = _encode(tokens, value, variable.type, at)
    variable.init = bytes(data)


def _numbers(tokens: Tokens, variable: Var, shape: list[int]) -> bool:
    """A fast path of `_initialise` for a flat list of numbers; returns False if it does not apply."""
    item, numbers = TYPE_BYTES[variable.type], tokens.values[tokens.i + 1].split(",")
    room = len(numbers) if shape[:1] == [0] and len(shape) == 1 else math.prod(shape)
    plain = variable.type[0] in "bsu" and item <= 8 and variable.type != "b128"
    if not shape or not plain or len(numbers) > room or tokens.values[tokens.i + 2] != "}":
        return False
    variable.count, variable.size = room, room * item
    data = np.zeros(room, f"<u{item}")
    data[: len(numbers)] = np.array(numbers, np.uint64).astype(data.dtype)
    variable.init = data.tobytes()
    tokens.i += 3
    return True


def _items(tokens: Tokens, shape: list[int], first: int, values: dict) -> int:
    """Read one initialiser into values[flat index]; returns the index after the last element it covers."""
    if tokens.peek() != "{":
        values[first] = _item(tokens)
        return first + 1
    if not shape:
        raise tokens.error("more braces than dimensions")
    tokens.expect("{")
    stride, position = max(1, math.prod(shape[1:])), first
    while tokens.peek() != "}":
        nested = tokens.peek() == "{"
        after = _items(tokens, shape[1:], position, values)
        position = position + stride if nested else after
        if shape[0] and position > first + shape[0] * stride:
            raise tokens.error(f"more than {shape[0]} initialisers")
        if not tokens.accept(","):
            break
    tokens.expect("}")
    return position


def _item(tokens: Tokens) -> Imm | Sym:
    if tokens.kind() == "word" and tokens.peek() != "WARP_SZ":
        return symbol_expression(tokens)
    if tokens.kind() == "int" and tokens.values[tokens.i + 1] == "(":
        mask = tokens.number()
        tokens.expect("(")
        found = symbol_expression(tokens)
        tokens.expect(")")
        return Sym(found.name, found.offset, found.generic, mask)
    return constant(tokens)


def symbol_expression(tokens: Tokens) -> Sym:
    """Parse `name` or `generic(name)`, with an optional `+ constant`."""
    name = tokens.take("word", "a name")
    generic = name == "generic" and tokens.accept("(")
    if generic:
        name = tokens.take("word", "a name")
        tokens.expect(")")
    offset = tokens.integer() if tokens.peek() in ("+", "-") else 0
    return Sym(name, offset, generic)


def _encode(tokens: Tokens, value: Imm, kind: str, at: int) -> bytes:
    size = TYPE_BYTES[kind]
    if kind in ("f32", "f64", "f16"):
        number = value.bits
        if value.kind != "int":
            code, wide = ("<f", "<I") if value.kind == "f32" else ("<d", "<Q")
            number = struct.unpack(code, struct.pack(wide, value.bits))[0]
        try:
            return struct.pack(_FLOATS[size], number)
        except OverflowError:
            return struct.pack(_FLOATS[size], math.copysign(math.inf, number))
    raw = {"f32": 4, "f64": 8}.get(value.kind)
    if raw and raw != size:
        raise tokens.error(f"a floating-point initialiser for .{kind}", at)
    return (value.bits & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def parameters(tokens: Tokens) -> list[Var]:
    """Parse `( declaration, ... )`."""
    found = []
    tokens.expect("(")
    while tokens.peek() != ")":
        found += declaration(tokens, single=True)
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return found


def function_directive(tokens: Tokens, fn: Function) -> None:
    """Parse `.maxntid 128, 1, 1`, `.noreturn`, `.pragma "..."`, ... into fn.directives."""
    name = tokens.peek()[1:]
    if name not in FUNCTION_DIRECTIVES:
        raise tokens.error(f"unknown function directive '.{name}'")
    tokens.i += 1
    first = tokens.i
    values: list[int | str] = []
    if tokens.peek() == "(":
        tokens.skip_group("(", ")")
        values.append(tokens.slice(first, tokens.i - 1))
    while tokens.kind() in ("int", "str"):
        values.append(tokens.number() if tokens.kind() == "int" else tokens.take("str", "").strip('"'))
        if not tokens.accept(","):
            break
    if name == "pragma":
        tokens.accept(";")
        values = [*fn.directives.get(name, ()), *values]
    fn.directives[name] = tuple(values)


def signature(tokens: Tokens, fn: Function, what: str) -> str:
    """Parse `(returns) name (params) directives` into fn; returns the name. what: the name in errors."""
    if tokens.peek() == "(":
        fn.returns = parameters(tokens)
    name = tokens.take("word", what)
    if tokens.peek() == "(":
        fn.params = parameters(tokens)
    while tokens.kind() == "dot":
        function_directive(tokens, fn)
    return name


def prototype(tokens: Tokens, name: str) -> Function:
    """Parse the signature of a .callprototype, in which `_` stands for the name."""
    fn = Function(name, False, extern=True, line=tokens.line(tokens.i))
    signature(tokens, fn, "'_'")
    return fn
