"""Half-precision and mixed-precision arithmetic: f16, bf16 and their pairs (PTX ISA 9.7.4, 9.7.5).

Every operation is computed on the exact float64 values and rounded once. `.oob` (fma) is missing: PTX does
not give the bits of the NaN that it tests for, only that tensor copies fill it in.
"""

from __future__ import annotations

from ptxsim.isa.scalar.floating import f32, key
from ptxsim.isa.scalar.forms import Form, Mods, families, form

HALVES = "f16 f16x2 bf16 bf16x2"


def half(text: str):
    """A template over raw operands {a}, {b}, {c} in the format {t}, for one value or for both of a pair.

    {z} is "_ftz" under .ftz, for operations whose result may be rounded up to the smallest normal number.
    .ftz flushes operands and result; then .sat clamps to [0, 1] and .relu at zero.
    """

    def lane(mods: Mods, read: str) -> str:
        kind = mods["type"].removesuffix("x2")
        wrap = f"{kind}_ftz({{}})" if mods.get("ftz") else "{}"
        z = "_ftz" if mods.get("ftz") else ""
        value = wrap.format(text.format(t=kind, z=z, **{n: wrap.format(read.format(n)) for n in "abc"}))
        for step in ("sat", "relu"):
            value = f"{kind}_{step}({value})" if mods.get(step) else value
        return value

    def build(mods: Mods) -> str:
        if not mods["type"].endswith("x2"):
            return lane(mods, "{}")
        return f"pack16({lane(mods, 'lo16({})')}, {lane(mods, 'hi16({})')})"

    return build


def _operands(count: int):
    return lambda mods: " ".join([_raw(mods)] * count)


def _raw(mods: Mods) -> str:
    return "b32" if mods["type"].endswith("x2") else mods["type"]


def _two(op: str, text: str) -> list[Form]:
    """The forms of add, sub or mul; .rn is the only rounding and may be omitted."""
    return [
        form(f"{op}{{.rn}}{{.ftz}}{{.sat}}.type", _raw, _operands(2), half(text), key, type="f16 f16x2"),
        form(f"{op}{{.rn}}.type", _raw, _operands(2), half(text), key, type="bf16 bf16x2"),
    ]


def _minmax(op: str) -> list[Form]:
    def value(mods: Mods) -> str:
        call = ("xorsign_" if mods["xorsign"] else "") + op + ("_nan" if mods["NaN"] else "")
        return half(f"{{t}}_{call}({{a}}, {{b}})")(mods)

    tail = "{.NaN}{.xorsign}.type"
    xorsign = "xorsign.abs"
    return [
        form(f"{op}{{.ftz}}{tail}", _raw, _operands(2), value, type="f16 f16x2", xorsign=xorsign),
        form(f"{op}{tail}", _raw, _operands(2), value, type="bf16 bf16x2", xorsign=xorsign),
    ]


def _sign(op: str, text: str) -> list[Form]:
    return [
        form(f"{op}{{.ftz}}.type", _raw, _raw, half(text), type="f16 f16x2"),
        form(f"{op}.type", _raw, _raw, half(text), type="bf16 bf16x2"),
    ]


def _function(op: str, pattern: str, kinds: str) -> Form:
    return form(
        f"{op}.approx{pattern}.type",
        _raw,
        _raw,
        half(f"{{t}}_of({op}_f64({{t}}_f64({{a}})), RN, False)"),
        type=kinds,
    )


FMA = "{t}_fma{z}({a}, {b}, {c})"
HALF = (
    *_two("add", "{t}_of({t}_f64({a}) + {t}_f64({b}), RN, False)"),
    *_two("sub", "{t}_of({t}_f64({a}) - {t}_f64({b}), RN, False)"),
    *_two("mul", "{t}_of{z}({t}_f64({a}) * {t}_f64({b}), RN, False)"),
    form("fma.rn{.ftz}{.sat}.type", _raw, _operands(3), half(FMA), key, type="f16 f16x2"),
    form("fma.rn{.ftz}.relu.type", _raw, _operands(3), half(FMA), key, type="f16 f16x2"),
    form("fma.rn{.relu}.type", _raw, _operands(3), half(FMA), key, type="bf16 bf16x2"),
    *_sign("neg", "{t}_neg({a})"),
    *_sign("abs", "{t}_abs({a})"),
    *_minmax("min"),
    *_minmax("max"),
    _function("tanh", "", HALVES),
    _function("ex2", "", "f16 f16x2"),
    _function("ex2", ".ftz", "bf16 bf16x2"),
)


def _mixed(op: str, pattern: str, src: str, directed: str) -> Form:
    """The form of a float32 operation with half-precision operands, which are converted exactly."""

    def value(mods: Mods) -> str:
        return f32(directed.replace("MODE", (mods["rnd"] or "rn").upper()).format(t=mods["type"]))(
            {"sat": mods["sat"]}
        )

    return form(f"{op}{pattern}{{.sat}}.f32.type", "f32", src, value, key, rnd="rn rz rm rp", type="f16 bf16")


MIXED = (
    _mixed("add", "{.rnd}", "{type} f32", "fma32({t}_f32(a), ONE32, b, MODE)"),
    _mixed("sub", "{.rnd}", "{type} f32", "fma32({t}_f32(a), ONE32, -b, MODE)"),
    _mixed("fma", ".rnd", "{type} {type} f32", "fma32({t}_f32(a), {t}_f32(b), c, MODE)"),
)

FAMILIES = (*families("9.7.4", HALF), *families("9.7.5", MIXED))
