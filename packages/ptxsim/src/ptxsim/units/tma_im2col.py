"""TMA in im2col modes (PTX ISA 5.5.4, 5.5.5): splits a copy into boxes of tiled maps, each a run of pixels
along W.
"""

from __future__ import annotations

from ptxsim.machine.cluster import Cluster
from ptxsim.machine.im2col_map import WIDE, Im2colMap, runs
from ptxsim.machine.split import Lanes

MODES = ("im2col", "im2col::w", "im2col::w::128", "im2col_no_offs")


def mode_of(instr) -> str:
    """The im2col mode of a copy, "" for a tiled one."""
    return next((m for m in instr.mods if m in MODES), "")


def pieces(
    cluster: Cluster, split: Lanes, tmap: Im2colMap, start: tuple, mode: str, offsets
) -> list[tuple] | None:
    """(tiled map, coordinates, pixels) of each run, in the order in shared memory; None, with a finding, if
    the copy is not legal or not modelled. offsets: those of the instruction, W first; for .im2col::w the halo
    and the offset.
    """
    wide, problem = mode.startswith("im2col::w"), ""
    pixels = WIDE if mode.endswith("128") else tmap.pixels
    if wide and not tmap.swizzle:
        problem = f".{mode} requires a swizzle"
    elif wide and offsets[0]:
        message = f"TMA: .{mode} with {offsets[0]} halo pixels is not modelled (PTX ISA 5.5.5.3: a figure)"
        cluster.reporter.add("unsupported", "incomplete", message, "", split)
        return None
    offsets = offsets[1:] if wide else offsets or [0] * (tmap.rank - 2)
    low, high = tmap.box_of()
    inside = [a <= x <= b for a, x, b in zip(low, start[1:-1], high, strict=True)]
    if not problem and not wide and not all(inside):
        problem = f"pixel {start[1:-1]} lies outside of the bounding box {tuple(low)} to {tuple(high)}"
    if problem:
        cluster.reporter.add("descriptor", "error", f"TMA of an im2col map: {problem}", "", split)
        return None
    found = runs(tmap, start, pixels, offsets, wide)
    return [(tmap.run(count), at, count) for at, count in found]
