"""Figures from the record of simulated runs: what overlaps, and the structure that `./lab show` draws.

A tick is not a unit of time: the record of a run is replayed with fixed costs (ptxsim.Costs).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from instructor.figures.runs import arrays, artifact
from ptxsim import Costs
from ptxsim.tracing import Timeline, rows
from tirxlab.devices import sim
from tirxlab.explain.picture import draw
from tirxlab.explain.picture.facts import Structure, structure
from tirxlab.explain.picture.svg import Part, Shape, alike, document, line, rects, text
from tirxlab.explain.picture.tiles import owners, stored

SMALL = {1: (128, 128, 64), 9: (512, 512, 512), 10: (1024, 512, 512)}  # else 256x256x512
ROWS = (("load", "TMA loads", "tma"), ("mma", "tensor core", "mma"), ("TMEM read", "TMEM reads", "threads"),
        ("store", "TMA stores", "store"))  # fmt: skip
LEFT, WIDTH, HEIGHT = 92, 470, 17
NARROW = 540  # of the panels of `./lab show`, so that their text is readable on a slide


@functools.cache
def recorded(step: int, size: tuple[int, int, int]) -> Timeline:
    """The timeline of the first cluster of a step's run."""
    return sim.run(artifact(step, size), arrays(size), trace=Costs(), clusters=1).trace


@functools.cache
def facts(step: int) -> Structure:
    size = SMALL.get(step, (256, 256, 512))
    return structure(artifact(step, size), recorded(step, size))


def lanes(step: int, size: tuple[int, int, int], scale: float, top: float) -> list[Part]:
    """What the hardware units and the readers of TMEM of CTA 0 do, one row each."""
    timeline = recorded(step, size)
    shape = "x".join(map(str, size))
    title = f"step {step}, {shape}, first CTA: {timeline.ticks} ticks"
    parts: list[Shape] = [text(0, top, title, bold=True)]
    for i, (kind, unit, colour) in enumerate(ROWS):
        y = top + 6 + i * HEIGHT
        parts.append(text(LEFT - 6, y + 12, unit, 8.5, "end"))
        parts.append(line(LEFT, y + HEIGHT, LEFT + WIDTH, y + HEIGHT, "light"))
        events = [event for event in timeline.events if event.kind == kind and event.cta == 0]
        for apart in rows(events):  # events that overlap are drawn over each other, translucent
            spans = [(LEFT + e.begin * scale, max((e.end - e.begin) * scale, 0.8)) for e in apart]
            boxes = [(x, y + 2, width, HEIGHT - 4) for x, width in spans]
            parts.append(rects(boxes, colour, colour, 0.45, 0.4))
    return alike(parts)


def overlap(*runs: tuple[int, tuple[int, int, int]]) -> str:
    """Runs, one below the other, on one scale of ticks."""
    scale = WIDTH / max(recorded(*run).ticks for run in runs)
    block = len(ROWS) * HEIGHT + 24
    parts = [part for i, run in enumerate(runs) for part in lanes(*run, scale, 12 + i * block)]
    bottom = len(runs) * block + 8
    parts.append(text(LEFT + WIDTH, bottom, "ticks of one scale; a tick is not a unit of time", 8, "end"))
    return document(LEFT + WIDTH + 6, bottom + 6, parts)


def roles(step: int) -> str:
    return draw.one(draw.barrier_panel(facts(step), NARROW, thread_barriers=step < 4))


def shared(step: int) -> str:
    known = facts(step)
    return draw.one(draw.memory_panel(known.memory, known.shared_bytes, NARROW))


def columns(step: int) -> str:
    return draw.one(draw.tmem_panel(facts(step), NARROW))


def tiles(step: int, size: tuple[int, int, int]) -> str:
    built, data = artifact(step, size), arrays(size)
    found, order = owners(built, {"A": data["A"], "B": data["B"]}), stored(recorded(step, size), "D")
    return draw.one(draw.tile_panel(found, built.cluster[0], NARROW, 0 if order else -1, order))


FIGURES: dict[str, Callable[[], str]] = {
    "overlap45.svg": lambda: overlap((4, (128, 128, 512)), (5, (128, 128, 512))),
    "overlap67.svg": lambda: overlap((6, (2048, 2048, 256)), (7, (2048, 2048, 256))),
    "overlap78.svg": lambda: overlap((7, (128, 128, 1024)), (8, (128, 128, 1024))),
    "overlap910.svg": lambda: overlap((9, (2048, 2560, 512)), (10, (4096, 2560, 512))),
    **{f"roles{step}.svg": functools.partial(roles, step) for step in (1, 4, 7, 9, 10)},
    **{f"smem{step}.svg": functools.partial(shared, step) for step in (5, 8, 10)},
    "tmem10.svg": lambda: columns(10),
    "tiles3.svg": lambda: tiles(3, (384, 640, 64)),
    "tiles10.svg": lambda: tiles(10, (2048, 2048, 64)),
}
