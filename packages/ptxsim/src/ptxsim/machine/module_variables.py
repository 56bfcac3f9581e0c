"""Variables of a module in global and constant memory, whose contents persist from launch to launch.

Each keeps its address for the life of the module, so that a pointer stored by one launch is valid in the
next. `variables["name"]` is a numpy array of the variable's memory; writing into it sets the variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import ml_dtypes
import numpy as np

from ptxsim.frontend.ast import Module, Var
from ptxsim.isa.address_map import SHORT_BASE
from ptxsim.machine.global_memory import SEGMENT_ALIGN

VARIABLE_BASE = 0x7800_0000_0000  # above all arrays of a launch
_DTYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "bf16": ml_dtypes.bfloat16, "pred": "u1"}


class Variables(Mapping):
    """Name -> numpy array of the variable's memory, in its declared type (uint8, int32, float32 ..)."""

    def __init__(self, module: Module):
        self._vars = {v.name: v for v in module.vars.values() if v.space in ("global", "const")}
        self._memory: dict[str, np.ndarray] = {}  # of the variables used so far
        self._given: set[str] = set()  # names whose memory came from outside
        self.addresses = self._addresses()
        self._function = module.address_of
        self.kept: dict[str, None] = {}  # to which an earlier launch may have left pointers in memory

    def _addresses(self) -> dict[str, int]:
        found, following = {}, {"global": VARIABLE_BASE, "const": SHORT_BASE}
        for var in self._vars.values():
            found[var.name] = following[var.space]
            following[var.space] += -(-max(var.size, 1) // SEGMENT_ALIGN) * SEGMENT_ALIGN + SEGMENT_ALIGN
        self.parameters = following["const"]  # the first address after the constants
        return found

    def __getitem__(self, name: str) -> np.ndarray:
        raw, var = self.raw(name), self._vars[name]
        return raw[: var.size].view(_dtype(var))

    def __setitem__(self, name: str, value) -> None:
        self[name][...] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._vars)

    def __len__(self) -> int:
        return len(self._vars)

    def is_constant(self, name: str) -> bool:
        return self._vars[name].space == "const"

    def size(self, name: str) -> int:
        """Size of a variable in bytes."""
        return self._vars[name].size

    def raw(self, name: str) -> np.ndarray:
        """uint8 view of a variable's memory, at least one byte; raises KeyError for an unknown name."""
        if name not in self._memory:
            self._memory[name] = np.zeros(max(self._vars[name].size, 1), np.uint8)
            self._initialise(name)
        return self._memory[name]

    def place(self, name: str, memory: np.ndarray, address: int) -> None:
        """Gives a variable this memory (uint8) at this address. Call it before the first launch."""
        self._memory[name], self.addresses[name] = memory, address
        self._given.add(name)

    def reset(self) -> None:
        """Resets every variable to the initial value in the module's text."""
        self._memory = {name: raw for name, raw in self._memory.items() if name in self._given}
        for name in self._memory:
            self._initialise(name)

    def used_by(self, names: Iterable[str]) -> list[str]:
        """The variables among `names`, and all variables whose addresses their initial values contain."""
        left, found = list(names), {}
        while left:
            var = self._vars.get(left.pop())
            if var is not None and var.name not in found:
                found[var.name] = True
                left += [symbol.name for _, symbol in var.relocs]
        return list(found)

    def _initialise(self, name: str) -> None:
        var, memory = self._vars[name], self._memory[name]
        memory[:] = 0
        if var.init is None:
            return
        data = bytearray(var.init)
        item = var.size // var.count
        for offset, symbol in var.relocs:
            start = self.addresses.get(symbol.name) or self._function(symbol.name) or 0
            value = _masked(start + symbol.offset, symbol.mask)
            data[offset : offset + item] = value.to_bytes(8, "little")[:item].ljust(item, b"\0")
        memory[: len(data)] = np.frombuffer(bytes(data), np.uint8)


def _masked(address: int, mask: int | None) -> int:
    """The address; with a mask, as in `0xFF00(name)`, its bits there, from bit 0 on (PTX ISA 5.4.4)."""
    return address if mask is None else (address & mask) >> max(0, (mask & -mask).bit_length() - 1)


def _dtype(var: Var) -> np.dtype:
    """The numpy dtype of a variable's PTX type; uint8 for types that numpy does not have."""
    if var.type in _DTYPES:
        return np.dtype(_DTYPES[var.type])
    kind, bits = {"s": "i", "u": "u", "b": "u"}.get(var.type[0]), var.type[1:]
    return np.dtype(f"{kind}{int(bits) // 8}") if kind and bits in ("8", "16", "32", "64") else np.dtype("u1")
