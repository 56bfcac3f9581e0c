"""Which pipe of a sub-partition an instruction passes, for how long, and how late its result comes.

Lanes per cycle are those of the CUDA C++ guide (throughput of arithmetic instructions, compute capability
9.0 and 10.0), a quarter of an SM's for a sub-partition; which pipe takes what, the documentation of Nsight
Compute says (pipelines ALU, FMA heavy and lite, XU, FP64). Whole sums go to ALU or FMA heavy (SASS: VIADD or
IMAD.IADD), half of them to each; shifts to the left to whichever has room (SHF or IMAD.SHL), so they take
their issue slot alone. The high half of a product takes twice as long as the low one: random numbers by
Philox, 129 of them a warp, take 1303 cycles for 1671 instructions.
"""

from __future__ import annotations

CYCLES = {  # of a warp of 32 lanes
    "float": 1,  # both halves of FMA: 128 lanes an SM
    "either": 1,  # ALU or the heavy half of FMA
    "logic": 2,  # ALU: 64
    "product": 2,  # the heavy half of FMA: 64
    "convert": 2,
    "double": 2,
    "special": 8,  # XU: 16
    "none": 0,
}
_MIXED: dict[str, dict[str, float]] = {  # cycles for each of the machine's own
    "high": {"product": 4},
    "sum": {"logic": 1, "product": 1},
    "wide sum": {"logic": 1.5, "product": 0.5},  # the low half gives a carry: always IADD3
    "division": {"logic": 1.4, "product": 0.6},  # 7 of 10 compare, choose, or correct by one
}
AWAITED = {"special", "double"}  # late by no fixed time: who reads what they give waits for a scoreboard
LATENCY = {"special": 5, "convert": 2, "double": 2, "none": 0}  # times that of an FFMA; else 1

_FLOATS = {"f32", "f16", "f16x2", "bf16", "bf16x2", "f32x2"}
_FREE = {"mov", "cvta", "ret", "exit"}
_BY_NAME = {
    **dict.fromkeys(("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"), "special"),
    **dict.fromkeys(("brev", "popc", "clz", "bfind"), "special"),
}
_COMPARED = {"setp", "set", "selp", "slct", "min", "max", "testp", "copysign"}  # whatever the type
_MULTIPLIED = {"mul", "mad", "mul24", "mad24", "dp4a", "dp2a"}
_WHOLE = {
    **dict.fromkeys(("add", "sub"), "sum"),
    **dict.fromkeys(("shl", "neg", "bra", "brx"), "either"),
    **dict.fromkeys(("div", "rem"), "division"),
}


def pipe(op: str, mods: tuple) -> str:
    """The name of the pipe, by the name of the instruction and its modifiers."""
    if op in _FREE or op == "cvt" and not any("f" in m for m in mods if m[0] in "sufb"):
        return "none"
    if op in _BY_NAME:
        return _BY_NAME[op]
    if op == "cvt":
        return "float" if mods[-2:] == ("f32", "f16") else "convert"
    if "f64" in mods:
        return "double"
    if op in _COMPARED:
        return "logic"
    if _FLOATS.intersection(mods):
        return "special" if op == "div" else "float"
    if op in _MULTIPLIED:
        return "high" if "hi" in mods else "product"
    found = _WHOLE.get(op, "logic")
    return "wide sum" if found == "sum" and mods[-1][1:] == "64" else found


def passes(name: str, left: float) -> dict[str, float]:
    """Cycles of each pipe for an instruction that becomes `left` of the machine's own."""
    if name == "special":  # the others around it are sums and products
        return {"special": CYCLES[name] if left else 0, "either": max(0, left - 1)}
    if name in _MIXED:
        return {one: cycles * left for one, cycles in _MIXED[name].items()}
    return {name: CYCLES[name] * left}
