"""Shared-memory operands of tcgen05.mma must start where their descriptor says that the swizzle pattern
starts.

PTX ISA 9.7.16.4.1: a swizzle pattern repeats every 1024, 512 or 256 B; a matrix that does not start at the
first row of a pattern needs the matrix base offset in its descriptor. 9.7.16.5.1: bits 46-48 are 0b001. If
TMA wrote the operand with the same swizzle, both units take the pattern from the address itself: this
violates PTX, but the data is right.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.isa.layouts.descriptors import decode_matrix_descriptor, fixed_bits
from ptxsim.isa.layouts.swizzle import Mode
from ptxsim.report.findings import Reporter

_ROWS = {128: 8, "128_atom32": 8, 64: 4, 32: 2}  # 128-byte rows of a pattern, by swizzle mode


class Descriptors(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter
        self.known: set[int] = set()
        self.boxes: dict[int, tuple[int, Mode]] = {}  # offset -> (bytes, swizzle) of what TMA loads there

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> None:
        if copy.kind == "load":
            self.boxes[copy.offset] = copy.size, copy.tensor.swizzle

    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        for bits in work.footprint.descriptors:
            if bits not in self.known:
                self.known.add(bits)
                self._check(split, bits)

    def _loaded_so(self, start: int, swizzle) -> bool:
        """Whether TMA wrote the data at `start` with the same swizzle."""
        return any(at <= start < at + size and swizzle == mode for at, (size, mode) in self.boxes.items())

    def _check(self, split: Split, bits: int) -> None:
        try:
            fields = decode_matrix_descriptor(bits)
        except ValueError:
            return  # reported where the operand is read
        if fixed_bits(bits) == 0:
            self._unmarked(split, bits)
        rows = _ROWS.get(fields.swizzle)
        if rows is None:
            return
        row = (fields.start >> 7) % rows
        if row == fields.base % rows:
            return
        exact = not fields.base and self._loaded_so(fields.start, fields.swizzle)
        why = "TMA wrote it with the same swizzle, so that known chips read it right; " if exact else ""
        self.reporter.add(
            "misaligned",
            "review" if exact else "error",
            f"the MMA reads {self.reporter.shared_name(fields.start)} with a {rows * 16} B swizzle, but its "
            f"address is {row * 128} B past a multiple of {rows * 128} B: "
            f"{why or 'the pattern does not start there'}"
            f"{f'the descriptor asks for the matrix base offset {row}' if exact else ''}",
            CAUSES["swizzle-start"],
            split,
            key=("descriptor", self.reporter.shared_name(fields.start).split(" + ")[0]),
        )

    def _unmarked(self, split: Split, bits: int) -> None:
        self.reporter.add(
            "descriptor",
            "review",
            f"matrix descriptor 0x{bits:016x}: bits 46-48 must be 0b001, found 0b000",
            "set bit 46, as the format of tcgen05 requires; known chips read the other bits even without it",
            split,
            key="descriptor-fixed-bits",
        )
