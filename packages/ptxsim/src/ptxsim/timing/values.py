"""Value numbering of a program: two registers with the same number hold the same value.

A register that is written once has one number. A register that is written more often keeps its number across
a block boundary if it arrives with the same number along every path; otherwise the block gives it a new one
(a phi). Sums with a constant are kept as (number, constant), also through shifts and products by constants,
so that the common part of addresses in different rows is found however it was written. (Muchnick, Advanced
Compiler Design, 12.4; Briggs, Cooper, Simpson: Value numbering, 1997.)
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ptxsim.frontend.ast import Imm, Instr, Mem, Pair, Paren, Pred, Reg, Vec
from ptxsim.timing.flow import NOWHERE, Flow
from ptxsim.timing.folding import RULES
from ptxsim.timing.instructions import describe

_PURE = {
    "abs", "add", "and", "bfe", "bfi", "bfind", "brev", "clz", "cnot", "copysign", "cos", "cvt", "cvta",
    "div", "dp2a", "dp4a", "ex2", "fma", "fns", "getctarank", "isspacep", "lg2", "lop3", "mad", "mad24",
    "mapa", "max", "min", "mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt",
    "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "szext", "tanh",
    "testp", "xor",
}  # fmt: skip
_EITHER_WAY = {"add", "mul", "and", "or", "xor", "min", "max"}  # commutative
_VOLATILE = ("%clock", "%globaltimer", "%pm", "%smid", "%warpid", "%nwarpid")


def pure(instr: Instr) -> bool:
    """Whether an instruction depends only on its operands and changes only its result."""
    return instr.op in _PURE and "cc" not in instr.mods or instr.op == "ld" and "param" in instr.mods[0]


class ValueNumbers:
    """The value numbers of one program. A key is (kind, operands ..); operands are numbers or plain data."""

    def __init__(self, instrs: list, flow: Flow):
        self.instrs, self.flow = instrs, flow
        self.number: dict[tuple, int] = {}
        self.keys: list[tuple] = []
        self.home: list[int] = []  # number -> header of the innermost loop in which it changes, or NOWHERE
        self.rows: list[Any] = [describe(i) if i is not None else None for i in instrs]
        self.once: dict[str, int] = {}  # register that is written only once -> number
        self.often = self._often()
        self.writes = [self._writes(b) for b in range(len(flow.blocks))]
        self.leaves: list[dict[str, int]] = [{} for _ in flow.blocks]  # block -> numbers at its end
        self.result: dict[int, int] = {}  # row of a pure instruction -> number
        self.reads: dict[int, list[int]] = {}  # row -> numbers that it reads
        self.now: dict[str, int] = {}
        for b in flow.order:
            self._block(b)

    def _often(self) -> set[str]:
        """Registers that are written more than once."""
        rows = filter(self.begins, range(len(self.instrs)))
        count = Counter(name for row in rows for name in self.rows[row].writes)
        return {name for name, times in count.items() if times > 1}

    def begins(self, row: int) -> bool:
        """Whether a row is the first of a PTX instruction, which may have several."""
        instr = self.instrs[row]
        return instr is not None and not (row and instr is self.instrs[row - 1])

    # ---- keys ----

    def of(self, *key, home: int | None = None) -> int:
        """The number of a key, a new one for a new key. home: for keys that are not expressions."""
        found = self.number.get(key)
        if found is None:
            found = self.number[key] = len(self.keys)
            self.keys.append(key)
            self.home.append(self._deepest(children(key)) if home is None else home)
        return found

    def _deepest(self, numbers) -> int:
        loops = self.flow.loops
        homes = {self.home[n] for n in numbers} - {NOWHERE}
        return min(homes, key=lambda h: len(loops[h]), default=NOWHERE)

    def constant(self, number: int) -> int | None:
        key = self.keys[number]
        return key[1] if key[0] == "constant" else None

    def split(self, number: int) -> tuple[int | None, int]:
        """(base, constant) with number = base + constant; base is None if the number is a constant."""
        key = self.keys[number]
        if key[0] == "constant":
            return None, key[1]
        return (key[1], key[2]) if key[0] == "plus" else (number, 0)

    def plus(self, base: int | None, more: int, bits: int) -> int:
        more &= (1 << bits) - 1
        if base is None:
            return self.of("constant", more)
        return self.of("plus", base, more, bits) if more else base

    # ---- blocks ----

    def _block(self, b: int) -> None:
        flow = self.flow
        self.now = {name: self._enters(b, name) for name in self.often}
        for row in flow.blocks[b].positions:
            if self.begins(row):
                self._row(b, row, self.instrs[row])
        self.leaves[b] = self.now

    def _enters(self, b: int, name: str) -> int:
        """The number of a register at the start of a block."""
        flow, loop = self.flow, self.flow.loops.get(b, set())
        inner = any(name in self.writes[body] for body in loop)
        known = [p for p in flow.before[b] if p not in loop]
        values = {self.leaves[p].get(name, -1) for p in known}
        if len(values) == 1 and not inner:
            (only,) = values
            return only if only >= 0 else self.of("unset", name, home=NOWHERE)
        home = b if b in flow.loops else flow.innermost(b)
        return self.of("phi", b, name, home=home)

    def _writes(self, b: int) -> set[str]:
        rows = self.flow.blocks[b].positions
        return {n for r in rows if self.instrs[r] for n in self.rows[r].writes}

    # ---- rows ----

    def _row(self, b: int, row: int, instr: Instr) -> None:
        guard = [self.operand(instr.pred)] if instr.pred is not None else []
        targets = self.rows[row].writes
        plain = pure(instr) and not guard and len(targets) == 1 and isinstance(instr.operands[0], Reg)
        if plain:
            number = self._expression(instr)
            if number is not None:
                self.result[row] = number
                self._set(targets[0], number)
                return
        self.reads[row] = guard + self._others(instr, targets)
        if guard and pure(instr):  # if the guard is false, the old values stay
            self.reads[row] += [self.register(name) for name in targets]
        home = self.flow.innermost(b)
        for place, name in enumerate(targets):
            self._set(name, self.of("row", row, place, home=home))

    def _set(self, name: str, number: int) -> None:
        (self.now if name in self.often else self.once)[name] = number

    def _others(self, instr: Instr, targets) -> list[int]:
        operands = instr.operands[1:] if targets else instr.operands
        return [n for o in operands for n in self._numbers(o)]

    def _numbers(self, operand) -> list[int]:
        """The numbers that an instruction which stays reads; of an address without its constant offset."""
        if isinstance(operand, Mem):
            found = [self.address(operand.base)] if isinstance(operand.base, Reg) else []
            return found + [n for p in operand.parts for n in self._numbers(p)]
        if isinstance(operand, Vec | Paren):
            return [n for o in operand.items for n in self._numbers(o)]
        if isinstance(operand, Pair):
            return self._numbers(operand.first) + self._numbers(operand.second)
        return [self.operand(operand)] if isinstance(operand, Reg | Pred) else []

    def address(self, base: Reg) -> int:
        number = self.register(base.name)
        root, more = self.split(number)
        if root is None:
            return number
        bits = self.keys[number][3] if self.keys[number][0] == "plus" else 64
        signed = more - (1 << bits) if more >> (bits - 1) else more
        return root if -(1 << 23) <= signed < 1 << 23 else number  # an instruction has 24 bits for an offset

    def register(self, name: str) -> int:
        if name in self.often:
            return self.now.get(name, -1) if name in self.now else self.of("unset", name, home=NOWHERE)
        found = self.once.get(name)
        if found is None:
            return self.of("special" if name.startswith("%") else "unset", name, home=NOWHERE)
        return found

    def operand(self, operand) -> int:
        if isinstance(operand, Reg):
            return self.register(operand.name)
        if isinstance(operand, Pred):
            inner = self.register(operand.reg.name)
            return self.of("not", ("pred",), inner) if operand.negated else inner
        if isinstance(operand, Imm) and operand.kind == "int":
            return self.of("constant", operand.bits & (1 << 64) - 1)
        return self.of("literal", repr(operand), home=NOWHERE)

    def _expression(self, instr: Instr) -> int | None:
        if any(isinstance(o, Reg) and o.name.startswith(_VOLATILE) for o in instr.operands):
            return None
        if instr.op == "ld":
            return self.of("param", repr(instr.operands[1]), instr.mods[-1], home=NOWHERE)
        if instr.op == "mov" and isinstance(instr.operands[1], Vec):
            return self.of("pack", instr.mods, *(self.operand(o) for o in instr.operands[1].items))
        if any(isinstance(o, Vec | Mem | Pair) for o in instr.operands[1:]):
            return None
        operands = [self.operand(o) for o in instr.operands[1:]]
        rule = RULES.get(instr.op)
        found = rule(self, instr.mods, operands) if rule else None
        if found is not None:
            return found
        if instr.op in _EITHER_WAY and len(operands) == 2:
            operands.sort()
        return self.of(instr.op, instr.mods, *operands)


def children(key: tuple) -> tuple[int, ...]:
    """The numbers among the operands of a key."""
    if key[0] in ("constant", "param", "phi", "row", "special", "unset", "literal"):
        return ()
    if key[0] == "plus":
        return (key[1],)
    return key[2:]
