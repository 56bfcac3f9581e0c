"""Registers and predicates of a cluster's warps, as handlers of unit instructions see them."""

from __future__ import annotations

import numpy as np

from ptxsim.machine.split import Lanes

WHOLE_WARP = 0xFFFF_FFFF  # mask of lanes


class RegisterFiles:
    """Those of a cluster, by warp. Of an issued instruction what it read then counts, not what is there."""

    registers: np.ndarray  # uint64 (warps, slots, lanes)
    predicates: np.ndarray  # int64 (warps, slots), masks

    def read(self, split: Lanes, slot: int) -> np.ndarray:
        """uint64 (32,) of a slot, all lanes."""
        if split.issued:
            return np.full(32, split.issued[slot], np.uint64)
        return self.registers[split.warp, slot]

    def values(self, split: Lanes, slot: int) -> list[int]:
        """The value of every active lane."""
        values = self.read(split, slot).tolist()
        return values if split.mask == WHOLE_WARP else [values[lane] for lane in split.lanes.tolist()]

    def scalar(self, split: Lanes, slot: int) -> int:
        """The leader lane's value."""
        return split.issued[slot] if split.issued else self.registers.item(split.warp, slot, split.leader)

    def scalars(self, split: Lanes, slots: list[int]) -> list[int]:
        """The leader lane's values of several slots."""
        if split.issued:
            return [split.issued[slot] for slot in slots]
        return self.registers[split.warp, slots, split.leader].tolist()

    def write(self, split: Lanes, slot: int, values) -> None:
        """Writes active lanes: a value per active lane, or one for all. Slot -1 is the sink."""
        if slot >= 0:
            self.registers[split.warp, slot, split.lanes] = values

    def predicate(self, split: Lanes, code: int) -> int:
        """Mask of a predicate operand."""
        slot = code >> 1
        value = split.issued[~slot] if split.issued else self.predicates.item(split.warp, slot)
        return (~value if code & 1 else value) & 0xFFFF_FFFF

    def set_predicate(self, split: Lanes, code: int, mask: int) -> None:
        old = int(self.predicates[split.warp, code >> 1])
        self.predicates[split.warp, code >> 1] = (old & ~split.mask) | (mask & split.mask)

    def address(self, split: Lanes, arg) -> int:
        """The leader lane's address of a MemArg."""
        return self.scalar(split, arg.slot) + arg.offset

    def addresses(self, split: Lanes, arg) -> np.ndarray:
        """int64 address of every active lane."""
        return self.read(split, arg.slot)[split.lanes].astype(np.int64) + arg.offset
