"""vprintf: turns the format string and the packed argument buffer of a thread into text."""

from __future__ import annotations

import functools
import re
import struct

import numpy as np

from ptxsim.isa.address_map import SPACE_GENERIC, SPACE_LOCAL
from ptxsim.jit.translate import resolve
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split

MOST_LINES, MOST_BYTES = 10_000, 4096  # lines kept per launch; bytes kept per line. A chip keeps 1 MiB in all
NEWLINE = "\n"
_SPEC = re.compile(r"%([-+ #0]*\d{0,3}(?:\.\d{1,3})?)(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")


class PrintedLine(str):
    """A printed line, prefixed by CTA, warp and lane; `raw` is the text that the program itself printed."""

    raw: str


def render(cluster: Cluster, split: Split, lane: int, format_slot: int, values_slot: int) -> PrintedLine:
    """One printed line: `[CTA (x, y, z) warp w lane l] text`. The slots hold addresses of the call's
    parameters.
    """
    thread = split.warp * 32 + lane
    pattern = _pattern(cluster, split, lane, format_slot)
    values = _word(cluster, thread, int(cluster.registers[split.warp, values_slot, lane]))
    cta = ",".join(str(x) for x in cluster.cta_ids[split.cta])
    text = _format(cluster, thread, pattern, values)
    line = PrintedLine(
        f"[CTA ({cta}) warp {split.warp % cluster.warps_per_cta} lane {lane}] {text.rstrip(NEWLINE)}"
    )
    line.raw = text
    return line


def give_back(cluster: Cluster, split: Split, format_slot: int, result_slot: int) -> None:
    """Stores the result of a call: the number of arguments that its format takes, as CUDA's printf returns.
    result_slot: holds the address of the result in the call's frame.
    """
    places = cluster.registers[split.warp, result_slot][split.lanes].astype(np.int64)
    for lane, place in zip(split.lanes.tolist(), places.tolist(), strict=True):
        frame = split.warp * 32 + lane, slice(place, place + 4)
        cluster.local[frame].view(np.int32)[0] = _asks_for(_pattern(cluster, split, lane, format_slot))
        cluster.local_written[frame] = 1


@functools.lru_cache(maxsize=64)
def _asks_for(pattern: str) -> int:
    return sum(found[3] != "%" for found in _SPEC.finditer(pattern))


def _pattern(cluster: Cluster, split: Split, lane: int, slot: int) -> str:
    address = int(cluster.registers[split.warp, slot, lane])
    return _string(cluster, _word(cluster, split.warp * 32 + lane, address))


def _word(cluster: Cluster, thread: int, offset: int) -> int:
    """A 64-bit word of a thread's local memory."""
    return struct.unpack("<Q", cluster.local[thread, offset : offset + 8].tobytes())[0]


def _bytes(cluster: Cluster, thread: int, address: int, size: int) -> bytes:
    space, inside = resolve(SPACE_GENERIC, address)
    if space == SPACE_LOCAL:
        return cluster.local[thread, inside : inside + size].tobytes()
    view = cluster.launch.memory.view(address, size)
    return view.tobytes() if view is not None else b"\0" * size


def _string(cluster: Cluster, address: int) -> str:
    index = cluster.launch.memory.find(address)
    if index is None:
        return "<bad string>"
    start = address - cluster.launch.memory.rows[index][0]
    raw = cluster.launch.memory.arrays[index][start : start + MOST_BYTES].tobytes()
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def _format(cluster: Cluster, thread: int, pattern: str, values: int) -> str:
    """The formatted text. CUDA packs each argument at its natural alignment, at least 4 bytes; floats are
    passed as doubles.
    """
    offset = 0

    def take(size: int) -> bytes:
        nonlocal offset
        offset = -(-offset // size) * size
        data = _bytes(cluster, thread, values + offset, size)
        offset += size
        return data.ljust(size, b"\0")  # a format may take more arguments than there are

    def one(match: re.Match) -> str:
        flags, length, kind = match.groups()
        if kind == "%":
            return "%"
        if kind in "fFeEgGaA":
            return f"%{flags}{'g' if kind in 'aA' else kind}" % struct.unpack("<d", take(8))
        if kind == "s":
            return f"%{flags}s" % _string(cluster, struct.unpack("<Q", take(8))[0])
        if kind == "p":
            return hex(struct.unpack("<Q", take(8))[0])
        wide = length in ("l", "ll", "z", "j", "t")
        code = ("q" if wide else "i") if kind in "di" else ("Q" if wide else "I")
        value = struct.unpack("<" + code, take(8 if wide else 4))[0]
        return chr(value & 0xFF) if kind == "c" else f"%{flags}{'d' if kind == 'u' else kind}" % value

    return _SPEC.sub(one, pattern)[:MOST_BYTES]
