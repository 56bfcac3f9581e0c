"""What a report page shows, as plain data: each command fills a Page, page.py renders it.

Texts are plain: the renderer escapes them. What a command must not show a student must never enter a Page.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tirxlab.explain.mismatch_map import MismatchMap

STATES = ("good", "bad", "mixed", "plain")  # of a page, a row, a finding; never shown by colour alone


@dataclass
class Cell:
    """A field of a table."""

    text: str
    state: str = "plain"  # one of STATES
    number: bool = False  # right-aligned


@dataclass
class Grid:
    """A table."""

    title: str
    head: list[str]
    rows: list[list[Cell]]


@dataclass
class SourceLine:
    """A line of the student's file."""

    number: int
    text: str
    marked: bool = False  # the line that the card is about


@dataclass
class Card:
    """One thing that is wrong or to be reviewed."""

    where: str  # "step 4 at 512, order adverse"
    severity: str  # "error", "review", "incomplete", "not built", "wrong result"
    kind: str  # "deadlock"; "" without a finding
    message: str  # may have several lines
    hint: str = ""
    also: list[str] = field(default_factory=list)  # further findings, a line each
    file: str = ""
    source: list[SourceLine] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    ring: list[Waits] = field(default_factory=list)  # each waits for the next, the last for the first


@dataclass
class Waits:
    """A group of threads in a deadlock."""

    who: str
    line: int
    wants: str  # "mma2tma[1], parity 0"
    state: str  # "it is in phase 0, 0/1 arrived"


@dataclass
class Link:
    """A link to a page of the handout (file, or file#section) or to a place in the report (#place)."""

    text: str
    href: str


@dataclass
class WrongMap:
    """Which elements of D are wrong, as tirxlab/explain/mismatch_map.py finds them."""

    title: str
    mismatch: MismatchMap
    said: list[str]  # the explanation, line by line


@dataclass
class Run:
    """A timeline, ready for the page's script (timelines.py)."""

    title: str
    lead: str  # what its times mean
    data: dict
    shares: Grid
    open: bool = False  # whether it is unfolded; the first always is


@dataclass
class Picture:
    """An SVG made by the lab, shown as an image."""

    title: str
    alt: str
    svg: str


@dataclass
class Point:
    """A kernel on a roofline."""

    name: str
    intensity: float  # floating-point operations for each byte of global memory
    tflops: float  # predicted
    published: float | None = None  # TFLOP/s


@dataclass
class Roofline:
    """Predicted speeds under a chip's two ceilings."""

    chip: str
    peak_tflops: float
    terabytes: float  # per second
    points: list[Point]
    remark: str = ""


@dataclass
class Page:
    """One report. Empty sections are left out."""

    title: str
    state: str  # one of STATES
    lead: str  # the result in a sentence
    facts: list[tuple[str, str]] = field(default_factory=list)  # command, file, device ..
    grids: list[Grid] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)
    maps: list[WrongMap] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    roofline: Roofline | None = None
    notes: list[str] = field(default_factory=list)  # what is left out, and why
    links: list[Link] = field(default_factory=list)
