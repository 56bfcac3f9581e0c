"""Conversion between number formats, and mov of one register (PTX ISA 9.7.9: cvt, cvt.pack, mov).

A float source is widened to float64, converted there, and rounded once into the destination. Stochastic
rounding (`cvt.rs`) is refused: PTX shows its use of the random bits in pictures only.
"""

from __future__ import annotations

from ptxsim.isa.scalar.forms import Form, Mods, Template, families, form

INTS = "u8 u16 u32 u64 s8 s16 s32 s64"
IRND, FRND = "rni rzi rmi rpi", "rn rz rm rp"
WIDER = {("f16", "f32"), ("bf16", "f32")}
ROUND = {"rni": "np.rint({})", "rzi": "np.trunc({})", "rmi": "np.floor({})", "rpi": "np.ceil({})"}
F8, F6, F4 = "e4m3x2 e5m2x2", "e2m3x2 e3m2x2", "e2m1x2"
PACKED = {"e2m1x2": ("b8", "4"), **dict.fromkeys(f"{F8} {F6} ue8m0x2".split(), ("b16", "8"))}  # type, shift


def span(kind: str) -> tuple[int, int]:
    """(smallest, largest) number of an integer type."""
    bits = int(kind[1:])
    return (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def as_kind(kind: str, text: str) -> str:
    """Text of an integer truncated to a type: sign-extended int64 or zero-extended uint64."""
    if kind[0] == "s":
        return f"np.int64({text})" if kind == "s64" else f"sext{kind[1:]}({text})"
    return f"np.uint64({text})" if kind == "u64" else f"(np.uint64({text}) & M{kind[1:]})"


# ---- integer to integer


def sat_matters(mods: Mods) -> bool:
    """Whether .sat is legal: the source has values that the destination cannot represent."""
    (low, high), (bottom, top) = span(mods["type"]), span(mods["dtype"])
    return low < bottom or top < high


def clamped(kind: str, source: str, text: str) -> str:
    """Text of an integer of type `source` clamped to the range of `kind`; its type is still `source`."""
    number = "np.uint64" if source[0] == "u" else "np.int64"
    (low, high), (bottom, top) = span(source), span(kind)
    text = f"max({text}, {number}({bottom}))" if low < bottom else text
    return f"min({text}, {number}({top}))" if top < high else text


def int_key(mods: Mods) -> str:
    """The key of an integer conversion. Truncation does not depend on the signedness of the source, widening
    of an unsigned source not on that of the result.
    """
    (d, d_bits), (a, a_bits) = ((kind[0], int(kind[1:])) for kind in (mods["dtype"], mods["type"]))
    if d_bits <= a_bits:
        a = "u" if d == "u" else "s"
    elif a == "u":
        d = "u"
    return f"cvt.{d}{d_bits}.{a}{a_bits}"


# ---- between integers and floats


def float_int(mods: Mods) -> str:
    """Text of a conversion from float to integer. It saturates; NaN becomes 0, or only the top bit if a
    64-bit type is involved.
    """
    kind = mods["dtype"]
    number, sign = ("np.int64", -1) if kind[0] == "s" else ("np.uint64", 1)
    nan = sign * 2 ** (int(kind[1:]) - 1) if "64" in mods["type"] + kind else 0
    return f"f64_{kind[0]}({ROUND[mods['irnd']].format(read(mods))}, W{kind[1:]}, {number}({nan}))"


def int_float(mods: Mods) -> str:
    kind, mode = mods["dtype"], mods["frnd"].upper()
    parts = "a < np.int64(0), magnitude(a)" if mods["sign"] == "s" else "False, a"
    text = (
        f"np.float{kind[1:]}(a)"
        if mode == "RN" and kind in ("f32", "f64")
        else f"int_{kind}({parts}, {mode})"
    )
    return f"{kind}_sat({text})" if mods.get("sat") else text


# ---- between floats


def read(mods: Mods, text: str = "a") -> str:
    """Text of the source as float64."""
    kind = mods["type"].removesuffix("x2")
    narrow = mods["dtype"] == "f16"  # contrary to PTX, an H200 does not flush the source of an f16
    text = f"ftz({text})" if mods.get("ftz") and kind == "f32" and not narrow else text
    text = f"canonical32({text})" if mods.get("ftz") and (kind, mods["dtype"]) == ("f32", "f64") else text
    return {"f32": f"np.float64({text})", "f64": text}.get(kind, f"{kind}_f64({text})")


def write(kind: str, mods: Mods, text: str) -> str:
    """Text of a float64 rounded to a format, with .relu and .satfinite."""
    mode = (mods.get("frnd") or "rn").upper()
    text = f"relu_f64({text})" if mods.get("relu") else text
    if kind == "f64":
        return text
    if kind == "f32":
        if mods.get("ftz") and mods["type"] == "f64":
            return f"f32_of_ftz({text}, {mode})"
        return f"np.float32({text})" if mode == "RN" else f"f32_of({text}, {mode})"
    text = f"{kind}_of({text}, {mode}, {bool(mods.get('satfinite'))})"
    return f"{kind}_nan_f64(a, {text})" if mods["type"] == "f64" else text


def float_float(mods: Mods) -> str:
    kind, text = mods["dtype"], read(mods)
    if raw_copy(mods):
        return "a" if mods["type"] == "f32" else "a << W16"
    text = ROUND[mods["irnd"]].format(text) if mods.get("irnd") else text
    text = f"{mods['type']}_f32(a)" if (mods["type"], kind) in WIDER else write(kind, mods, text)
    text = f"ftz({text})" if mods.get("ftz") and kind == "f32" else text
    if passes_payload(mods):
        return f"f32_nan_f64(a, {text})"
    return f"{kind}_sat({text})" if mods.get("sat") else text


def passes_payload(mods: Mods) -> bool:
    """Whether a float64 becomes a float32 that keeps as much of a NaN's payload as fits."""
    return mods["type"] == "f64" and mods["dtype"] == "f32" and not mods.get("sat")


def raw_copy(mods: Mods) -> bool:
    """Whether a conversion to f32 only moves bits, so that a NaN keeps its bits."""
    plain = not any(mods.get(m) for m in ("irnd", "ftz", "sat"))
    return plain and mods["dtype"] == "f32" and mods["type"] in ("f32", "bf16")


def float_result(mods: Mods) -> str:
    return "b32" if raw_copy(mods) or passes_payload(mods) else result(mods)


def float_source(mods: Mods) -> str:
    return "b32" if raw_copy(mods) and mods["type"] == "f32" else mods["type"]


def float_key(mods: Mods) -> str:
    """The key of a conversion between floats; an exact conversion ignores its optional rounding."""
    exact = mods["type"] == "bf16" and mods["dtype"] in ("f32", "f64")
    return mods["name"].replace(f".{mods['frnd']}.", ".") if exact and mods["frnd"] else mods["name"]


def result(mods: Mods) -> str:
    """Type of the destination: s8 and s16 are sign-extended into a wider register (PTX ISA 9.4.1)."""
    return "s32" if mods["dtype"] in ("s8", "s16") else mods["dtype"]


def int_result(mods: Mods) -> str:
    return result({"dtype": int_key(mods).split(".")[1]})


def int_source(mods: Mods) -> str:
    return int_key(mods).split(".")[2]


def _float(
    pattern: str, dtype: str, kind: str, value: Template = float_float, key: Template = "{name}", **sets
) -> Form:
    return form(
        f"cvt{pattern}.dtype.type", float_result, float_source, value, key, dtype=dtype, type=kind, **sets
    )


NUMBERS = (
    form(
        "cvt.dtype.type",
        *(int_result, int_source, lambda m: as_kind(int_key(m).split(".")[1], "a"), int_key),
        **{"dtype": INTS, "type": INTS},
    ),
    form(
        "cvt.sat.dtype.type",
        *(result, "{type}", lambda m: as_kind(m["dtype"], clamped(m["dtype"], m["type"], "a"))),
        dtype=INTS,
        type=INTS,
        where=sat_matters,
    ),
    _float(".irnd{.ftz}{.sat}", INTS, "f32", float_int, irnd=IRND),
    _float(".irnd{.sat}", INTS, "f16 f64", float_int, irnd=IRND),
    _float(".irnd", INTS, "bf16", float_int, irnd=IRND),
    _float(".frnd{.ftz}{.sat}", "f32", INTS, int_float, frnd=FRND),
    _float(".frnd{.sat}", "f16 f64", INTS, int_float, frnd=FRND),
    _float(".frnd", "bf16", INTS, int_float, frnd=FRND),
    _float("{.irnd}{.ftz}{.sat}", "f32", "f32", irnd=IRND),
    _float("{.irnd}{.sat}", "f64", "f64", irnd=IRND),
    _float("{.irnd}{.sat}", "f16", "f16", irnd=IRND),
    _float("{.irnd}", "bf16", "bf16", irnd=IRND),
    _float("{.ftz}{.sat}", "f32", "f16"),
    _float("{.sat}", "f64", "f16"),
    _float("{.ftz}{.sat}", "f64", "f32"),
    _float("{.frnd}{.ftz}", "f32", "bf16", float_float, float_key, frnd=FRND),
    _float("{.frnd}", "f64", "bf16", float_float, float_key, frnd=FRND),
    _float("{.frnd}", "f16", "bf16", frnd=FRND),
    _float("{.frnd}", "bf16", "f16", frnd=FRND),
    _float(".frnd{.ftz}{.sat}", "f16", "f32", frnd=FRND),
    _float(".frnd{.ftz}", "bf16", "f32", frnd=FRND),
    _float(".frnd{.sat}", "f16", "f64", frnd=FRND),
    _float(".frnd", "bf16", "f64", frnd=FRND),
    _float(".frnd{.ftz}{.sat}", "f32", "f64", frnd=FRND),
    *(
        _float(f".frnd{extra}", "f16 bf16", "f32", frnd="rn rz")
        for extra in (".relu", ".satfinite", ".relu.satfinite")
    ),
)


# ---- packed formats: of two sources, a becomes the upper element


def _pack(kind: str, high: str, low: str) -> str:
    return f"({low} | ({high} << np.uint64({PACKED.get(kind, ('b32', '16'))[1]})))"


def pack_two(mods: Mods) -> str:
    """Text that converts two float32, or the two halves of one register, to a packed format."""
    kind = mods["dtype"].removesuffix("x2")
    if mods["type"] != "f32":
        low, high = (write(kind, mods, read(mods, f"{half}(a)")) for half in ("lo16", "hi16"))
    else:
        low, high = (write(kind, mods, read(mods, name)) for name in "ba")
    return _pack(mods["dtype"], high, low)


def unpack_two(mods: Mods) -> str:
    """Text that converts both elements of a packed format to the two halves of a register."""
    kind, shift = mods["type"].removesuffix("x2"), PACKED[mods["type"]][1]
    low, high = f"(a & M{shift})", f"(a >> np.uint64({shift}))"
    to = mods["dtype"].removesuffix("x2")
    return f"pack16({', '.join(write(to, mods, f'{kind}_f64({text})') for text in (low, high))})"


def pack_scale(mods: Mods) -> str:
    """Text that converts two numbers to ue8m0, which are powers of two."""
    sources = ("bf16_f32(lo16(a))", "bf16_f32(hi16(a))") if mods["type"] == "bf16x2" else ("b", "a")
    mode, finite = mods["rnd"].upper(), bool(mods["satfinite"])
    low, high = (f"ue8m0_of({text}, {mode}, {finite})" for text in sources)
    return _pack("ue8m0x2", high, low)


def _small(mods: Mods) -> str:
    return PACKED[mods["dtype" if mods["dtype"] in PACKED else "type"]][0]


NARROW = f"{F8} {F6} {F4}"
PACKING = (
    form(
        "cvt.frnd{.relu}{.satfinite}.dtype.type",
        *("b32", "f32 f32", pack_two),
        **{"frnd": "rn rz", "dtype": "f16x2 bf16x2", "type": "f32"},
    ),
    form("cvt.frnd{.satfinite}.dtype.type", "b32", "f32", float_float, frnd="rna", dtype="tf32", type="f32"),
    form(
        "cvt.frnd{.satfinite}{.relu}.dtype.type",
        *("b32", "f32", float_float),
        **{"frnd": "rn rz", "dtype": "tf32", "type": "f32"},
    ),
    form("cvt.rn.satfinite{.relu}.dtype.type", _small, "f32 f32", pack_two, dtype=NARROW, type="f32"),
    form(  # since PTX ISA 9.1; e4m3x2 and e5m2x2 of f16x2 earlier
        "cvt.rn.satfinite{.relu}.dtype.type",
        *(_small, "b32", pack_two),
        **{"dtype": NARROW, "type": "f16x2 bf16x2"},
    ),
    form("cvt.rn{.relu}.dtype.type", "b32", _small, unpack_two, dtype="f16x2", type=NARROW),
    form(  # since PTX ISA 9.2
        "cvt.rn{.satfinite}{.relu}.dtype.type",
        *("b32", _small, unpack_two),
        **{"dtype": "bf16x2", "type": NARROW},
    ),
    form("cvt.rnd{.satfinite}.ue8m0x2.type", "b16", "f32 f32", pack_scale, rnd="rz rp", type="f32"),
    form("cvt.rnd{.satfinite}.ue8m0x2.type", "b16", "b32", pack_scale, rnd="rz rp", type="bf16x2"),
    form("cvt.rn.bf16x2.ue8m0x2", "b32", "b16", "pack16(ue8m0_bf16(a & M8), ue8m0_bf16(a >> np.uint64(8)))"),
)


def pack_ints(mods: Mods) -> str:
    """Text that packs two saturated integers; c, if there is one, is shifted left to make room for them."""
    kind = mods["to"]
    bits = int(kind[1:])
    low, high = (f"(np.uint64({clamped(kind, mods['type'], n)}) & np.uint64({2**bits - 1}))" for n in "ba")
    rest = f" | (c << np.uint64({2 * bits}))" if mods.get("b32") else ""
    return f"{low} | ({high} << np.uint64({bits})){rest}"


CVT_PACK = (
    form("cvt.pack.sat.to.type", "b32", "{type} {type}", pack_ints, to="u16 s16", type="s32"),
    form(
        "cvt.pack.sat.to.type.b32",
        *("b32", "{type} {type} b32", pack_ints),
        **{"to": "u2 s2 u4 s4 u8 s8", "type": "s32"},
    ),
)

MOVE = (
    form("mov.pred", "pred", "pred", "a"),
    form("mov.type", "{b}", "{b}", "a", "mov.{b}", type="b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"),
)

FAMILIES = families("9.7.9", (*NUMBERS, *PACKING, *CVT_PACK, *MOVE))
