"""Where an instruction comes from: `.loc`, `.file`, `inlined_at` (PTX ISA 11.5) -> file, line, function."""

from __future__ import annotations

import functools
import itertools
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
        names = [self._functions.get(call.label, "") for call in instr.at.calls()]
        places = zip(instr.at.places(), [*names, ""], strict=False)
        known = itertools.takewhile(lambda one: one[0][0] in self.module.files, places)
        return [SourcePlace(self.module.files[at[0]], at[1], name) for at, name in known][:_MOST]

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


def told_place(instr, chain: list[SourcePlace]) -> SourcePlace | None:
    """The place of the chain by which messages name an instruction; None if it is empty."""
    name = instr.at.file, instr.src
    named = (at for at in chain if (PurePath(at.file).name, at.line) == name)
    return next(named, next(iter(chain), None))


def place_text(places: list, told: tuple[str, int]) -> str:
    """`main.cu:40, in load(float*) at gemm.cu:12`. told: the place by which messages name it."""
    file, line, function = places[0]
    inner = f"{PurePath(file).name}:{line}"
    if told == (file, line):
        return f"{inner} in {brief(function)}" if function else inner
    return f"{PurePath(told[0]).name}:{told[1]}, in {brief(function)} at {inner}"
