"""Integer arithmetic that an assembler simplifies: constants, sums with and products by constants, widths.

A rule is (values, mods, operands) -> number, or None if the instruction cannot be simplified; `values` is a
Values of values.py, operands are its numbers. Sums wrap at their width, so a constant can be moved out of any
sum, and the low half of a sum is the sum of the low halves. A constant cannot be moved out of a widening.
"""

from __future__ import annotations

_INTEGERS = {"s32", "u32", "b32", "s64", "u64", "b64"}


def _width(mods) -> int:
    """The width of an integer type: 32 or 64; 0 for other types and for saturation."""
    return int(mods[-1][1:]) if mods and mods[-1] in _INTEGERS and "sat" not in mods else 0


def _same(values, mods, operands):
    return operands[0]


def _converted(values, mods, operands):
    to, of = mods[-2:]
    if "sat" in mods or any(kind[0] not in "sub" or not kind[1:].isdigit() for kind in (to, of)):
        return None  # a float, or a pair of them
    wide = int(to[1:]) > int(of[1:])
    known = values.constant(operands[0])
    if known is not None:
        bits = int(of[1:])
        known &= (1 << bits) - 1
        if of[0] == "s" and known >> (bits - 1):
            known -= 1 << bits
        return values.of("constant", known & (1 << int(to[1:])) - 1)
    if int(to[1:]) == int(of[1:]) and int(to[1:]) >= 32:
        return operands[0]
    if to[1:] == "32" and of[1:] == "64":
        return _low(values, operands[0])
    return values.of("extended" if wide and of[0] == "s" else "cut", (to, of), operands[0])


def _low(values, number: int) -> int:
    """The number of the low 32 bits; those of a sum or product are computed from its parts'."""
    key = values.keys[number]
    if key[0] == "constant":
        return values.plus(None, key[1], 32)
    if key[0] == "plus":
        return values.plus(_low(values, key[1]), key[2], 32)
    if key[0] in ("extended", "cut") and key[1][1][1:] == "32":
        return key[2]
    if key[0] == "times":
        return _scaled(values, _low(values, key[2]), key[1][0], 32)
    if key[0] in ("add", "sub") and key[1][-1] == "s64":
        parts = [_low(values, n) for n in key[2:]]
        return _added(values, 32, parts, -1 if key[0] == "sub" else 1)
    if key[0] == "mul" and key[1][0] == "wide" and key[1][1][1:] == "32":
        return _product(values, ("lo", "s32"), key[2:]) or values.of("mul", ("lo", "s32"), *sorted(key[2:]))
    return values.of("cut", ("u32", "u64"), number)


def _sum(values, mods, operands, sign: int = 1) -> int | None:
    bits = _width(mods)
    return _added(values, bits, operands, sign) if bits else None


def _added(values, bits: int, operands, sign: int) -> int:
    (a, m), (b, n) = (values.split(o) for o in operands)
    more = m + sign * n
    if b is None:
        return values.plus(a, more, bits)
    if sign < 0:
        if a == b:
            return values.plus(None, more, bits)
        base = values.of("sub", (f"s{bits}",), values.of("constant", 0) if a is None else a, b)
        return values.plus(base, more, bits)
    if a is None:
        return values.plus(b, more, bits)
    return values.plus(values.of("add", (f"s{bits}",), *sorted((a, b))), more, bits)


def _difference(values, mods, operands):
    return _sum(values, mods, operands, -1)


def _shifted(values, mods, operands):
    bits, places = _width(mods), values.constant(operands[1])
    if not bits or places is None:
        return None
    return _scaled(values, operands[0], 1 << places, bits) if places < bits else values.plus(None, 0, bits)


def _scaled(values, number: int, factor: int, bits: int) -> int:
    """The number of `number` * factor."""
    base, more = values.split(number)
    more *= factor
    if base is None or not factor:
        return values.plus(None, more, bits)
    key = values.keys[base]
    if key[0] == "times" and key[1][1] == bits:
        base, factor = key[2], key[1][0] * factor
    if factor == 1:
        return values.plus(base, more, bits)
    return values.plus(values.of("times", (factor, bits), base), more, bits)


def _product(values, mods, operands):
    bits = _width(mods)
    if not bits or "lo" not in mods:
        return None
    for a, b in (operands[:2], operands[1::-1]):
        known = values.constant(b)
        if known is not None:
            return _scaled(values, a, known, bits)
    return None


def _product_sum(values, mods, operands):
    if not _width(mods) or "lo" not in mods:
        return None
    product = _product(values, mods, operands)
    if product is None:
        product = values.of("mul", mods, *sorted(operands[:2]))
    return _sum(values, mods, [product, operands[2]])


def _bitwise(fold):
    """The rule for and, or, xor (`fold`): constants, and zero on one side."""

    def rule(values, mods, operands):
        bits = 1 if mods[-1] == "pred" else _width(mods)
        known = [values.constant(o) for o in operands]
        if bits and None not in known:
            return values.of("constant", fold(*known) & (1 << bits) - 1)
        if not bits or 0 not in known:
            return None
        other = operands[1 - known.index(0)]
        return other if fold(1, 0) else values.of("constant", 0)

    return rule


RULES = {
    "mov": _same,
    "cvta": _same,
    "cvt": _converted,
    "add": _sum,
    "sub": _difference,
    "shl": _shifted,
    "mul": _product,
    "mad": _product_sum,
    "and": _bitwise(lambda a, b: a & b),
    "or": _bitwise(lambda a, b: a | b),
    "xor": _bitwise(lambda a, b: a ^ b),
}
