"""What the warps of one cluster did, in order: the tape that a replay plays. Plain data.

A step of a warp is one of
    Run           plain instructions in a row of the program, none of which leaves the SM sub-partition
    MemoryAccess  one load or store of a warp (ld, st, ldmatrix, stmatrix), with the work it makes
    Unit          any other instruction: a wait, an arrival, the issue of asynchronous work, mma.sync
`events` are those of trace/recorder.py: a Unit names its event there; work of hardware units and phases of
barriers are events that name, in `after`, what they follow.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class Run:
    """Rows first .. last of the program, straight on."""

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
    cached: int = 0  # of the sectors: in lines that the CTA has read before
    since: int = 0  # bytes that the CTA has read since it last read these lines, about
    lines: int = 0  # of 128 bytes of global memory
    fetched: int = 0  # bytes that HBM sends for sectors that are new to the CTA
    at: int = 0  # of a load from shared memory: address of its first lane
    lanes: builtins.bytes = b""  # addresses of its lanes, int64, from the first one's on
    width: int = 0  # bytes of a lane


@dataclass(slots=True)
class Unit:
    row: int  # -1: belongs to the instruction before it
    event: int = -1  # in Tape.events, -1 for none


@dataclass(slots=True)
class Transfer:
    """What a TMA copy, or cp.async of one warp, moves."""

    write: bool
    bytes: int
    segment: int
    ranks: tuple[int, ...] = ()  # CTAs that receive it
    address: int = 0  # of its first byte
    box: bool = False  # of a tensor map
    lines: int = 0  # of 128 bytes of global memory that it touches; 0 if they are whole
    passes: int = 0  # in which a cp.async goes through the load unit
    parted: int = 0  # of the bytes: in sectors whose halves go to different 32 bytes of shared memory


class Multiplied(NamedTuple):
    """A tcgen05.mma, as far as one CTA takes part."""

    rows: int
    columns: int
    own: int  # columns whose operand the shared memory of this CTA has
    pair: bool  # two CTAs multiply together
    stored: bool = False  # A lies in tensor memory


@dataclass
class Tape:
    """One cluster."""

    instrs: list  # of the program, by row: frontend.ast.Instr, None for a mark
    ctas: int
    warps_per_cta: int
    warps: list[list] = field(default_factory=list)  # steps, by warp of the cluster
    events: list = field(default_factory=list)  # trace.schedule.Event
    copies: dict[int, Transfer] = field(default_factory=dict)  # event -> what it moves
    products: dict[int, Multiplied] = field(default_factory=dict)  # event -> what it multiplies
    remote: set[int] = field(default_factory=set)  # arrivals at a barrier of another CTA
    relaxed: set[int] = field(default_factory=set)  # cluster barriers without release and acquire
    further: set[int] = field(default_factory=set)  # issues by an instruction that has one: rows of a gather
    reads: dict[int, int] = field(default_factory=dict)  # segment -> bytes read from global memory
    writes: dict[int, int] = field(default_factory=dict)
    again: dict[int, dict[int, int]] = field(default_factory=dict)  # segment -> {since: bytes read again}
    fetched: dict[int, int] = field(default_factory=dict)  # segment -> bytes that HBM sends for `reads`
    scattered: dict[int, int] = field(default_factory=dict)  # segment -> of `reads`, by gathers
    patched: int = 0  # of `writes`: in sectors that are written in part
    columns: int = 0  # of tensor memory that a CTA allocates
    finished: bool = False
    sass_counts: Sequence[float] = ()  # row -> SASS instructions that it becomes
    stalls: Sequence[float] = ()  # row -> cycles that these hold up their warp, as ptxas says in them
    places: dict = field(default_factory=dict)  # row -> sass_count.Place, where ptxas made the code
    assembled: bool = False  # they were counted in what ptxas made: spills are in it
    parts: dict | None = None  # row of a load from shared memory -> neighbours.Part of its address
    refills: float = 0.0  # loads of what ptxas spilled, as a share of all other instructions
    lanes: list = field(default_factory=list)  # trace.schedule.Lane of every warp and unit with events
