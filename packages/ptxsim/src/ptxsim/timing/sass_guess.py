"""Guesses which instructions of a PTX program ptxas would keep, and how many SASS instructions each becomes.

PTX is written for an optimising assembler: it recomputes addresses, copies and widens. The guess follows
rules that any such assembler follows. A value that a dominating block has computed (values.py) is not
computed again; a constant becomes part of the offset of an access; unread values are dropped; loop-invariant
values are computed before the loop; and some pairs become one instruction (SASS of sm_80 to sm_100: IMAD,
LEA, IADD3, LOP3, F2FP). 64-bit additions become two. research/time/sass_counts.py reports what ptxas itself
keeps.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from ptxsim.frontend.ast import Imm
from ptxsim.timing.flow import NOWHERE, Flow, flow
from ptxsim.timing.values import ValueNumbers, children, pure

_FREE = {"constant", "phi", "row", "special", "unset", "literal", "cut", "neg", "abs"}
_LOGIC = {"and", "or", "xor", "not", "lop3"}
_MANY = {  # SASS instructions, counted in ptxas's output; without .ftz, operands are scaled
    "div.full.f32": 9, "div.full.ftz.f32": 6, "div.approx.f32": 6, "div.approx.ftz.f32": 6, "div.rn.f32": 13,
    "ex2.approx.f32": 4, "lg2.approx.f32": 4, "sqrt.approx.f32": 4, "rsqrt.approx.f32": 4, "sqrt.rn.f32": 9,
    "rcp.rn.f32": 8, "sin.approx.f32": 2, "cos.approx.f32": 2, "div.s32": 23, "div.u32": 16, "rem.s32": 21,
    "rem.u32": 14, "div.s64": 60, "div.u64": 60, "rem.s64": 60, "rem.u64": 60,
}  # fmt: skip
_AGAIN = {
    "div.full.f32": 3,
    "div.full.ftz.f32": 2,
    "div.approx.f32": 2,
    "div.approx.ftz.f32": 2,
    "div.s32": 13,
    "div.u32": 9,
    "rem.s32": 11,
    "rem.u32": 8,
}  # another division by the same divisor, whose reciprocal is then known


def guess(program) -> list[int]:
    """Row -> instructions that it becomes, not counting hoisted ones; 1 for rows that are not arithmetic."""
    graph = flow(program)
    return _Guess(ValueNumbers(program.instrs, graph), graph).slots


class _Guess:
    def __init__(self, values: ValueNumbers, graph: Flow):
        self.values, self.flow = values, graph
        self.slots = [int(instr is not None) for instr in values.instrs]
        self.block = graph.block_of()
        self.gives = self._givers()
        self.needed = self._needed()
        self.readers = self._readers()
        self.fused: dict[int, set[str]] = defaultdict(set)  # row -> pairs (_PAIRS) that it has absorbed
        self.divisors: set[tuple] = set()  # (number, block)
        for row in values.result:
            self.slots[row] = 0
        for row in self.gives:
            self.slots[row] = self._slots(row)
        for row in self._chosen():
            self.slots[row] = 1
        for row in range(len(self.slots)):
            if not values.begins(row) or row in self.lazy and not self._read(row):
                self.slots[row] = 0

    # ---- which row computes which value ----

    def _givers(self) -> dict[int, list[int]]:
        """Row -> the numbers that it is the first to compute."""
        places: dict[int, list[int]] = defaultdict(list)
        found: dict[int, list[int]] = {}
        for row, number in self.values.result.items():
            b = self.block[row]
            key = self.values.keys[number]
            wanted = [number, key[1]] if key[0] == "plus" else [number]
            new = []
            for one in wanted:
                if self.values.keys[one][0] in _FREE or any(self.flow.dominates(p, b) for p in places[one]):
                    if one == number:
                        break
                    continue
                new.append(one)
                places[one].append(b)
            if new:
                found[row] = new
        return found

    def _needed(self) -> set[int]:
        """Numbers that instructions which are kept read, directly or through other numbers."""
        values = self.values
        self.lazy = {r for r in values.reads if pure(values.instrs[r])}
        work = [n for r, reads in values.reads.items() if r not in self.lazy for n in reads]
        seen: set[int] = set()
        while work:
            number = work.pop()
            if number not in seen:
                seen.add(number)
                work += self._parts(number)
        return seen

    def _parts(self, number: int) -> list[int]:
        key = self.values.keys[number]
        if key[0] == "phi":
            return [
                n for p in self.flow.before[key[1]] if (n := self.values.leaves[p].get(key[2])) is not None
            ]
        if key[0] == "row":
            return self.values.reads[key[1]] if key[1] in self.lazy else []
        return list(children(key))

    def _readers(self) -> dict[int, list[int]]:
        """Number -> rows that read it; -1 for a register that is live into another block."""
        found: dict[int, list[int]] = defaultdict(list)
        for row, reads in self.values.reads.items():
            for number in reads if row not in self.lazy or self._read(row) else ():
                found[number].append(row)
        for row in self.gives:
            for number in self._operands(row) if self._wanted(row) else ():
                found[number].append(row)
        for number in self.needed:
            if self.values.keys[number][0] == "phi":
                for part in self._parts(number):
                    found[part].append(-1)
        return found

    def _expression(self, row: int) -> tuple:
        """The key that a row computes; of a sum with a constant that is new as well, the sum without it."""
        return self.values.keys[self.gives[row][-1]]

    def _operands(self, row: int) -> tuple[int, ...]:
        """The numbers that a row reads, looking through keys that become no instruction of their own."""
        found, work = [], list(children(self._expression(row)))
        while work:
            number = work.pop()
            key = self.values.keys[number]
            if key[0] in ("cut", "neg", "abs"):
                work += children(key)
            else:
                found.append(number)
        return tuple(found)

    def _wanted(self, row: int) -> bool:
        return any(n in self.needed for n in self.gives[row])

    def _read(self, row: int) -> bool:
        return any(self.values.number.get(("row", row, i)) in self.needed for i in range(4))

    # ---- instructions that a row becomes ----

    def _chosen(self) -> list[int]:
        """Rows that move a nonzero constant into a register with another value on another path (a phi)."""
        values = self.values
        joins = [values.keys[n][1:] for n in self.needed if values.keys[n][0] == "phi"]
        parts = {(name, values.leaves[p].get(name)) for b, name in joins for p in self.flow.before[b]}
        return [
            row
            for row, number in values.result.items()
            if (instr := values.instrs[row]).op == "mov"
            and isinstance(value := instr.operands[1], Imm)
            and value.bits
            and (instr.operands[0].name, number) in parts
        ]

    def _slots(self, row: int) -> int:
        if not self._wanted(row) or self._hoisted(row) or self._absorbed(row):
            return 0
        key = self._expression(row)
        again = _AGAIN.get(".".join((key[0], *key[1]))) if key[0] in ("div", "rem") else None
        if again is not None and self.values.constant(key[3]) is None:
            divisor = key[1], key[3], self.block[row]
            if divisor in self.divisors:
                return again
            self.divisors.add(divisor)
        return 1 if "product" in self.fused[row] else _width(key)

    def _hoisted(self, row: int) -> bool:
        """Whether a row's value is invariant in the innermost loop around it."""
        inner = self.flow.innermost(self.block[row])
        return inner != NOWHERE and self.values.home[self.gives[row][-1]] not in self.flow.loops[inner]

    def _absorbed(self, row: int) -> bool:
        """Whether a row becomes part of the one instruction that reads it."""
        numbers = [n for n in self.gives[row] if n in self.needed]
        readers = {r for n in numbers for r in self.readers[n]}
        if len(numbers) != 1 or len(readers) != 1:
            return False
        (reader,) = readers
        if reader not in self.gives or self.block[reader] != self.block[row]:
            return False
        inner, outer = self._expression(row), self._expression(reader)
        for name, fits in _PAIRS.items():
            if name not in self.fused[reader] and fits(inner, outer):
                if name == "logic" and not self._three(row, reader):
                    continue
                self.fused[reader].add(name)
                return True
        return False

    def _three(self, row: int, reader: int) -> bool:
        """Whether two bitwise operations together have at most three operands."""
        both = Counter([*self._operands(row), *self._operands(reader)])
        return len(both) <= 4  # the inner result is one of them


