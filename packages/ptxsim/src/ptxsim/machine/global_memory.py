"""Simulated global memory, in segments backed by numpy arrays, and the layout of a CTA's shared memory."""

from __future__ import annotations

import ctypes

import numpy as np

from ptxsim.frontend.ast import Var
from ptxsim.isa.address_map import GLOBAL_BASE, IN_PARAM_SPACE, PARAM_WINDOW, SHARED_START, SHORT_BASE
from ptxsim.jit.host import address_in_host

PARAMETERS = "kernel parameters"
SEGMENT_ALIGN = 1 << 20  # distance between segments, so that a stray access does not hit a neighbour
LEAST_ALIGN = 16  # bytes, of dynamic shared memory
MAX_LOCAL = 512 * 1024  # bytes of a thread (the same guide)
MAX_SHARED = 227 * 1024  # bytes a CTA can have on sm_90 and sm_100 (CUDA C++ guide, compute capabilities)
RESERVED_SMEM = Var("%reserved_smem", "shared", "b8", 32, 512, 512)  # cooperative_groups takes 288 B of it


class GlobalMemory:
    """The address space of one launch: arrays, module variables, constants, the parameter block."""

    def __init__(self, short: int = SHORT_BASE):
        """short: the first address for segments that must lie below 2^32."""
        self.rows: list[tuple[int, int, int, int]] = []
        self.arrays: list[np.ndarray] = []  # uint8 views, kept alive
        self.names: list[str] = []
        self.shapes: list[tuple[tuple[int, ...], int]] = []  # (shape, element bytes) of each array
        self._next = {False: GLOBAL_BASE, True: short}
        self.remembered: list[np.ndarray] = []  # copies of the first arrays, for `changed`

    def remember(self) -> None:
        """Remembers the contents of all arrays added so far."""
        self.remembered = self.copies()

    def changed(self) -> list[str]:
        """Names of the arrays whose contents have changed since `remember`."""
        pairs = zip(self.remembered, self.arrays)  # noqa: B905 (later arrays were not remembered)
        return [name for name, (old, new) in zip(self.names, pairs) if not np.array_equal(old, new)]  # noqa: B905

    def copies(self) -> list[np.ndarray]:
        """Copies of all arrays."""
        return [array.copy() for array in self.arrays]

    def restore(self, copies: list[np.ndarray]) -> None:
        """Restores the contents of all arrays, even read-only ones: a kernel may have written to these."""
        for array, copy in zip(self.arrays, copies, strict=True):
            if not np.array_equal(array, copy):
                ctypes.memmove(array.ctypes.data, copy.ctypes.data, copy.nbytes)

    def add(
        self,
        array: np.ndarray,
        name: str,
        logged: bool = True,
        short: bool = False,
        at: int | None = None,
        window: int = 0,
    ) -> int:
        """Maps a C-contiguous array and returns its address. The same memory is mapped only once.

        short: map it below 2^32, as parameters and constants are; window: is added to the address. at: map
        it at this address.
        """
        raw = array.reshape(-1).view(np.uint8)
        host = address_in_host(raw)
        for base, end, known, _ in self.rows:
            if known == host and end - base == raw.nbytes and raw.nbytes:
                return base
        base = self._next[short] + window if at is None else at
        if at is not None and any(at < end and base < at + raw.nbytes for base, end, _, _ in self.rows):
            raise ValueError(f"{raw.nbytes} B at address 0x{at:x} overlap {self.describe(at)}")
        self.rows.append((base, base + raw.nbytes, host, int(logged)))
        self.arrays.append(raw)
        self.names.append(name)
        self.shapes.append((array.shape, array.itemsize))
        if at is not None:
            return base
        self._next[short] += -(-max(raw.nbytes, 1) // SEGMENT_ALIGN) * SEGMENT_ALIGN + SEGMENT_ALIGN
        return base

    def replace(self, index: int, array: np.ndarray) -> None:
        """Backs a segment with other memory of the same size (uint8)."""
        base, end, _, logged = self.rows[index]
        self.rows[index] = (base, end, array.ctypes.data, logged)
        self.arrays[index] = array

    def table(self) -> np.ndarray:
        """The segments as int64 (segments, 4), for the main loop."""
        return np.array(self.rows or [(0, 0, 0, 0)], dtype=np.int64)

    def find(self, address: int, size: int = 1) -> int | None:
        """Index of the segment holding [address, address + size)."""
        for i, (base, end, _, _) in enumerate(self.rows):
            if base <= address and address + size <= end:
                return i
        return None

    def logged(self, address: int) -> bool:
        """Whether accesses there are logged: not those to parameters and constants."""
        i = self.find(address)
        return i is not None and bool(self.rows[i][3])

    def view(self, address: int, size: int) -> np.ndarray | None:
        """uint8 view of [address, address + size), or None if that is not within one segment."""
        i = self.find(address, size)
        if i is None:
            return None
        start = address - self.rows[i][0]
        return self.arrays[i][start : start + size]

    def describe(self, address: int, straddles: bool = False) -> str:
        """`A + 4096 B`, or the nearest buffer and by how much the address misses it. straddles: other
        lanes of the access are inside the buffer.
        """
        best = None
        rows = zip(self.rows, self.names, self.shapes, strict=True)
        for (base, end, *_), name, shape in rows:
            if base <= address < end:
                return f"{name} + {address - base} B"
            distance = base - address if address < base else address - end
            if name != PARAMETERS and distance < SEGMENT_ALIGN and (best is None or distance < best[0]):
                side = (
                    f"{distance} B before {name}"
                    if address < base
                    else _past(name, distance, straddles, *shape)
                )
                best = (distance, side)
        parameter = self.find(address + PARAM_WINDOW)
        if parameter is not None:
            return f"{self.names[parameter]} {IN_PARAM_SPACE}"
        if best is None and 0 <= address < SEGMENT_ALIGN:
            return f"null + {address} B" if address else "null"
        return best[1] if best else f"address 0x{address & (2**64 - 1):x}, which no buffer holds"


class Before:
    """Copies of the arrays before a launch, to see whether it changes any; none if over MOST bytes."""

    MOST = 1 << 26

    def __init__(self, memory: GlobalMemory):
        self.memory = memory
        small = sum(array.nbytes for array in memory.arrays) <= self.MOST
        self.copies = memory.copies() if small and memory.arrays else None

    def nothing_changed(self) -> bool:
        """Whether all arrays are unchanged; False if that is not known."""
        if self.copies is None:
            return False
        pairs = zip(self.copies, self.memory.arrays, strict=True)
        return all(np.array_equal(old, new) for old, new in pairs)


def _past(name: str, distance: int, straddles: bool, shape: tuple[int, ...], size: int) -> str:
    """`row 384 of A, which has 384 rows`; in bytes if the array is no matrix. If part of the access is inside
    and the rest less than a row past the end, the column index may be too large instead: then gives both.
    """
    where = f"{distance} B past the end" if distance else "just past the end"
    if len(shape) != 2 or not shape[1]:
        return f"{where} of {name}"
    (rows, columns), over = shape, distance // size
    if straddles and over < columns:
        places = f"{name}[{rows - 1}, {columns + over}] or {name}[{rows}, {over}]"
        return f"{places}, and {name} is {rows} x {columns} ({where})"
    return f"row {shape[0] + distance // (shape[1] * size)} of {name}, which has {shape[0]} rows ({where})"


def shared_variables(program, module, under_dynamic: bool = False) -> list[Var]:
    """The shared variables of a kernel in the order in which ptxas 13.0 lays them out: what it names, its own
    before the module's, then what it declares and does not name. Dynamic shared memory lies over the latter;
    under_dynamic: includes them nevertheless.
    """
    own = [var for var in program.function.vars if var.space == "shared"]
    known = [*own, *(var for var in module.vars.values() if var.space == "shared")]
    named = [var for var in known if var.name in program.slots.named]
    over = any(var.extern for var in named) and not under_dynamic
    return named if over else named + [var for var in own if var not in named]


def shared_layout(variables: list, dynamic_bytes: int) -> tuple[dict[str, int], int, int]:
    """Window offsets of shared variables, as ptxas 13.0 lays them out: static ones in this order, then the
    dynamic part, which is aligned as the external ones ask, and no better.

    Returns (offset per name, offset of the dynamic part, end of the window). Raises ValueError if the total
    is too large.
    """
    offsets, end = {}, SHARED_START
    for var in sorted(variables, key=lambda var: var.extern):  # several external ones: each aligned by itself
        if var is not RESERVED_SMEM:
            align = max(var.align or 1, LEAST_ALIGN if var.extern else 1)
            offsets[var.name] = end = -(-end // align) * align
            end += 0 if var.extern else var.size
    dynamic = -(-end // LEAST_ALIGN) * LEAST_ALIGN
    end = dynamic + dynamic_bytes if dynamic_bytes else end
    if end - SHARED_START > MAX_SHARED:
        raise ValueError(f"{end - SHARED_START} B of shared memory; a CTA has at most {MAX_SHARED}")
    if RESERVED_SMEM in variables:  # lies below the others on a chip
        offsets[RESERVED_SMEM.name] = end = -(-end // RESERVED_SMEM.align) * RESERVED_SMEM.align
        end += RESERVED_SMEM.size
    return offsets, dynamic, end
