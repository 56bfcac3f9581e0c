"""Names of mbarriers that PTX has no name for: in dynamic shared memory, and in structures.

PTX knows `extern __shared__` memory as one variable. But the source line that initialises a barrier names it,
`init_barrier(&s.full[i], 1)`, and the barriers that such lines initialise are its elements.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from ptxsim.checks.barrier_arrays import BARRIER
from ptxsim.events.observer import Observer
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.frontend.ast import Instr
from ptxsim.report.findings import Reporter
from ptxsim.report.sources import SourcePlace, told_place

_ELEMENT = re.compile(r"(\w+(?:(?:\.|->)\w+)*)\s*\[")  # `s.full[i]`
_ALONE = re.compile(r"&\s*(\w+(?:(?:\.|->)\w+)*)")  # `&s.done`
_MOST = 1 << 22  # bytes of a source file that is looked into


class BarrierNames(Observer):
    """Gives the reporter the names as barriers are initialised. First of the checks."""

    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter, self.program = reporter, launch.program
        self.said: dict[int, str] = {}  # row of an init -> the name in its source line
        self.elements: dict[str, set[int]] = {}  # name -> window offsets

    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place: Place) -> None:
        if split.row not in self.said:
            self.said[split.row] = self._said_at(self.program.instrs[split.row])
        name, offset = self.said[split.row], place[1]
        elements = self.elements.setdefault(name, set())
        if name and offset not in elements and not self._is_declared(offset):
            elements.add(offset)
            self.reporter.barrier_names = self._arrays()

    def _said_at(self, instr: Instr | None) -> str:
        sources = self.reporter.sources
        told = told_place(instr, sources.chain(instr)) if sources is not None and instr is not None else None
        return _name_in(_line_of(told)) if told is not None and self._tells_apart else ""

    @functools.cached_property
    def _tells_apart(self) -> bool:
        """Whether the text says of each init from where it was called."""
        inits = (i for i in self.program.by_row.values() if i.op == "mbarrier" and i.mods[0] == "init")
        return not any(instr.at.unsure for instr in inits)

    def _is_declared(self, offset: int) -> bool:
        """Whether a variable of barriers holds it, which has a name of its own."""
        return any(kind == "uint64" and 0 <= offset - at < size for _, kind, at, size in self.reporter.names)

    def _arrays(self) -> list[tuple[str, str, int, int]]:
        """(name, type, offset, size) of the arrays whose barriers lie side by side."""
        spans = [(name, min(at), max(at) + BARRIER, len(at)) for name, at in self.elements.items() if at]
        return [(name, "uint64", a, b - a) for name, a, b, count in spans if b - a == count * BARRIER]


def _name_in(line: str) -> str:
    """What a line that initialises a barrier calls it, without an index; "" if it shows none."""
    found = _ELEMENT.search(line) or _ALONE.search(line)
    return found[1].replace("->", ".") if found else ""


def _line_of(told: SourcePlace) -> str:
    lines = _lines_of(told.file)
    return lines[told.line - 1].partition("//")[0] if 0 < told.line <= len(lines) else ""


@functools.lru_cache(maxsize=16)
def _lines_of(path: str) -> list[str]:
    """The lines of a source file; none if it is not here."""
    try:
        file = Path(path)
        small = file.is_file() and file.stat().st_size <= _MOST
        return file.read_text("utf-8", "replace").splitlines() if small else []
    except (OSError, ValueError):
        return []