def _kind(key: tuple) -> str:
    return key[1][-1] if len(key) > 1 and isinstance(key[1], tuple) and key[1] else ""


def _width(key: tuple) -> int:
    """The number of 32-bit instructions that a key takes."""
    if key[0] == "plus":
        return 2 if key[3] == 64 else 1
    if key[0] == "times":
        return 2 if key[1][1] == 64 else 1
    if key[0] == "pack":
        twice = len(set(key[2:])) == 1  # HFMA2 reads the same half of a register twice
        return int(key[1][-1] == "b32" and not twice)
    many = _MANY.get(".".join((key[0], *key[1])))
    wide = _kind(key) in ("s64", "u64", "b64") and key[0] not in ("mul", "mad")
    return many or (2 if wide else 1)


def _bits(key: tuple) -> int:
    """The width of an integer sum or product in bits."""
    return key[1][1] if key[0] == "times" else 64 if _kind(key).endswith("64") else 32


def _is_sum(key: tuple, kinds=("s32", "s64")) -> bool:
    return key[0] in ("add", "sub") and _kind(key) in kinds


def _float(key: tuple) -> bool:
    return _kind(key) in ("f32", "f16", "f16x2", "bf16", "bf16x2") and not {"rn", "rz"} & set(key[1])


_PAIRS = {  # name -> whether one instruction can do two operations, given (inner key, outer key)
    "product": lambda i, o: i[0] == "mul" and "wide" in i[1] and _is_sum(o, ("s64",)),
    "scaled": lambda i, o: (
        (i[0] == "times" or i[0] == "mul" and "lo" in i[1]) and _is_sum(o) and _bits(i) == _bits(o)
    ),
    "widened": lambda i, o: i[0] == "extended" and (_is_sum(o, ("s64",)) or o[0] in ("times", "mul")),
    "three": lambda i, o: (i[0] == "plus" and i[3] == 32 or _is_sum(i, ("s32",))) and _is_sum(o, ("s32",)),
    "logic": lambda i, o: i[0] in _LOGIC and o[0] in _LOGIC and "pred" not in i[1] and "pred" not in o[1],
    "predicate": lambda i, o: i[0] == "setp" and (o[0] in _LOGIC and "pred" in o[1] or o[0] == "setp"),
    "first half": lambda i, o: i[0] == "cvt" and o[0] == "pack" and _kind(i) == "f32",
    "second half": lambda i, o: i[0] == "cvt" and o[0] == "pack" and _kind(i) == "f32",
    "contracted": lambda i, o: i[0] == "mul" and o[0] in ("add", "sub") and _float(i) and _float(o),
}
