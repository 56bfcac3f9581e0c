"""Integer arithmetic, extended-precision, logic and shift instructions (PTX ISA 9.7.1, 9.7.2, 9.7.8)."""

from __future__ import annotations

from ptxsim.isa.scalar.forms import Form, Mods, families, form

INT = "u16 u32 u64 s16 s32 s64"
WORDS = "u32 s32 u64 s64"
BITS = "b16 b32 b64"
NARROW = "u16 u32 s16 s32"
SIGNS = {"atype": "u32 s32", "btype": "u32 s32"}
MODES = "clamp wrap"


def pairwise(expr: str):
    """A template that applies `expr` to both 16-bit halves, extended according to {type}, and packs them."""

    def build(mods: Mods) -> str:
        extend = "sext16" if mods["type"].startswith("s") else ""
        halves = ({n: f"{extend}({half}({n}))" for n in "ab"} for half in ("lo16", "hi16"))
        low, high = (relu(expr)(mods).format(**half) for half in halves)
        return f"pack16({low}, {high})"

    return build


def relu(expr: str):
    """A template that replaces negative results by zero if {relu} is given."""
    return lambda mods: f"max({expr}, np.int64(0))" if mods.get("relu") else expr


def wide(mods: Mods) -> str:
    """The type of twice the width: u16 -> u32."""
    return f"{mods['sign']}{2 * int(mods['w'])}"


def wide_mad(mods: Mods) -> str:
    return f"{mods['type']} {mods['type']} {wide(mods)}"


def _add_sub(name: str, sign: str) -> tuple[Form, ...]:
    return (
        form(f"{name}.type", "{u}", "{u} {u}", f"a {sign} b", f"{name}.{{u}}", type=INT),
        form(f"{name}.sat.s32", "s32", "s32 s32", f"clamp_s32(a {sign} b)"),
    )


def _min_max(name: str) -> tuple[Form, ...]:
    pairs = pairwise(f"{name}({{a}}, {{b}})")
    return (
        form(f"{name}.type", "{type}", "{type} {type}", f"{name}(a, b)", type="u16 u32 u64 s16 s64"),
        form(f"{name}{{.relu}}.s32", "s32", "s32 s32", relu(f"{name}(a, b)")),
        form(f"{name}.type", "b32", "b32 b32", pairs, type="u16x2"),
        form(f"{name}{{.relu}}.type", "b32", "b32 b32", pairs, type="s16x2"),
    )


INTEGER = (
    *_add_sub("add", "+"),
    *_add_sub("sub", "-"),
    form("add.type", "b32", "b32 b32", "pack16(a + b, hi16(a) + hi16(b))", "add.u16x2", type="u16x2 s16x2"),
    form("mul.lo.type", "{u}", "{u} {u}", "a * b", "mul.lo.{u}", type=INT),
    form("mul.hi.type", "{u}", "{type} {type}", "mulhi_{type}(a, b)", type=INT),
    form("mul.wide.type", wide, "{type} {type}", "a * b", type=NARROW),
    form("mad.lo.type", "{u}", "{u} {u} {u}", "a * b + c", "mad.lo.{u}", type=INT),
    form("mad.hi.type", "{u}", "{type} {type} {u}", "mulhi_{type}(a, b) + c", type=INT),
    form("mad.hi.sat.s32", "s32", "s32 s32 s32", "clamp_s32(((a * b) >> np.int64(32)) + c)"),
    form("mad.wide.type", wide, wide_mad, "a * b + c", type=NARROW),
    form("mul24.mode.type", "{u}", "b32 b32", "mul24_{mode}_{type}(a, b)", mode="hi lo", type="u32 s32"),
    form(
        "mad24.mode.type", "{u}", "b32 b32 b32", "mul24_{mode}_{type}(a, b) + c", mode="hi lo", type="u32 s32"
    ),
    form("mad24.hi.sat.s32", "s32", "b32 b32 s32", "clamp_s32(sext32(mul24_hi_s32(a, b)) + c)"),
    form("sad.type", "{u}", "{type} {type} {u}", "absdiff(a, b) + c", type=INT),
    form("div.type", "{type}", "{type} {type}", "div_{sign}(a, b, W{w})", type=INT),
    form("rem.type", "{type}", "{type} {type}", "rem_{sign}(a, b, W{w})", type=INT),
    form("abs.type", "{type}", "{type}", "abs(a)", type="s16 s32 s64"),
    form("neg.type", "{type}", "{type}", "-a", type="s16 s32 s64"),
    *_min_max("min"),
    *_min_max("max"),
    form("popc.type", "u32", "{type}", "popc(a)", type="b32 b64"),
    form("clz.type", "u32", "{type}", "clz(a) + W{w} - W64", type="b32 b64"),
    form("bfind.type", "u32", "{type}", "bfind_{sign}(a)", type=WORDS),
    form("bfind.shiftamt.type", "u32", "{type}", "bfind_shift(bfind_{sign}(a), W{w})", type=WORDS),
    form("fns.b32", "b32", "b32 b32 s32", "fns(a, b, c)"),
    form("brev.type", "{type}", "{type}", "brev(a) >> (W64 - W{w})", type="b32 b64"),
    form("bfe.type", "{u}", "{u} u32 u32", "bfe_{sign}(a, b, c, W{w})", type=WORDS),
    form("bfi.type", "{type}", "{type} {type} u32 u32", "bfi(a, b, c, d, W{w})", type="b32 b64"),
    form("szext.mode.type", "{u}", "u32 u32", "szext_{mode}_{sign}(a, b)", mode=MODES, type="u32 s32"),
    form("bmsk.mode.b32", "b32", "b32 b32", "bmsk_{mode}(a, b)", mode=MODES),
    form("dp4a.atype.btype", "b32", "b32 b32 b32", "dp4a_{atype}_{btype}(a, b) + c", **SIGNS),
    form("dp2a.lo.atype.btype", "b32", "b32 b32 b32", "dp2a_{atype}_{btype}(a, b) + c", **SIGNS),
    form("dp2a.hi.atype.btype", "b32", "b32 b32 b32", "dp2a_{atype}_{btype}(a, hi16(b)) + c", **SIGNS),
)


