"""Which pipe of a sub-partition an instruction uses, for how long, and with which latency.

Lanes per cycle are from the CUDA C++ guide (throughput of arithmetic instructions, compute capability 9.0 and
10.0); a sub-partition has a quarter of an SM's. Which pipe executes an instruction is from the documentation
of Nsight Compute (pipelines ALU, FMA heavy and lite, XU, FP64). Integer sums go to ALU or FMA heavy (SASS:
VIADD or IMAD.IADD), half of them to each. Left shifts go to whichever is free (SHF or IMAD.SHL), so they only
take their issue slot. The high half of a product takes twice as long as the low half: Philox random numbers,
with 129 of them in a warp, take 1303 cycles for 1671 instructions.
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
_MIXED: dict[str, dict[str, float]] = {  # cycles of each pipe per machine instruction
    "high": {"product": 4},
    "sum": {"logic": 1, "product": 1},
    "wide sum": {"logic": 1.5, "product": 0.5},  # the low half, which produces a carry, is always IADD3
    "division": {"logic": 1.4, "product": 0.6},  # 7 of 10 instructions compare, select or correct by one
}
AWAITED = {"special", "double"}  # of variable latency: readers of the result wait for a scoreboard
LATENCY = {"special": 5, "convert": 2, "double": 2, "none": 0}  # in multiples of FFMA's; others: 1

_FLOATS = {"f32", "f16", "f16x2", "bf16", "bf16x2", "f32x2"}
_FREE = {"mov", "cvta", "ret", "exit"}
_BY_NAME = {
    **dict.fromkeys(("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"), "special"),
    **dict.fromkeys(("brev", "popc", "clz", "bfind"), "special"),
}
_COMPARED = {"setp", "set", "selp", "slct", "min", "max", "testp", "copysign"}  # of any type
_MULTIPLIED = {"mul", "mad", "mul24", "mad24", "dp4a", "dp2a"}
_WHOLE = {
    **dict.fromkeys(("add", "sub"), "sum"),
    **dict.fromkeys(("shl", "neg", "bra", "brx"), "either"),
    **dict.fromkeys(("div", "rem"), "division"),
}


def pipe(op: str, mods: tuple) -> str:
    """The name of the pipe of an instruction, given its opcode and modifiers."""
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
    """Cycles of each pipe for a PTX instruction that becomes `left` machine instructions."""
    if name == "special":  # its other instructions are sums and products
        return {"special": CYCLES[name] if left else 0, "either": max(0, left - 1)}
    if name in _MIXED:
        return {one: cycles * left for one, cycles in _MIXED[name].items()}
    return {name: CYCLES[name] * left}
