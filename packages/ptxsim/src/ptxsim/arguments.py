"""Turns the arguments of a launch into its parameter block, and maps the arrays that they point to."""

from __future__ import annotations

import copy
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from ptxsim.frontend.ast import Var
from ptxsim.isa.address_map import PARAM_WINDOW
from ptxsim.machine.global_memory import PARAMETERS
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.units.tensormap import encoded

_FLOATS: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


class Frozen:
    """Copies of the arguments that are read-only, as a file mapped with mode "r" is."""

    def __init__(self) -> None:
        self.copies: dict[tuple, tuple[str, np.ndarray, np.ndarray]] = {}
        self.writable: list[np.ndarray] = []  # the other arguments

    def know(self, values: Iterable) -> None:
        """Notes which arguments can be written to, of arrays, tensor maps and others."""
        arrays = (value.array if isinstance(value, TensorMap) else value for value in values)
        self.writable += [a for a in arrays if isinstance(a, np.ndarray) and a.flags.writeable]

    def copy(self, array: np.ndarray, name: str) -> np.ndarray:
        """The array that the kernel gets: itself if it can be written to, or is a view of one that can."""
        if array.flags.writeable or any(np.may_share_memory(array, other) for other in self.writable):
            return array
        key = array.ctypes.data, array.shape, array.dtype.str
        return self.copies.setdefault(key, (name, array, array.copy()))[2]

    def unchanged(self) -> None:
        """Raises ValueError if the kernel has written to one of them."""
        for name, array, copied in self.copies.values():
            before, after = (one.reshape(-1).view(np.uint8) for one in (array, copied))
            if not np.array_equal(before, after):
                raise ValueError(f"{name} is read-only, but the kernel writes to it: pass numpy.array(x)")


class Arguments:
    """Binds the arguments of one launch (ptxsim.launch.Launch)."""

    def __init__(self, launch):
        self.launch, self.memory, self.program = launch, launch.memory, launch.program

    def bind(self, args: list | bytes) -> dict[str, int]:
        """Fills the parameter block; returns the address of each parameter by name.

        A single bytes object of at least the block's size is the whole block, as a driver passes it on.
        """
        params = self.program.function.params
        offsets, end = param_layout(params)
        block = np.zeros(max(end, 16), np.uint8)
        base = self.memory.add(block, PARAMETERS, logged=False, short=True, window=PARAM_WINDOW)
        if isinstance(args, bytes):
            if len(args) < end:
                raise ValueError(f"{self.program.name} takes {end} bytes of arguments (got {len(args)})")
            block[:end] = np.frombuffer(args, np.uint8, end)
        elif len(args) != len(params):
            raise ValueError(f"{self.program.name} takes {len(params)} arguments (got {len(args)})")
        else:
            for i, (param, offset, arg) in enumerate(zip(params, offsets, args, strict=True)):
                data = self._argument(i, param, arg, base + offset)
                block[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        return {param.name: base + offset for param, offset in zip(params, offsets, strict=True)}

    def _name(self, number: int) -> str:
        names = self.launch.arg_names
        return names[number] if number < len(names) else f"argument {number}"

    def _argument(self, number: int, param: Var, arg, address: int) -> bytes:
        """The bytes of one argument, which will be stored at `address`."""
        if isinstance(arg, TensorMap):
            return self._map(number, param, arg, address)
        if isinstance(arg, np.ndarray):
            if param.size < 8:
                raise ValueError(f"argument {number} is an array, but {param.name} is a .{param.type}")
            if not arg.flags.c_contiguous:
                raise ValueError(f"argument {number} is not C-contiguous: pass numpy.ascontiguousarray(x)")
            if arg.dtype.hasobject or arg.dtype.kind in "USMm":
                raise ValueError(f"argument {number} is an array of {arg.dtype}, which no kernel reads")
            self.launch.arrays[self._name(number)] = arg = self.launch.frozen.copy(arg, self._name(number))
            return struct.pack("<Q", self.memory.add(arg, self._name(number)))
        if isinstance(arg, list):
            return self._struct(number, param, arg, address)
        if isinstance(arg, bytes):
            if len(arg) != param.size:
                raise ValueError(f"argument {number} has {len(arg)} bytes, {param.name} has {param.size}")
            return arg
        return _scalar_bytes(number, param, arg)

    def _map(self, number: int, param: Var, arg: TensorMap, address: int) -> bytes:
        if param.size < 128:
            raise ValueError(f"argument {number} is a TensorMap, but {param.name} is no 128-byte parameter")
        name = arg.name or self._name(number)
        self.launch.arrays[name] = array = self.launch.frozen.copy(arg.array, name)
        base = self.memory.add(array, name)
        self.launch.maps[address] = copy.copy(arg)
        self.launch.maps[address].segment = self.memory.find(base)
        return encoded(arg, base)

    def _struct(self, number: int, param: Var, fields: list, address: int) -> bytes:
        """The bytes of a struct parameter, given as [(offset in bytes, array, TensorMap or scalar) ..]."""
        data = bytearray(param.size)
        if not all(
            isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], int) for each in fields
        ):
            raise ValueError(
                f"argument {number} is a list: of (offset, value) for a struct, else a numpy array"
            )
        for offset, value in fields:
            if not isinstance(value, np.ndarray | np.generic | TensorMap | bytes):
                raise ValueError(
                    f"argument {number}: a struct holds numpy arrays, TensorMaps, numpy scalars and bytes"
                )
            inner = Var("", "param", "b8", 1, 0, _size(value))
            field = self._argument(number, inner, value, address + offset)
            if offset < 0 or offset + len(field) > param.size:
                raise ValueError(
                    f"argument {number} has a field at {offset}, but {param.name} has {param.size} bytes"
                )
            data[offset : offset + len(field)] = field
        return bytes(data)


def _size(value) -> int:
    """The size in bytes of a struct's field."""
    if isinstance(value, TensorMap | np.ndarray):
        return 128 if isinstance(value, TensorMap) else 8  # a pointer
    return len(value) if isinstance(value, bytes) else value.itemsize


def param_layout(params: list[Var]) -> tuple[list[int], int]:
    """(offset of each parameter, total bytes)."""
    offsets, end = [], 0
    for param in params:
        align = max(param.align or 1, 1)
        end = -(-end // align) * align
        offsets.append(end)
        end += param.size
    return offsets, end


def _scalar_bytes(number: int, param: Var, arg) -> bytes:
    if isinstance(arg, np.generic):
        data = arg.tobytes()
    elif isinstance(arg, bool | int):
        if not -(1 << 8 * param.size - 1) <= arg < 1 << 8 * param.size:
            raise ValueError(f"argument {number}, {arg}, does not fit {param.name}, which has {param.size} B")
        data = (int(arg) & ((1 << 8 * param.size) - 1)).to_bytes(param.size, "little")
    elif isinstance(arg, float) and param.type in _FLOATS:
        data = _FLOATS[param.type](arg).tobytes()
    else:
        raise ValueError(
            f"argument {number} of type {type(arg).__name__} does not fit parameter {param.name}, "
            f"a .{param.type} (a pointer takes a numpy array)"
        )
    if len(data) != param.size:
        raise ValueError(f"argument {number} has {len(data)} bytes, {param.name} has {param.size}")
    return data
