"""ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5.15 - .17): matrices between shared memory and a warp.

A row is 16 bytes; thread r of the warp gives the address of row r. The forms with 8-bit elements and with
packed 4- and 6-bit rows (sm_100a) follow the thread-value layouts that CuTe publishes; they have not been
verified on a chip.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ptxsim.isa.address_map import SPACE_GENERIC, SPACE_SHARED
from ptxsim.isa.layouts.fragments import ldmatrix as half_layout
from ptxsim.isa.layouts.fragments import movmatrix as transpose_layout
from ptxsim.isa.number_formats import unpack_bits
from ptxsim.jit.called import ParameterBlock
from ptxsim.machine.checked_access import own_offsets, tell_own
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.registry import FastForm, always, refuse, slots_of, unit
from ptxsim.units.warp import require_aligned
from ptxsim.units.warp_matrices import load_rows, matrix_words, store_rows

ROW = 16  # bytes
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_SPACES = {"shared", "shared::cta"}
_PACKED = {"b4x16_p64": 4, "b6x16_p32": 6}  # source format -> bits of an element


@dataclass(frozen=True)
class MatrixForm:
    """The decoded modifiers of an ldmatrix or stmatrix."""

    shape: str  # "m8n8", "m16n16", "m8n16" or "m16n8"
    count: int  # matrices
    transpose: bool
    width: int  # bytes of an element in registers
    packed: int  # bits of an element in memory, 0 if elements are not packed

    @property
    def rows(self) -> int:
        """Number of 16-byte rows in memory, over all matrices."""
        return self.count * (16 if self.shape == "m16n16" else 8)

    @property
    def registers(self) -> int:
        return self.count * (2 if self.shape == "m16n16" else 1)


def decode_form(instr) -> MatrixForm:
    """The form of an ldmatrix or stmatrix; raises PtxError for a wrong number of registers."""
    shape = next(m for m in instr.mods if m[0] == "m")
    count = next(_COUNTS[m] for m in instr.mods if m in _COUNTS)
    packed = next((_PACKED[m] for m in instr.mods if m in _PACKED), 0)
    form = MatrixForm(shape, count, "trans" in instr.mods, 2 if "b16" in instr.mods else 1, packed)
    vector = instr.operands[0 if instr.op == "ldmatrix" else 1]
    registers = len(vector.items) if hasattr(vector, "items") else 1
    if registers != form.registers:
        raise refuse(instr, f"{instr.name} takes {form.registers} registers, not {registers}")
    return form


@lru_cache(maxsize=32)
def places(form: MatrixForm) -> np.ndarray:
    """The place in memory of each element of the registers: int64[32, elements], in elements from row 0."""
    if form.shape == "m8n8":
        matrix, row, column = half_layout(form.count, form.transpose)
        return (matrix * 8 + row) * 8 + column
    lane, byte = np.arange(32)[:, None], np.arange(form.registers * 4)[None, :]
    register, inside = byte // 4, byte % 4
    if form.shape == "m16n16":  # register 2i + h: column lane / 4 + 8h of rows 4 * (lane % 4) ..
        row = 16 * (register // 2) + lane % 4 * 4 + inside
        column = lane // 4 + 8 * (register % 2)
    elif form.shape == "m8n16":
        row, column = 8 * register + lane // 4, lane % 4 * 4 + inside
    else:  # m16n8, stored transposed: bytes 0, 1 are row lane / 4, bytes 2, 3 are 8 further down
        row, column = 8 * register + lane % 4 * 2 + inside % 2, lane // 4 + 8 * (inside // 2)
    return row * ROW + column


def row_offsets(
    cluster: Cluster, split: Split, arg, count: int, space: str, stored=None
) -> np.ndarray | None:
    """Window offsets of `count` rows, whose addresses the first lanes give; None, with a finding, if an
    address is not legal. Reports the accesses to observers.

    stored: uint8 (count, 16), the bytes to be written there, or None for a load.
    """
    addresses = cluster.read(split, arg.slot)[:count].astype(np.int64) + arg.offset
    offsets = own_offsets(cluster, split, addresses, ROW, space)
    if offsets is not None:
        tell_own(cluster, split, np.arange(count), offsets, ROW, stored)
    return offsets


def _fast_matrix(instr, args: tuple, unset) -> ParameterBlock | None:
    form = decode_form(instr)
    if form.packed:
        return None
    address, registers = args[::-1] if instr.op == "ldmatrix" else args
    space = SPACE_SHARED if _SPACES & set(instr.mods) else SPACE_GENERIC
    at = places(form) * form.width
    return ParameterBlock(
        *matrix_words(space, form.rows, ROW, at, form.width, slots_of(registers), address), 0
    )


@unit(
    "ldmatrix .sync.aligned.m8n8.num{.trans}{.own}.b16 r, [p]",
    "ldmatrix .sync.aligned.m16n16.few.trans{.own}.b8 r, [p]",
    "ldmatrix .sync.aligned.m16n16.few.trans{.own}.b8x16.packed r, [p]",
    "ldmatrix .sync.aligned.m8n16.num{.own}.b8x16.packed r, [p]",
    num="x1 x2 x4",
    few="x1 x2",
    packed="b4x16_p64 b6x16_p32",
    writes=(0,),
    section="9.7.14.5.15",
    fast=FastForm(_fast_matrix, called=load_rows),
)
def load_matrix(instr):
    form = decode_form(instr)
    space = next((m for m in instr.mods if m in _SPACES), "generic")
    index, element = places(form), f"u{form.width}"

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        targets = list(slots_of(args[0]))
        offsets = row_offsets(cluster, split, args[1], form.rows, space)
        if offsets is None:
            cluster.registers[split.warp, targets] = 0
            return
        rows = cluster.shared[split.cta].view(np.complex128)[offsets >> 4].view(np.uint8).reshape(-1, ROW)
        if form.packed:
            rows = unpack_bits(rows[:, : 2 * form.packed], form.packed)
        values = rows.reshape(-1).view(element)[index]
        cluster.registers[split.warp, targets] = values.view(np.uint32).T

    return run


@unit(
    "stmatrix .sync.aligned.m8n8.num{.trans}{.own}.b16 [p], r",
    "stmatrix .sync.aligned.m16n8.num.trans{.own}.b8 [p], r",
    num="x1 x2 x4",
    section="9.7.14.5.16",
    fast=FastForm(_fast_matrix, called=store_rows),
)
def store_matrix(instr):
    form = decode_form(instr)
    space = next((m for m in instr.mods if m in _SPACES), "generic")
    index, element = places(form), f"u{form.width}"

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        sources = list(slots_of(args[1]))
        rows = np.empty(form.rows * ROW // form.width, element)
        registers = np.ascontiguousarray(cluster.registers[split.warp, sources].astype(np.uint32).T)
        rows[index] = registers.view(element)
        offsets = row_offsets(cluster, split, args[0], form.rows, space, rows.view(np.uint8).reshape(-1, ROW))
        if offsets is not None:
            cluster.shared[split.cta].view(np.complex128)[offsets >> 4] = rows.view(np.complex128)

    return run


@unit("movmatrix .sync.aligned.m8n8.trans.b16 d, a", writes=(0,), section="9.7.14.5.17")
@always
def move_matrix(cluster: Cluster, split: Split, args):
    require_aligned(cluster, split)
    halves = np.ascontiguousarray(cluster.read(split, args[1]).astype(np.uint32)).view(np.uint16)
    moved = np.ascontiguousarray(halves.reshape(32, 2)[transpose_layout()])
    cluster.registers[split.warp, args[0]] = moved.view(np.uint32)[:, 0]