def _carry(op: str, half: str, helper: str, carry: str) -> Form:
    """An extended-precision form: `helper(x, y)` with the two numbers that are added or subtracted."""
    head = ".".join(filter(None, (op, half, "cc" if carry != "in" else "")))
    x, y = {"": ("a", "b"), "lo": ("a * b", "c"), "hi": ("mulhi_{type}(a, b)", "c")}[half]
    flag = "" if carry == "out" else ", cc"
    src = {"": "{u} {u}", "lo": "{u} {u} {u}", "hi": "{type} {type} {u}"}[half]
    key = "{name}" if half == "hi" else head + ".{u}"
    return form(f"{head}.type", "{u}", src, f"{helper}({x}, {y}{flag}, W{{w}})", key, carry, type=WORDS)


def _carries(op: str, half: str, helper: str) -> tuple[Form, ...]:
    return (
        _carry(op, half, f"{helper}_cc", "out"),
        _carry(op + "c", half, f"{helper}c", "in"),
        _carry(op + "c", half, f"{helper}c_cc", "both"),
    )


EXTENDED = (
    *_carries("add", "", "add"),
    *_carries("sub", "", "sub"),
    *_carries("mad", "lo", "add"),
    *_carries("mad", "hi", "add"),
)

PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def _prmt(mods: Mods) -> str:
    """prmt with a mode: the low two bits of c choose one of four selectors."""
    selectors = sum(one << 16 * i for i, one in enumerate(PRMT_MODES[mods["mode"]]))
    return f"prmt(a, b, np.uint64({selectors:#x}) >> ((c & np.uint64(3)) << np.uint64(4)))"


def _logic(name: str, sign: str, boolean: str) -> tuple[Form, ...]:
    return (
        form(f"{name}.pred", "pred", "pred pred", f"a {boolean} b"),
        form(f"{name}.type", "{type}", "{type} {type}", f"a {sign} b", type=BITS),
    )


LOGIC = (
    *_logic("and", "&", "and"),
    *_logic("or", "|", "or"),
    *_logic("xor", "^", "!="),
    form("not.pred", "pred", "pred", "not a"),
    form("not.type", "{type}", "{type}", "~a", type=BITS),
    form("cnot.type", "{type}", "{type}", "ONE if a == ZERO else ZERO", type=BITS),
    form("lop3.b32", "b32", "b32 b32 b32 b32", "lop3(a, b, c, d)"),
    form("lop3.bool.b32|", "b32 pred", "b32 b32 b32 b32 pred", "lop3_{bool}(a, b, c, d, e)", bool="or and"),
    form("shf.dir.mode.b32", "b32", "b32 b32 u32", "shf_{dir}(a, b, shift_{mode}(c))", dir="l r", mode=MODES),
    form("shl.type", "{type}", "{type} u32", "shl(a, b)", type=BITS),
    form("shr.type", "{type}", "{type} u32", "shr_{sign}(a, b)", "shr.{type}", type=INT),
    form("shr.type", "{u}", "{u} u32", "shr_u(a, b)", "shr.{u}", type=BITS),
)

PERMUTE = (
    form("prmt.b32", "b32", "b32 b32 b32", "prmt(a, b, c)"),
    form("prmt.b32.mode", "b32", "b32 b32 b32", _prmt, mode=" ".join(PRMT_MODES)),
)

FAMILIES = (
    *families("9.7.1", INTEGER),
    *families("9.7.2", EXTENDED),
    *families("9.7.8", LOGIC),
    *families("9.7.9", PERMUTE),
)
