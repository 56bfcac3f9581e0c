"""Single and double precision arithmetic (PTX ISA 9.7.3).

`.approx` and `.full` operations are rounded correctly, or the way the host's libm rounds. A GPU may differ:
an H200 by one unit in the last place for rcp, sqrt, rsqrt and div, by more for lg2 near 1, sin, cos and tanh.
PTX does not specify the bits of a NaN; here they are an H200's: float32 gives 0x7fffffff for all operands;
float64 returns a NaN operand, made quiet, or 0xfff8000000000000 if no operand is a NaN.
"""

from __future__ import annotations

from ptxsim.isa.scalar.forms import Form, Mods, families, form

RND = "rn rz rm rp"


def key(mods: Mods) -> str:
    """The key of an operation, without .rn, which is also the default here."""
    return mods["name"].replace(".rn", "").replace("mad.", "fma.")


def f32(native: str, directed: str = "", flushed: str = ""):
    """A template over {a}, {b}, {c}: `native` rounds to nearest, `directed` as {mode} says; then .ftz, .sat.

    `flushed` replaces both under .ftz if a result may be rounded up to the smallest normal number.
    """

    def build(mods: Mods, read: str = "{}") -> str:
        read = f"ftz({read})" if mods.get("ftz") else read
        mode = mods.get("rnd") or "rn"
        text = native if mode == "rn" else directed
        text = flushed if flushed and mods.get("ftz") else text
        text = text.format(mode=mode.upper(), **{n: read.format(n) for n in "abc"})
        text = f"ftz({text})" if mods.get("ftz") and not flushed else text
        return f"f32_sat({text})" if mods.get("sat") else text

    return build


def f32x2(native: str, directed: str, flushed: str):
    """The same for both elements of a packed pair of float32."""
    one = f32(native, directed, flushed)
    return lambda mods: f"pack_f32({one(mods, 'lo_f32({})')}, {one(mods, 'hi_f32({})')})"


def f64(native: str, directed: str = ""):
    """The same for float64, which has neither .ftz nor .sat, but returns NaN operands: b before c before a,
    and the dividend before the divisor.
    """
    order = "ba" if "div" in directed and "{b}" in directed else "acb"
    names = [n for n in order if f"{{{n}}}" in native]
    operands = ", ".join((*names, *names[-1:] * (3 - len(names))))
    return lambda mods: f"nan64({f32(native, directed)({'rnd': mods.get('rnd', '')})}, {operands})"


def _rounded(op: str, count: int, native: str, directed: str, flushed: str = "", packed: bool = True):
    """The f32, f32x2 and f64 forms of an operation in all rounding directions; # is replaced by 32 or 64."""
    single = native.replace("#", "32"), directed.replace("#", "32"), flushed
    double = native.replace("#", "64"), directed.replace("#", "64")
    src32, src64, pairs = (" ".join([kind] * count) for kind in ("f32", "f64", "b64"))
    return [
        form(f"{op}{{.ftz}}{{.sat}}.f32", "f32", src32, f32(*single), key, rnd=RND),
        *[form(f"{op}{{.ftz}}.f32x2", "b64", pairs, f32x2(*single), key, rnd=RND)] * packed,
        form(f"{op}.f64", "f64", src64, f64(*double), key, rnd=RND),
    ]


def _quotient(op: str, src: str, directed: str) -> list[Form]:
    """The forms of div, rcp or sqrt: div.full, rcp.approx, sqrt.approx, and those that give a rounding."""
    approx = directed.format(a="{a}", b="{b}", mode="RN").replace("#", "32")
    src32, src64 = src.replace("#", "32"), src.replace("#", "64")
    single, double = directed.replace("#", "32"), directed.replace("#", "64")
    flushed = single.replace("div32(", "div32_ftz(") if "div" in single else ""
    return [
        form(f"{op}.{'full' if op == 'div' else 'approx'}{{.ftz}}.f32", "f32", src32, f32(approx)),
        form(f"{op}.rnd{{.ftz}}.f32", "f32", src32, f32(approx, single, flushed), key, rnd=RND),
        form(f"{op}.rnd.f64", "f64", src64, f64(approx.replace("32", "64"), double), key, rnd=RND),
    ]


def _sign(op: str, bits: str, flushed: str) -> list[Form]:
    """The forms of abs or neg; a NaN becomes what an addition would make of it."""
    single = f"CANONICAL32 if a & MAGNITUDE32 > INFINITY32 else {bits.format('32')}"
    return [
        form(f"{op}.f32", "b32", "b32", single),
        form(f"{op}.ftz.f32", "f32", "f32", flushed),
        form(f"{op}.f64", "b64", "b64", f"quiet_or64(a, {bits.format('64')})"),
    ]


