"""Comparison and selection: set, setp, selp, slct, for full and half precision (PTX ISA 9.7.6, 9.7.7)."""

from __future__ import annotations

from ptxsim.isa.scalar.forms import Mods, families, form

INTEGER = {
    **{"eq": "{a} == {b}", "ne": "{a} != {b}"},
    **{"lt": "{a} < {b}", "le": "{a} <= {b}", "gt": "{a} > {b}", "ge": "{a} >= {b}"},
    **{"lo": "{a} < {b}", "ls": "{a} <= {b}", "hi": "{a} > {b}", "hs": "{a} >= {b}"},
}
FLOAT = {  # if an operand is NaN, ordered tests are false and tests ending in u are true
    **{"eq": "{a} == {b}", "ne": "({a} < {b} or {a} > {b})"},
    **{"lt": "{a} < {b}", "le": "{a} <= {b}", "gt": "{a} > {b}", "ge": "{a} >= {b}"},
    **{"equ": "(not ({a} < {b} or {a} > {b}))", "neu": "{a} != {b}"},
    **{
        "ltu": "(not {a} >= {b})",
        "leu": "(not {a} > {b})",
        "gtu": "(not {a} <= {b})",
        "geu": "(not {a} < {b})",
    },
    **{"num": "({a} == {a} and {b} == {b})", "nan": "({a} != {a} or {b} != {b})"},
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
OPS = " ".join(INTEGER | FLOAT)
TYPES = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
BOOLEAN = {"": "{t}", "and": "{t} and c", "or": "{t} or c", "xor": "({t}) != c"}
READ = {  # type -> how a source is read: its source type, and text that makes it comparable
    **{"f32": ("f32", "{x}"), "f64": ("f64", "{x}")},
    **{"f16": ("f16", "f16_f32({x})"), "bf16": ("bf16", "bf16_f32({x})")},
    **{"f16x2": ("b32", "f16_f32({half}({x}))"), "bf16x2": ("b32", "bf16_f32({half}({x}))")},
}
FLUSH = {"f32": "ftz({x})", "f16": "f16_f32(f16_ftz({x}))", "f16x2": "f16_f32(f16_ftz({half}({x})))"}


def is_legal(mods: Mods) -> bool:
    """Whether a comparison is legal: untyped operands only have eq and ne, lo..hs are for unsigned types, and
    NaN-aware tests and .ftz for floats.
    """
    op, kind = mods["cmp"], mods["type"]
    if "f" in kind:
        return op in FLOAT and (not mods["ftz"] or kind in FLUSH)
    if mods["ftz"] or op not in INTEGER:
        return False
    return op in ("eq", "ne") or (kind[0] != "b" and (op not in UNSIGNED or kind[0] == "u"))


def compare(mods: Mods, half: str = "") -> str:
    """Text of the comparison without a Boolean operator. half: which half of a packed type to compare."""
    op, kind = mods["cmp"], mods["type"]
    if "f" not in kind:
        return INTEGER[op].format(a="a", b="b")
    text = FLUSH[kind] if mods["ftz"] else READ[kind][1]
    return FLOAT[op].format(**{x: text.format(x=x, half=half) for x in "ab"})


def source(mods: Mods) -> str:
    """Types of the sources. Equality does not depend on the sign, so it reads every integer as unsigned."""
    kind = mods["type"]
    if kind in READ:
        kind = READ[kind][0]
    elif mods["cmp"] in ("eq", "ne") or kind[0] == "b":
        kind = mods["u"]
    return f"{kind} {kind}" + (" pred" if mods["bool"] else "")


def combined(mods: Mods, test: str) -> str:
    return BOOLEAN[mods["bool"]].format(t=test)


def setp_key(mods: Mods) -> str:
    kind = source(mods).split()[0] if "f" not in mods["type"] else mods["type"]
    parts = ("setp", UNSIGNED.get(mods["cmp"], mods["cmp"]), mods["bool"], mods["ftz"], kind)
    return ".".join(filter(None, parts)) + mods.get("|", "")


def setp(mods: Mods) -> str:
    test = compare(mods)
    if not mods.get("|"):
        return combined(mods, test)
    return f"({combined(mods, test)}, {combined(mods, f'(not {test})')})"


def setp_packed(mods: Mods) -> str:
    """A packed comparison with two destinations: the tests of the low halves and of the high halves."""
    return "({}, {})".format(*(combined(mods, compare(mods, half)) for half in ("lo16", "hi16")))


def setp_low(mods: Mods) -> str:
    """A packed comparison with one destination: the test of the low halves."""
    return combined(mods, compare(mods, "lo16"))


def without_ftz(mods: Mods) -> bool:
    return is_legal(mods) and not mods["ftz"]


TRUE = {  # the value that `set` writes for true; 1.0 for floats
    **{"u16": 0xFFFF, "s16": 0xFFFF, "u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF},
    **{"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000},
}


def set_value(mods: Mods) -> str:
    test = combined(mods, compare(mods))
    return f"(np.uint64({TRUE[mods['dtype']]:#x}) if {test} else np.uint64(0))"


def set_packed(mods: Mods) -> str:
    true = TRUE.get(mods["dtype"].removesuffix("x2"), 0) & 0xFFFF
    low, high = (
        f"(np.uint64({true:#x}) if {combined(mods, compare(mods, half))} else np.uint64(0))"
        for half in ("lo16", "hi16")
    )
    return f"pack16({low}, {high})"


def set_type(mods: Mods) -> str:
    return "b16" if "16" in mods["dtype"] and "x2" not in mods["dtype"] else "b32"


BOOL = "and or xor"


def _set(dtype: str, kinds: str, value=set_value, where=is_legal):
    """`set` with and without a Boolean operator."""
    sets = {"cmp": OPS, "dtype": dtype, "type": kinds, "bool": BOOL}
    return form("set.cmp{.bool}{.ftz}.dtype.type", set_type, source, value, where=where, **sets)


def _setp(tail: str, dst: str, kinds: str, value=setp):
    sets = {"cmp": OPS, "type": kinds, "bool": BOOL}
    return form(f"setp.cmp{{.bool}}{{.ftz}}.type{tail}", dst, source, value, setp_key, where=is_legal, **sets)


COMPARE = (
    _set("u32 s32 f32", TYPES),
    _setp("", "pred", TYPES),
    _setp("|", "pred pred", TYPES),
    form("selp.type", "{b}", "{b} {b} pred", "a if c else b", "selp.{b}", type=TYPES),
    form("slct.type.s32", "{b}", "{b} {b} s32", "a if c >= np.int64(0) else b", "slct.{b}.s32", type=TYPES),
    form("slct.type.f32", "{b}", "{b} {b} f32", "a if c >= np.float32(0) else b", "slct.{b}.f32", type=TYPES),
    form(
        "slct.ftz.type.f32",
        *("{b}", "{b} {b} f32", "a if ftz(c) >= np.float32(0) else b", "slct.ftz.{b}.f32"),
        type=TYPES,
    ),
)

COMPARE_HALF = (
    _set("f16", TYPES),
    _set("bf16", TYPES, where=without_ftz),
    _set("f16 u16 s16 u32 s32", "f16"),
    _set("bf16", "f16", where=without_ftz),
    _set("bf16 u16 s16 u32 s32", "bf16"),
    _set("f16x2 u32 s32", "f16x2", set_packed),
    _set("bf16x2 u32 s32", "bf16x2", set_packed),
    _setp("", "pred", "f16 bf16"),
    _setp("", "pred", "f16x2 bf16x2", setp_low),
    _setp("|", "pred pred", "f16x2 bf16x2", setp_packed),
)

FAMILIES = (*families("9.7.6", COMPARE), *families("9.7.7", COMPARE_HALF))
