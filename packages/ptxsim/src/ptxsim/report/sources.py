"""Where an instruction comes from: `.loc`, `.file`, `inlined_at` (PTX ISA 11.5) -> file, line, function.

The words of findings follow: `__syncthreads()` for CUDA C++, where the machine's own word is `cta_sync()`.
"""

from __future__ import annotations

import functools
import re
from pathlib import PurePath
from typing import NamedTuple

_STRINGS = re.compile(r"^(\$\w+):\s*\n((?:\s*\.b8[ \d,]+\n?)+)", re.MULTILINE)
_MOST = 20  # functions that are inlined into each other


class Place(NamedTuple):
    file: str
    line: int
    function: str  # mangled; "" for the kernel itself


class Sources:
    """Places of a module's instructions."""

    def __init__(self, module):
        self.module = module

    @functools.cached_property
    def _functions(self) -> dict[str, str]:
        """Label in .debug_str -> the name that stands there."""
        found = {}
        for label, data in _STRINGS.findall(self.module.text):
            codes = bytes(int(number) for number in re.findall(r"\b\d+\b", data.replace(".b8", "")))
            found[label] = codes.partition(b"\0")[0].decode("utf-8", "replace")
        return found

    def chain(self, instr) -> list[Place]:
        """The place of an instruction, then those into which it was inlined; [] if not known."""
        places: list[Place] = []
        loc, inlined = instr.loc, instr.inlined
        while loc is not None and loc[0] in self.module.files and len(places) < _MOST:
            function = self._functions.get(inlined[0], "") if inlined else ""
            places.append(Place(self.module.files[loc[0]], loc[1], function))
            if inlined is None:
                break
            loc = inlined[1:]
            inlined = self.module.inlined.get(loc)
        return places

    @property
    def language(self) -> str:
        """ "cuda", "python" (Triton and its kin) or "" where the PTX names no files."""
        kinds = {PurePath(file).suffix for file in self.module.files.values()}
        if kinds & {".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp"}:
            return "cuda"
        return "python" if ".py" in kinds else ""


def place_text(places: list) -> str:
    """`gemm.cu:12 in load(float*), inlined at main.cu:40`."""
    from ptxsim.report.names import readable

    first, last = places[0], places[-1]
    text = f"{PurePath(first[0]).name}:{first[1]}"
    if first[2]:
        text += f" in {readable(first[2])}"
    if last != first:
        text += f", inlined at {PurePath(last[0]).name}:{last[1]}"
    return text


_CUDA = (  # the machine's words -> those of CUDA C++
    ("warpgroup_sync(1 + wg_id)", "bar.sync with an id of its own"),
    ("cta_sync (bar.sync 0)", "__syncthreads()"),
    ("cta_sync()", "__syncthreads()"),
    ("cta_sync", "__syncthreads()"),
    ("check the tile's coordinates, and the extents of cta_id, against the buffer's shape",
     "check the index, and the grid, against the size of the buffer"),
    ("before overwriting a buffer, wait on the barrier that marks it free",
     "before overwriting it, wait until its readers are done: __syncthreads(), or the mbarrier that says so"),
    ("before reading, wait on the barrier that signals that the data has arrived",
     "before reading it, wait until it is written: __syncthreads(), or the mbarrier of the copy"),
    ("cluster_sync()", "cluster.sync()"),
    ("cluster_sync", "cluster.sync()"),
    (", or its cast (Tx.cast),", ""),
    ("a copy writes its first argument, Tx.copy(dst, src): are they exchanged? If not, fill the buffer first",
     "fill the buffer first"),
    ('one elected thread issues it: with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]',
     "one elected thread issues it: if (cute::elect_one_sync()), or threadIdx.x == 0"),
)  # fmt: skip


def in_words_of(language: str, text: str) -> str:
    """The text in the words of a source language."""
    if language:
        for ours, theirs in _CUDA:
            text = text.replace(ours, theirs)
    return text
