"""Where an instruction comes from: `.loc`, `.file`, `inlined_at` (PTX ISA 11.5) -> file, line, function."""

from __future__ import annotations

import functools
import re
from pathlib import PurePath
from typing import NamedTuple

from ptxsim.report.names import brief

_STRINGS = re.compile(r"^(\$\w+):\s*\n((?:\s*\.b8[ \d,]+\n?)+)", re.MULTILINE)
_MOST = 20  # nested inlined functions


class SourcePlace(NamedTuple):
    file: str
    line: int
    function: str  # mangled; "" for the kernel itself


class Sources:
    """Places of a module's instructions."""

    def __init__(self, module):
        self.module = module

    @functools.cached_property
    def _functions(self) -> dict[str, str]:
        """Label in .debug_str -> the name stored there."""
        found = {}
        for label, data in _STRINGS.findall(self.module.text):
            codes = bytes(int(number) for number in re.findall(r"\b\d+\b", data.replace(".b8", "")))
            found[label] = codes.partition(b"\0")[0].decode("utf-8", "replace")
        return found

    def chain(self, instr) -> list[SourcePlace]:
        """The place of an instruction, then the places it was inlined at; [] if unknown."""
        places: list[SourcePlace] = []
        loc, inlined = instr.loc, instr.inlined
        while loc is not None and loc[0] in self.module.files and len(places) < _MOST:
            function = self._functions.get(inlined.label, "") if inlined else ""
            places.append(SourcePlace(self.module.files[loc[0]], loc[1], function))
            if inlined is None:
                break
            loc, inlined = inlined[1:4], inlined.outer
        return places

    @property
    def language(self) -> str:
        """ "cuda", "python" (Triton and similar), or "" if the PTX names no files."""
        return _language(frozenset(self.module.files.values()))


@functools.lru_cache(maxsize=64)
def _language(files: frozenset[str]) -> str:
    kinds = {PurePath(file).suffix for file in files}
    if kinds & {".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp"}:
        return "cuda"
    return "python" if ".py" in kinds else ""


def place_text(places: list) -> str:
    """`gemm.cu:12 in load(float*), inlined at main.cu:40`."""
    first, last = places[0], places[-1]
    text = f"{PurePath(first[0]).name}:{first[1]}"
    if first[2]:
        text += f" in {brief(first[2])}"
    if last != first:
        text += f", inlined at {PurePath(last[0]).name}:{last[1]}"
    return text
