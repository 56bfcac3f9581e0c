"""The execution that a replay plays: what the warps of one cluster did, in order. Plain data.

A step of a warp is one of
    Run           consecutive plain instructions of the program, none of which leaves the SM sub-partition
    MemoryAccess  one load or store of a warp (ld, st, ldmatrix, stmatrix), with the traffic it causes
    Unit          any other instruction: a wait, an arrival, the issue of asynchronous work, mma.sync
`events` are those of trace/recorder.py. A Unit holds the number of its event. Work of hardware units and
phases of barriers are events, too; their field `after` names the events that they follow.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class Run:
    """Rows first .. last of the program, executed without a jump between them."""

    first: int
    last: int


@dataclass(slots=True)
class MemoryAccess:
    """Memory traffic of one instruction of a warp."""

    row: int
    shared: bool
    write: bool
    bytes: int
    passes: (
        int  # cycles of the shared-memory port, bank conflicts included; of global memory: 32-byte sectors
    )
    segment: int = -1  # number of the global array
    cached: int = 0  # sectors in lines that the CTA has read before
    since: int = 0  # about how many bytes the CTA has read since it last read these lines
    lines: int = 0  # lines of 128 bytes of global memory
    fetched: int = 0  # bytes that HBM sends for sectors that are new to the CTA
    at: int = 0  # of a load from shared memory: address of its first lane
    lanes: builtins.bytes = b""  # addresses of its lanes, int64, relative to the first one's
    width: int = 0  # bytes per lane


@dataclass(slots=True)
class Unit:
    row: int  # -1: belongs to the instruction before it
    event: int = -1  # index into Execution.events, -1 for none


@dataclass(slots=True)
class Transfer:
    """The data that a TMA copy, or a cp.async of one warp, moves."""

    write: bool
    bytes: int
    segment: int
    ranks: tuple[int, ...] = ()  # CTAs that receive it
    address: int = 0  # of its first byte
    box: bool = False  # of a tensor map
    lines: int = 0  # lines of 128 bytes of global memory that it touches; 0 if it moves whole lines
    passes: int = 0  # passes of a cp.async through the load unit
    parted: int = 0  # bytes in sectors whose halves go to different 32 bytes of shared memory


class Multiplied(NamedTuple):
    """One CTA's part of a tcgen05.mma."""

    rows: int
    columns: int
    own: int  # columns of B that are in the shared memory of this CTA
    pair: bool  # two CTAs multiply together (cta_group::2)
    stored: bool = False  # A is in tensor memory


@dataclass
class Execution:
    """The execution of one cluster."""

    instrs: list  # of the program, by row: frontend.ast.Instr, None for a mark
    ctas: int
    warps_per_cta: int
    warps: list[list] = field(default_factory=list)  # steps, by warp of the cluster
    events: list = field(default_factory=list)  # trace.schedule.Event
    copies: dict[int, Transfer] = field(default_factory=dict)  # event -> what it moves
    products: dict[int, Multiplied] = field(default_factory=dict)  # event -> what it multiplies
    remote: set[int] = field(default_factory=set)  # events: arrivals at a barrier of another CTA
    relaxed: set[int] = field(default_factory=set)  # events: cluster barriers without release and acquire
    further: set[int] = field(default_factory=set)  # events: further issues of one instruction (gather rows)
    reads: dict[int, int] = field(default_factory=dict)  # segment -> bytes read from global memory
    writes: dict[int, int] = field(default_factory=dict)
    again: dict[int, dict[int, int]] = field(default_factory=dict)  # segment -> {since: bytes read again}
    fetched: dict[int, int] = field(default_factory=dict)  # segment -> bytes that HBM sends for `reads`
    scattered: dict[int, int] = field(default_factory=dict)  # segment -> bytes of `reads` that gathers read
    patched: int = 0  # bytes of `writes` in sectors that are written only in part
    columns: int = 0  # columns of tensor memory that a CTA allocates
    sass_counts: Sequence[float] = ()  # row -> SASS instructions that it becomes
    stalls: Sequence[float] = ()  # row -> cycles for which these stall their warp, as encoded by ptxas
    places: dict = field(default_factory=dict)  # row -> sass_count.Place, if there is machine code
    assembled: bool = False  # the instructions were counted in machine code, spills included
    parts: dict = field(default_factory=dict)  # row of a shared-memory load -> neighbours.Part of its address
    refills: float = 0.0  # loads of spilled registers, as a share of all other instructions
    lanes: list = field(default_factory=list)  # trace.schedule.Lane of every warp and unit with events
