"""Branches that are decided for threads that are held: nothing that their guards depend on will change.

Tells, for a waiting group, which rows it can reach: roles (warp, CTA) stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxsim.checks.static_flow import definitions, reachable
from ptxsim.events.views import Cluster
from ptxsim.frontend.ast import Imm, Instr, Pred, Reg
from ptxsim.machine.split import lane_list

_COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_COMPUTE: dict[str, Callable[..., int]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b, "shl": lambda a, b: a << min(b, 32), "shr": lambda a, b: a >> min(b, 32),
    "mov": lambda a: a,
}  # fmt: skip
_DEPTH = 8


class Guards:
    def __init__(self, cluster: Cluster):
        self.cluster, self.program = cluster, cluster.program

    def reach(self, row: int, warp: int, mask: int) -> set[int]:
        """Rows that the lanes `mask` of a warp, held at `row`, may still execute."""
        values = _Settled(self, reachable(self.program, row), warp, mask)

        def decide(at: int) -> bool | None:
            return values.predicate(self.program.instrs[at].pred)

        return reachable(self.program, row, decide)


class _Settled:
    """Values of one waiting group that will not change any more."""

    def __init__(self, guards: Guards, ahead: set[int], warp: int, mask: int):
        self.cluster, self.program = guards.cluster, guards.program
        self.defined = definitions(guards.program)
        self.ahead, self.warp, self.mask = ahead, warp, mask
        self.lanes = lane_list(mask).tolist()

    def _definition(self, name: str, depth: int) -> Instr | None:
        """The only instruction that writes a register, if that is known to run unconditionally."""
        rows = self.defined[name]
        instr = self.program.instrs[rows[0]] if len(rows) == 1 and depth < _DEPTH else None
        return instr if instr is not None and instr.pred is None else None

    def predicate(self, operand, depth: int = 0) -> bool | None:
        """The value of a predicate, if it is settled and the same in all lanes; else None."""
        if isinstance(operand, Imm):
            return bool(operand.bits)
        name = operand.reg.name if isinstance(operand, Pred) else operand.name
        value = self._predicate(name, depth)
        return value if value is None or not (isinstance(operand, Pred) and operand.negated) else not value

    def _predicate(self, name: str, depth: int) -> bool | None:
        if not self.ahead & set(self.defined[name]):
            index = self.program.slots.predicates.get(name)
            bits = None if index is None else int(self.cluster.predicates[self.warp, index]) & self.mask
            return None if bits not in (0, self.mask) else bits == self.mask
        instr = self._definition(name, depth)
        if instr is None:
            return None
        if instr.mods[-1] == "pred":
            return self._logic(instr, depth + 1)
        if instr.op != "setp" or instr.mods[0] not in _COMPARE or len(instr.operands) != 3:
            return None
        signed = instr.mods[-1][0] == "s"
        pair = [self.values(o, depth + 1, signed) for o in instr.operands[1:]]
        if None in pair:
            return None
        results = {_COMPARE[instr.mods[0]](a, b) for a, b in zip(*pair, strict=True)}
        return results.pop() if len(results) == 1 else None

    def _logic(self, instr: Instr, depth: int) -> bool | None:
        """and, or, not, mov of predicates; one settled source may decide."""
        values = [self.predicate(o, depth) for o in instr.operands[1:]]
        if instr.op in ("and", "or"):
            strong = instr.op == "or"
            return strong if strong in values else None if None in values else not strong
        if instr.op in ("not", "mov"):
            return values[0] if instr.op == "mov" or values[0] is None else not values[0]
        return None

    def values(self, operand, depth: int = 0, signed: bool = True) -> list[int] | None:
        """32-bit values by lane; None if they may change before they are used."""
        if isinstance(operand, Imm):
            return [_cut(operand.bits, signed)] * len(self.lanes)
        if not isinstance(operand, Reg):
            return None
        if not self.ahead & set(self.defined[operand.name]):
            slot = self._slot(operand.name)
            now = None if slot is None else self.cluster.registers[self.warp, slot]
            return None if now is None else [_cut(int(now[k]), signed) for k in self.lanes]
        instr = self._definition(operand.name, depth)
        if instr is None or instr.op not in _COMPUTE or not instr.mods or instr.mods[-1][1:] != "32":
            return None
        sources = [self.values(o, depth + 1, instr.mods[-1][0] == "s") for o in instr.operands[1:]]
        if None in sources:
            return None
        return [_cut(_COMPUTE[instr.op](*lane), signed) for lane in zip(*sources, strict=True)]

    def _slot(self, name: str) -> int | None:
        slots = self.program.slots
        fixed = slots.fixed.get(("special", name))
        return slots.registers.get(name) if fixed is None else slots.register_slots + fixed


def _cut(bits: int, signed: bool) -> int:
    bits &= 0xFFFF_FFFF
    return bits - (1 << 32) if signed and bits >> 31 else bits
