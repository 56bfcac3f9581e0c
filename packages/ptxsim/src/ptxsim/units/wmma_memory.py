"""wmma.load and wmma.store (PTX ISA 9.7.14.4.2 - .4): fragments of a matrix between memory and a warp.

A matrix is a sequence of *lines* (rows with .row, columns with .col) that start `stride` elements apart.
Lines move in chunks of up to 16 bytes. The ISA does not specify which thread accesses which chunk, so the
access log uses an assignment that few programs would rely on: lane 31 - i has chunk i.

Lines must be aligned to the size of a fragment (9.7.14.4.2), and the CUDA C++ Programming Guide requires a
stride of a multiple of 16 bytes (warp matrix functions). So a line that is not aligned to the smaller of the
two is an `error`; a start that is aligned to 16 bytes but not to the 32 of its fragment is a `review`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ptxsim.isa.address_map import FAULT_BOUNDS, SPACE_GENERIC, SPACE_GLOBAL, SPACE_LOCAL, SPACES
from ptxsim.isa.layouts.wmma import wmma_fragment
from ptxsim.jit.called import ParameterBlock
from ptxsim.jit.translate import resolve
from ptxsim.machine.checked_access import log_rows, own_offsets, tell_own
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.mma_form import sizes_of
from ptxsim.units.registry import FastForm, refuse, slots_of, unit
from ptxsim.units.warp import require_aligned, require_set
from ptxsim.units.warp_matrices import load_rows, matrix_words, store_rows
from ptxsim.units.wmma import ELEMENT_BITS, WIDE, registers_for

CHUNK = 16  # bytes at most
MOST_ADDRESS = (1 << 63) - 1  # beyond it is no memory
_RAW = {4: np.uint32, 8: np.uint64, 16: np.complex128}  # a chunk as one element


@dataclass(frozen=True)
class Storage:
    """The layout of one matrix in memory, in lines."""

    bits: int  # of an element of the matrix
    line: int  # bytes of a line
    fragment: int  # bytes of a thread's fragment
    chunk: int  # bytes
    line_of: np.ndarray  # int64 (chunks,): line of a chunk; the first chunks of all lines come first
    byte_of: np.ndarray  # int64 (chunks,): byte offset of a chunk in its line
    word: int  # bytes of an element, or 4 if elements are smaller than a byte
    index: np.ndarray  # int64 (32, words): index of each word of a fragment among the words of all chunks


@lru_cache(maxsize=128)
def storage(which: str, shape: tuple[int, int, int], kind: str, by_column: bool) -> Storage:
    """The Storage of matrix "a", "b" or "c" with elements of a type, stored by rows or by columns."""
    m, n, k = shape
    bits = ELEMENT_BITS[kind]
    row, column = wmma_fragment(which, shape, bits, copies=kind == "f16" and which != "c")
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[which]
    lines, length = (columns, rows) if by_column else (rows, columns)
    number, place = (column, row) if by_column else (row, column)
    line, fragment = length * bits // 8, registers_for(which, shape, kind) * max(4, bits // 8)
    chunk = min(CHUNK, fragment, line)
    starts = np.arange(0, line, chunk)
    packed = 32 // bits if bits < 8 else 1  # elements of a word
    word = bits * packed // 8
    byte = place[:, ::packed] // packed * word  # in the line
    index = ((byte // chunk * lines + number[:, ::packed]) * chunk + byte % chunk) // word
    line_of, byte_of = np.tile(np.arange(lines), len(starts)), np.repeat(starts, lines)
    return Storage(bits, line, fragment, chunk, line_of, byte_of, word, index)


@dataclass(frozen=True)
class FragmentAccess:
    """One wmma.load or wmma.store of a program."""

    form: Storage
    space: str  # as spelled, "" for generic
    store: bool
    name: str

    @classmethod
    def of(cls, instr, which: str, store: bool) -> FragmentAccess:
        """The access of an instruction; raises PtxError for a wrong number of registers."""
        kind = next(m for m in instr.mods if m in ELEMENT_BITS)
        shape = sizes_of(instr)
        vector = instr.operands[1 if store else 0]
        given, needed = len(getattr(vector, "items", (vector,))), registers_for(which, shape, kind)
        if given != needed:
            raise refuse(instr, f"a fragment of this shape and type has {needed} registers, not {given}")
        space = next((m for m in instr.mods if m in SPACES), "")
        form = storage(which, shape, kind, "col" in instr.mods)
        return cls(form, space, store, f"wmma.{'store' if store else 'load'}.{instr.mods[1]}")

    def memory(
        self, cluster: Cluster, split: Split, args, stored=None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """(memory as chunks, numbers of the matrix's chunks in it); None, with a finding, if the matrix is
        not at a legal place.

        args: address and, if given, stride. stored: the chunks to be written, uint8 (chunks, bytes).
        """
        start, step = self._start_and_step(cluster, split, *args)
        if not self._fits(cluster, split, start, step):
            return None
        if start > MOST_ADDRESS:
            cluster.reporter.fault(split, FAULT_BOUNDS, start, len(self.form.line_of))
            return None
        addresses = start + self.form.line_of * step + self.form.byte_of
        space, _ = resolve(SPACES.get(self.space, SPACE_GENERIC), start)
        if space == SPACE_LOCAL:
            message = f"{self.name}: the matrix is in local memory, where each thread has its own"
            hint = "it must be in shared or global memory"
            cluster.reporter.add("illegal", "error", message, hint, split, key="wmma local")
            return None
        find = self._in_global if space == SPACE_GLOBAL else self._in_shared
        return find(cluster, split, addresses, stored)

    def _start_and_step(self, cluster: Cluster, split: Split, address, stride=None) -> tuple[int, int]:
        """(address of the first line, bytes from one to the next)."""
        start = self._one(cluster, split, address.slot, "address") + address.offset
        if stride is None:
            return start, self.form.line
        return start, (self._one(cluster, split, stride, "stride") & 0xFFFF_FFFF) * self.form.bits // 8

    def _one(self, cluster: Cluster, split: Split, slot: int, what: str) -> int:
        """An operand that must be the same in all threads (9.7.14.4.3); adds a finding if it is not."""
        values = cluster.read(split, slot)[split.lanes]
        others = split.lanes[values != values[0]]
        if len(others):
            message = f"{self.name} takes one {what} for the whole warp; lane {others[0]}'s differs from "
            message += f"lane {split.leader}'s"
            hint = "the address must be that of the matrix, not of a thread's part of it"
            cluster.reporter.add("collective", "error", message, hint, split, key=f"wmma {what}")
        return int(values[0])

    def _fits(self, cluster: Cluster, split: Split, start: int, step: int) -> bool:
        """Whether start and stride are legal; adds a finding if they are not."""
        report, line = cluster.reporter.add, self.form.line
        needed = min(CHUNK, self.form.fragment)
        by = min(start & -start or CHUNK, CHUNK)
        if start % needed or step % needed:
            message = f"{self.name}: the matrix starts at a multiple of {by} B and its lines are {step} B "
            message += f"apart; both must be multiples of {needed} B"
            hint = "the stride (ldm) counts elements: 8 of 2 bytes make 16 B, or 4 of 4 bytes"
            report("misaligned", "error", message, hint, split, key="wmma")
            return False
        if start % self.form.fragment:
            message = f"{self.name}: the matrix starts at a multiple of {by} B, not of the "
            message += f"{self.form.fragment} B of a fragment"
            report("misaligned", "review", message, "known chips accept 16 B", split, key="wmma start")
        if self.store and step < line:
            message = f"{self.name}: lines of {line} B that are {step} B apart overlap"
            report("illegal", "error", message, "the stride (ldm) is too small", split, key="wmma lines")
        return True

    def _in_shared(self, cluster: Cluster, split: Split, addresses: np.ndarray, stored):
        size = self.form.chunk
        offsets = own_offsets(cluster, split, addresses, size, self.space)
        if offsets is None:
            return None
        tell_own(cluster, split, _lanes(addresses), offsets, size, stored)
        return _chunks(cluster.shared[split.cta], size), offsets // size

    def _in_global(self, cluster: Cluster, split: Split, addresses: np.ndarray, stored):
        memory, size, lanes = cluster.launch.memory, self.form.chunk, _lanes(addresses)
        number = memory.find(int(addresses[0]))
        base, end, _, logged = memory.rows[number] if number is not None else (0, 0, 0, 0)
        outside = np.flatnonzero((addresses < base) | (addresses + size > end))
        if len(outside):
            where, first = split.at(1 << int(lanes[outside[0]])), int(addresses[outside[0]])
            cluster.reporter.fault(where, FAULT_BOUNDS, first, len(outside))
            return None
        if cluster.bus.heard and logged:
            cluster.bus.accesses(cluster, log_rows(split, lanes, addresses, size, self.store))
        assert number is not None  # otherwise all chunks would be out of bounds
        return _chunks(memory.arrays[number], size), (addresses - base) // size


def _lanes(addresses: np.ndarray) -> np.ndarray:
    """The lane that accesses each chunk in the access log."""
    return 31 - np.arange(len(addresses)) % 32


def _chunks(memory: np.ndarray, size: int) -> np.ndarray:
    return memory[: len(memory) // size * size].view(_RAW[size])


def _boxes(name: str, types: str, operands: str, sides: str = "side") -> list[str]:
    """Syntax boxes of A or B: all shapes and types, then those with elements smaller than a byte."""
    head = f"{name} .sync.aligned"
    return [
        *(f"{head}.side.{shape}{{.ss}}.{kind} {operands}" for shape, kind in (
            ("wide", types), ("m16n16k8", "tf32"), ("m8n8k4", "f64"))),
        *(f"{head}.{sides}.{shape}{{.ss}}.{kind} {operands}" for shape, kind in (
            ("m8n8k32", "four"), ("m8n8k128", "b1"))),
    ]  # fmt: skip


def _result_boxes(name: str, operands: str) -> list[str]:
    shapes = (("wide", "sums"), ("m16n16k8", "f32"), ("m8n8k4", "f64"), ("small", "s32"))
    return [f"{name} .sync.aligned.side.{shape}{{.ss}}.{kind} {operands}" for shape, kind in shapes]


_SETS: dict[str, Any] = {
    "side": "row col",
    "wide": WIDE,
    "small": "m8n8k32 m8n8k128",
    "factors": "f16 bf16 s8 u8",
    "four": "s4 u4",
    "sums": "f16 f32 s32",
    "ss": "global shared shared::cta",
}


def _fast_fragment(instr, args: tuple, unset) -> ParameterBlock:
    store = instr.mods[0] == "store"
    access = FragmentAccess.of(instr, "c" if store else instr.mods[1], store)
    form, registers, address = access.form, slots_of(args[store]), args[not store]
    space = SPACES.get(access.space, SPACE_GENERIC)
    places = (space, len(form.line_of), form.chunk, form.index * form.word, form.word)
    stride = args[2] if len(args) > 2 else -1
    lines = (form.line_of, form.byte_of, form.line, stride, form.fragment, form.bits)
    return ParameterBlock(*matrix_words(*places, registers, address), *lines)


@unit(
    *_boxes("wmma.load.a", "factors", "r, [p]{, stride}", "row"),
    *_boxes("wmma.load.b", "factors", "r, [p]{, stride}", "col"),
    *_result_boxes("wmma.load.c", "r, [p]{, stride}"),
    **_SETS,
    writes=(0,),
    section="9.7.14.4.3",
    fast=FastForm(_fast_fragment, called=load_rows),
)
def load(instr):
    access = FragmentAccess.of(instr, instr.mods[1], store=False)
    word, index = access.form.word, access.form.index

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        targets = list(slots_of(args[0]))
        found = access.memory(cluster, split, args[1:])
        if found is None:
            cluster.registers[split.warp, targets] = 0
            return
        memory, numbers = found
        words = np.ascontiguousarray(memory[numbers]).view(np.uint8).view(f"u{word}")[index]
        cluster.registers[split.warp, targets] = words.view(f"u{max(4, word)}").T

    return run


@unit(
    *_result_boxes("wmma.store.d", "[p], r{, stride}"),
    **_SETS,
    section="9.7.14.4.4",
    fast=FastForm(_fast_fragment, called=store_rows),
)
def store(instr):
    access = FragmentAccess.of(instr, "c", store=True)
    form = access.form

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        sources = list(slots_of(args[1]))
        if cluster.bus.heard:
            require_set(cluster, split, sources)
        held = np.ascontiguousarray(cluster.registers[split.warp, sources].T).astype(f"u{max(4, form.word)}")
        words = np.empty(form.chunk * len(form.line_of) // form.word, f"u{form.word}")
        words[form.index] = held.view(words.dtype)
        chunks = words.view(np.uint8).reshape(-1, form.chunk)
        found = access.memory(cluster, split, (args[0], *args[2:]), chunks)
        if found is not None:
            memory, numbers = found
            memory[numbers] = words.view(memory.dtype)

    return run
