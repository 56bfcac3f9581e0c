"""Registers and predicates of a cluster's warps, as handlers of unit instructions access them."""

from __future__ import annotations

import numpy as np

from ptxsim.machine.split import Lanes

WHOLE_WARP = 0xFFFF_FFFF  # mask of lanes


class RegisterFiles:
    """Registers and predicates by warp. For an issued instruction (`split.issued`), reads return the values
    at its issue, not the current ones.
    """

    registers: np.ndarray  # uint64 (warps, slots, lanes)
    predicates: np.ndarray  # int64 (warps, slots), masks

    def read(self, split: Lanes, slot: int) -> np.ndarray:
        """uint64 (32,): a slot's values in all lanes."""
        if split.issued:
            return np.full(32, split.issued[slot], np.uint64)
        return self.registers[split.warp, slot]

    def values(self, split: Lanes, slot: int) -> list[int]:
        """A slot's value in every active lane."""
        values = self.read(split, slot).tolist()
        return values if split.mask == WHOLE_WARP else [values[lane] for lane in split.lanes.tolist()]

    def scalar(self, split: Lanes, slot: int) -> int:
        """A slot's value in the leader lane."""
        return split.issued[slot] if split.issued else self.registers.item(split.warp, slot, split.leader)

    def scalars(self, split: Lanes, slots: list[int]) -> list[int]:
        """The values of several slots in the leader lane."""
        if split.issued:
            return [split.issued[slot] for slot in slots]
        return self.registers[split.warp, slots, split.leader].tolist()

    def write(self, split: Lanes, slot: int, values) -> None:
        """Writes a slot in the active lanes: one value per lane, or one for all. Slot -1 discards them."""
        if slot >= 0:
            self.registers[split.warp, slot, split.lanes] = values

    def predicate(self, split: Lanes, code: int) -> int:
        """The lanes (mask) in which a predicate operand is true; `code` is 2 * slot + negated."""
        slot = code >> 1
        value = split.issued[~slot] if split.issued else self.predicates.item(split.warp, slot)
        return (~value if code & 1 else value) & 0xFFFF_FFFF

    def set_predicate(self, split: Lanes, code: int, mask: int) -> None:
        old = int(self.predicates[split.warp, code >> 1])
        self.predicates[split.warp, code >> 1] = (old & ~split.mask) | (mask & split.mask)

    def address(self, split: Lanes, arg) -> int:
        """The address of a MemArg in the leader lane."""
        return self.scalar(split, arg.slot) + arg.offset

    def addresses(self, split: Lanes, arg) -> np.ndarray:
        """int64: the address of a MemArg in every active lane."""
        return self.read(split, arg.slot)[split.lanes].astype(np.int64) + arg.offset
