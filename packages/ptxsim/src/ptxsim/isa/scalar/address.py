"""Address conversions as scalar operations: cvta, isspacep, mapa, getctarank, and packing moves.

Windows and the rank field of shared addresses are those of isa/address_map.py (PTX ISA 9.7.9.19 - 9.7.9.24).
"""

from __future__ import annotations

from ptxsim.frontend.ast import Instr, Vec
from ptxsim.isa.address_map import (
    LOCAL_BASE,
    LOCAL_END,
    OFFSET_MASK,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_BASE,
    SHARED_END,
    SHORT_BASE,
    SHORT_END,
)
from ptxsim.isa.scalar.forms import ScalarOp
from ptxsim.isa.syntax import conform, syntax

_WINDOW = {
    "global": 0,
    "const": 0,
    "param": PARAM_WINDOW,
    "param::entry": PARAM_WINDOW,
    "shared": SHARED_BASE,
    "shared::cta": SHARED_BASE,
    "shared::cluster": SHARED_BASE,
    "local": LOCAL_BASE,
}
_TESTS = {
    "global": f"a < np.uint64({SHARED_BASE}) or a >= np.uint64({PARAM_WINDOW})",  # parameters too: 6.4.1.1
    "shared": f"np.uint64({SHARED_BASE}) <= a and a < np.uint64({SHARED_END})",
    "const": f"np.uint64({SHORT_BASE}) <= a and a < np.uint64({SHORT_END})",
    "param": f"np.uint64({PARAM_WINDOW + SHORT_BASE}) <= a and a < np.uint64({PARAM_WINDOW + SHORT_END})",
    "local": f"np.uint64({LOCAL_BASE}) <= a and a < np.uint64({LOCAL_END})",
}
_SETS = {
    "any": "global const param param::entry shared shared::cta shared::cluster local",
    "tested": "global const param param::entry shared shared::cta shared::cluster local",
    "size": "u32 u64",
    "bits": "b16 b32 b64 b128",
}
_FORMS = {
    op: (section, tuple(syntax(box, **_SETS) for box in boxes))
    for op, section, *boxes in (
        ("cvta", "9.7.9.20", "cvta .any.size d, a", "cvta.to .any.size d, a"),
        ("isspacep", "9.7.9.19", "isspacep .tested p, a"),
        ("mapa", "9.7.9.23", "mapa {.shared::cluster}.size d, a, rank"),
        ("getctarank", "9.7.9.24", "getctarank {.shared::cluster}.size d, a"),
        ("mov", "9.7.9.3", "mov .bits d, a"),
    )
}
_OFFSET = f"(a & np.uint64({OFFSET_MASK}))"


def resolve(instr: Instr) -> ScalarOp | None:
    """The operation of an address instruction or a packing `mov`; None for any other instruction."""
    build = _BUILDERS.get(instr.op)
    if build is None or (instr.op == "mov" and not isinstance(instr.operands[1], Vec)):
        return None
    section, forms = _FORMS[instr.op]
    return build(conform(instr, forms, section))


def _cvta(instr: Instr) -> ScalarOp:
    to = instr.mods[0] == "to"
    space, kind = instr.mods[1 if to else 0], instr.mods[-1]
    window = f"np.uint64({_WINDOW[space]})"
    sign = "-" if to else "+"
    expr = f"a {sign} {window}" if _WINDOW[space] else "a"
    return ScalarOp(f"cvta.{'to.' if to else ''}{_WINDOW[space]}.{kind}", (kind,), (kind,), expr)


def _isspacep(instr: Instr) -> ScalarOp:
    space = instr.mods[0].split("::")[0]
    return ScalarOp(f"isspacep.{space}", ("pred",), ("u64",), _TESTS[space])


def _mapa(instr: Instr) -> ScalarOp:
    """mapa. With .shared::cluster it takes an address of the shared window. Given a 64-bit generic address,
    chips keep its upper half, so that it stays generic; production kernels rely on that (nvfp4 GEMMs).
    """
    kind, window = instr.mods[-1], "shared::cluster" in instr.mods
    base = "" if window else f" | np.uint64({SHARED_BASE})"
    if window and kind == "u64":
        base = " | (a & np.uint64(0xFFFF_FFFF_0000_0000))"
    expr = f"{_OFFSET} | (b << np.uint64({RANK_SHIFT})){base}"
    return ScalarOp(f"mapa.{window}.{kind}", (kind,), (kind, "u32"), expr)


def _getctarank(instr: Instr) -> ScalarOp:
    kind = instr.mods[-1]
    return ScalarOp(
        f"getctarank.{kind}", ("u32",), (kind,), f"(a >> np.uint64({RANK_SHIFT})) & np.uint64(255)"
    )


def _mov(instr: Instr) -> ScalarOp:
    """mov with a vector source: packs its items, the first one lowest (PTX ISA 9.7.9.3)."""
    count, kind = len(instr.operands[1].items), instr.mods[-1]
    width = int(kind[1:]) // count
    terms = [f"({'abcdefgh'[i]} << np.uint64({i * width}))" if i else "a" for i in range(count)]
    return ScalarOp(f"pack{count}.{kind}", (kind,), (f"b{width}",) * count, " | ".join(terms))


def unpack(instr: Instr) -> list[ScalarOp]:
    """The operations of a mov with a vector destination, `mov {a, b}, c`: one for each register in it."""
    conform(instr, _FORMS["mov"][1], _FORMS["mov"][0])
    count, kind = len(instr.operands[0].items), instr.mods[-1]
    width = int(kind[1:]) // count
    return [
        ScalarOp(
            f"unpack{i}.{count}.{kind}", (f"b{width}",), (kind,), f"a >> np.uint64({i * width})" if i else "a"
        )
        for i in range(count)
    ]


_BUILDERS = {"cvta": _cvta, "isspacep": _isspacep, "mapa": _mapa, "getctarank": _getctarank, "mov": _mov}


def hot_operations() -> list[ScalarOp]:
    """The operations of the main loop: generic address conversions, mapa, packing and unpacking."""
    spellings = [
        "cvta.global.u64",
        "cvta.shared.u64",
        "cvta.to.shared.u64",
        "mapa.shared::cluster.u32",
        "mapa.u64",
    ]
    found = [_BUILDERS[name.split(".")[0]](_bare(name)) for name in spellings]
    pairs = [("b64", 2), ("b32", 2), ("b64", 4)]
    vectors = [Instr(None, "mov", (kind,), (Vec((0,) * n), Vec((0,) * n)), 0, "") for kind, n in pairs]
    return found + [_mov(instr) for instr in vectors] + [op for instr in vectors for op in unpack(instr)]


def _bare(name: str) -> Instr:
    op, *mods = name.split(".")
    return Instr(None, op, tuple(mods), (), 0, name)