def _minmax(op: str) -> list[Form]:
    """The forms of min or max of two or (sm_100) three numbers. With .NaN, any NaN operand makes the result
    NaN; without, a NaN is ignored.
    """

    def two(mods: Mods) -> str:
        call = f"xorsign_{op}" if mods["xorsign"] else op
        return f32(f"{call}{'_nan' if mods['NaN'] else ''}_f32({{a}}, {{b}})")(mods)

    def three(mods: Mods) -> str:
        call = f"{op}{'_nan' if mods['NaN'] else ''}_f32"
        a, b, c = (f"abs({{{n}}})" if mods["abs"] else f"{{{n}}}" for n in "abc")
        return f32(f"{call}({call}({a}, {b}), {c})")(mods)

    return [
        form(f"{op}{{.ftz}}{{.NaN}}{{.xorsign}}.f32", "f32", "f32 f32", two, xorsign="xorsign.abs"),
        form(f"{op}{{.ftz}}{{.NaN}}{{.abs}}.f32", "f32", "f32 f32 f32", three, "{name}:3"),
        form(f"{op}.f64", "f64", "f64 f64", f"{op}_f64(a, b)"),
    ]


def _function(op: str) -> Form:
    """The form of a transcendental function in float32."""
    return form(f"{op}.approx{{.ftz}}.f32", "f32", "f32", f32(f"{op}_f32({{a}})"))


TESTS = {  # of testp; # is replaced by 32 or 64. Zeros count as normal
    **{"finite": "is_finite(a)", "infinite": "a == a and not is_finite(a)"},
    **{"number": "a == a", "notanumber": "a != a"},
    "normal": "is_finite(a) and (a == 0 or abs(a) >= TINY#)",
    "subnormal": "a != 0 and abs(a) < TINY#",
}
FUSED = ("fma_f#({a}, {b}, {c})", "fma#({a}, {b}, {c}, {mode})", "fma32_ftz({a}, {b}, {c}, {mode})")
FLOAT = (
    *_rounded("add{.rnd}", 2, "{a} + {b}", "fma#({a}, ONE#, {b}, {mode})"),
    *_rounded("sub{.rnd}", 2, "{a} - {b}", "fma#({a}, ONE#, -{b}, {mode})"),
    *_rounded("mul{.rnd}", 2, "{a} * {b}", "mul#({a}, {b}, {mode})", "mul32_ftz({a}, {b}, {mode})"),
    *_rounded("fma.rnd", 3, *FUSED),
    *_rounded("mad.rnd", 3, *FUSED, packed=False),
    *_quotient("div", "f# f#", "div#({a}, {b}, {mode})"),
    form("div.approx{.ftz}.f32", "f32", "f32 f32", f32("div_approx({a}, {b})")),
    *_quotient("rcp", "f#", "div#(ONE#, {a}, {mode})"),
    *_quotient("sqrt", "f#", "sqrt#({a}, {mode})"),
    form("rcp.approx.ftz.f64", "f64", "f64", "coarse64(high64(div64(ONE64, high64(a), RN)))"),
    form("rsqrt.approx{.ftz}.f32", "f32", "f32", f32("rsqrt_f32({a})")),
    form("rsqrt.approx.f64", "f64", "f64", "nan64(rsqrt_f64(a), a, a, a)"),
    form("rsqrt.approx.ftz.f64", "f64", "f64", "coarse64(high64(rsqrt_f64(high64(a))))"),
    *(_function(op) for op in ("sin", "cos", "lg2", "ex2")),
    form("tanh.approx.f32", "f32", "f32", "tanh_f32(a)"),
    *_sign("abs", "a & ~SIGN{}", "abs(ftz(a))"),
    *_sign("neg", "a ^ SIGN{}", "-ftz(a)"),
    *_minmax("min"),
    *_minmax("max"),
    form("copysign.f32", "b32", "b32 b32", "(a & SIGN32) | (b & ~SIGN32)"),
    form("copysign.f64", "b64", "b64 b64", "(a & SIGN64) | (b & ~SIGN64)"),
    form(
        "testp.op.type",
        *("pred", "{type}", lambda mods: TESTS[mods["op"]].replace("#", mods["w"])),
        op=" ".join(TESTS),
        type="f32 f64",
    ),
)

FAMILIES = families("9.7.3", FLOAT)
