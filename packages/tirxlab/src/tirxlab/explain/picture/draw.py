"""Facts -> SVG: tiles of the grid, shared memory, tensor memory, agents and the barriers between them.

Each panel is a function that returns (width, height, parts of SVG); `page` puts them below each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tirxlab.explain.picture.facts import Agent, Barrier, Block, Structure
from tirxlab.explain.picture.svg import (
    SERIES,
    Part,
    Shape,
    alike,
    colour,
    document,
    labels,
    line,
    lines,
    mosaic,
    number,
    rect,
    rects,
    text,
    texts,
)
from tirxlab.explain.picture.tiles import CELL

WIDTH = 860
HEAD = 48  # y of the last line above the columns of the barrier panel
Panel = tuple[float, float, list[Part]]
KINDS = {"TMA": "tma", "MMA": "mma", "write-back": "threads"}  # role -> colour
UNIT_KINDS = {"TMA loads": "tma", "tensor core": "mma", "TMA stores": "store"}
LIMIT = 227 * 1024  # bytes of shared memory of a CTA


def page(title: str, panels: list[Panel]) -> str:
    """An SVG document of all panels, with a title."""
    parts: list[Part] = [text(10, 22, title, 14, bold=True)]
    y = 40.0
    for _, height, inner in panels:
        parts += [f'<g transform="translate(10 {y:.0f})">', *inner, "</g>"]
        y += height + 22
    return document(max(width for width, _, _ in panels) + 20, y, parts)


def one(panel: Panel) -> str:
    """One panel as a document by itself."""
    width, height, inner = panel
    shifted = ['<g transform="translate(5 5)">', *inner, "</g>"]
    return document(width + 10, height + 10, shifted)


def tile_panel(
    owner: np.ndarray, per_cluster: int, width: float = WIDTH, chosen: int = -1, order: Sequence = ()
) -> Panel:
    """D in cells of 128x128, each with the number of the cluster (or CTA) that writes it.

    The cells of cluster `chosen` have a frame and, instead of its number, their place in `order` (cells).
    """
    what = "CTA" if per_cluster == 1 else "cluster"
    rows, columns = owner.shape
    side = max(14, min(48, width * 0.6 / columns, 420 / rows)) // 2 * 2  # an even number
    size = min(12, side * 0.5)
    title = f"D in cells of {CELL}x{CELL}: the {what} that writes each"
    owned = {(r, c): cluster for (r, c), cluster in np.ndenumerate(owner) if cluster >= 0}
    several = len(np.unique(owner)) > 1
    framed = {cell for cell, cluster in owned.items() if several and cluster == chosen}
    placed = {cell: f"{place}." for place, cell in enumerate(order, 1) if cell in framed}
    others = {cell: cluster for cell, cluster in owned.items() if cell not in placed}
    looks: dict[tuple[str, float], list] = {}
    for cell, cluster in owned.items():
        looks.setdefault((SERIES[cluster % len(SERIES)], 0.8 if cell in framed else 0.4), []).append(cell)
    frames = [(c * side + 0.7, 20.7 + r * side, side - 1.4, side - 1.4) for r, c in sorted(framed)]
    remark = tile_remark(owner, what, chosen if framed else -1, bool(order))
    parts = [
        text(0, 10, title, 10, bold=True),
        rect(0, 20, columns * side, rows * side, "light", opacity=0.6),
        *mosaic(0, 20, side, rows, columns, looks),
        *labels(0, 20, side, placed, size, bold=True),
        *labels(0, 20, side, others, size),
        *([rects(frames, "none", "ink", width=1.6)] if frames else []),
        text(0, 34 + rows * side, remark, 8.5, fill="grey"),
    ]
    said = max(6.1 * len(title), 5.2 * len(remark))  # widths in the two fonts
    return max(columns * side, said), rows * side + 40, parts


def tile_remark(owner: np.ndarray, what: str, framed: int, ordered: bool) -> str:
    """What the colours, the frame and its numbers mean."""
    said = [f"framed: {what} {framed}"] if framed >= 0 else []
    said += ["in the frame: the order of its stores"] if framed >= 0 and ordered else []
    return "; ".join(said + (["grey: written by nobody"] if (owner < 0).any() else []))


def memory_panel(blocks: list[Block], shared_bytes: int, width: float = WIDTH) -> Panel:
    """Dynamic shared memory of a CTA to scale, with its buffers cut into stages or consumers' parts."""
    parts = [text(0, 10, "shared memory of a CTA", 10, bold=True)]
    for i, block in enumerate(b for b in blocks if b.size >= 1024):
        share = width * block.size / shared_bytes / block.parts
        x = width * block.offset / shared_bytes
        middle, fill = x + share * block.parts / 2, SERIES[i % len(SERIES)]
        parts.append(rects([(x + p * share, 22, share, 40) for p in range(block.parts)], fill, opacity=0.5))
        if block.parts > 1:
            parts.append(texts(57, [(x + (p + 0.5) * share, p) for p in range(block.parts)], 8.5, "middle"))
        parts.append(text(middle, 38, block.name, 10, "middle", bold=True))
        size = f"{block.parts} x {kib(block.size // block.parts)}" if block.parts > 1 else kib(block.size)
        parts.append(text(middle, 74, size, 8.5, "middle"))
        parts.append(text(x, 19, block.offset, 7, fill="grey"))
    small = ", ".join(f"{b.name} at {b.offset}" for b in blocks if b.size < 1024)
    parts.append(text(0, 92, f"first 1024 B: {small}", 8.5))
    swizzled = ", ".join(b.name for b in blocks if b.swizzle)
    if swizzled:
        width_of_swizzle = max(b.swizzle for b in blocks)
        parts.append(text(0, 106, f"swizzle of {width_of_swizzle} B, as TMA writes it: {swizzled}", 8.5))
    used = f"{shared_bytes} B of dynamic shared memory; a CTA may use {LIMIT} B"
    parts.append(text(0, 120, used, 8.5, fill="grey"))
    return width, 124, alike(parts)


def kib(size: int) -> str:
    return f"{size // 1024} KiB" if size % 1024 == 0 else f"{size} B"


def tmem_panel(facts: Structure, width: float = WIDTH) -> Panel:
    """The 512 columns of each CTA's tensor memory, and whose MMAs write them."""
    ctas = sorted({c.cta for c in facts.columns})
    height, left = 30, 60
    scale = (width - left) / 512
    parts = [text(0, 10, "tensor memory: columns that MMAs write, 128 lanes each", 10, bold=True)]
    for row, cta in enumerate(ctas):
        y = 24 + row * (height + 8)
        parts.append(text(left - 6, y + 19, f"CTA {cta}", 9, "end"))
        parts.append(rect(left, y, 512 * scale, height, "light", "grey"))
        for i, used in enumerate(c for c in facts.columns if c.cta == cta):
            x, extent = left + used.first * scale, used.count * scale
            parts.append(rect(x, y, extent, height, SERIES[i % len(SERIES)], opacity=0.5))
            whose = f"MMAs of {used.issuer.name}" + f" of CTA {used.issuer.cta}" * (len(ctas) > 1)
            label = f"{used.first}-{used.first + used.count - 1}: {whose}"
            anchor = "middle" if extent > 5.6 * len(label) else "start"
            parts.append(text(x + (extent / 2 if anchor == "middle" else 4), y + 19, label, 9, anchor))
    return width, 24 + len(ctas) * (height + 8), alike(parts)


def barrier_panel(facts: Structure, width: float = WIDTH, thread_barriers: bool = True) -> Panel:
    """A column for each agent, a row for each barrier: dots signal it, arrowheads wait for it."""
    barriers = [b for b in facts.barriers if thread_barriers or b.init is not None]
    busy = {agent for barrier in barriers for agent in (*barrier.signals, *barrier.waiters)}
    agents = [agent for agent in facts.agents if agent in busy]
    several = len({agent.cta for agent in agents}) > 1
    left, top, row = (170 if several else 120), HEAD + 10, 30
    step = max(60 if several else 70, (width - left) / len(agents))
    place = {agent: left + (i + 0.5) * step for i, agent in enumerate(agents)}
    bottom = top + len(barriers) * row + 6
    heads = [head for agent, x in place.items() for head in agent_head(agent, x, step, several)]
    columns = [line(x, top - 4, x, bottom, colour_of(agent), 1) for agent, x in place.items()]
    levels = [(barrier, top + (i + 0.6) * row) for i, barrier in enumerate(barriers)]
    names = [name for barrier, y in levels for name in barrier_name(barrier, y, several)]
    legend = "dot: signals (B: TMA brings bytes, C: commit of MMAs, A: threads arrive); arrow: waits"
    parts = [
        text(0, 10, "who signals and who awaits each barrier", 10, bold=True),
        *alike([*heads, *names, *columns]),
        *barrier_rows(levels, place),
        text(0, bottom + 14, legend, 8.5, fill="grey"),
    ]
    return left + len(agents) * step, bottom + 18, parts


def agent_head(agent: Agent, x: float, step: float, several: bool) -> list[Shape]:
    """The title of a column, in two or three lines."""
    lines = [f"CTA {agent.cta}"] * several + [agent.name, ", ".join(agent.roles)]
    size = 8.5 if step > 66 else 8
    first = HEAD - 10 * (len(lines) - 1)
    return [
        text(x, first + 10 * i, said, size, "middle", bold=i == several)
        for i, said in enumerate(lines)
        if said
    ]


def colour_of(agent: Agent) -> str:
    roles = [KINDS[role] for role in agent.roles if role in KINDS]
    return UNIT_KINDS.get(agent.name) or (roles[0] if len(roles) == 1 else "grey")


def barrier_name(barrier: Barrier, y: float, several: bool) -> list[Shape]:
    """The name and count of a barrier, on the left."""
    where = f" of CTA {barrier.cta}" if several and barrier.name != "cluster_sync" else ""
    slots = f" x {barrier.slots}" if barrier.slots > 1 else ""
    parts = [text(0, y, f"{barrier.name}{slots}{where}", 9, bold=True)]
    if barrier.init is not None:
        count = f"init {barrier.init}" + f", {barrier.bytes} B" * bool(barrier.bytes)
        parts.append(text(0, y + 10, count, 8, fill="grey"))
    return parts


def barrier_rows(levels: list[tuple[Barrier, float]], place: dict[Agent, float]) -> list[Part]:
    """A line for each barrier through the columns of its agents, with a dot or an arrowhead at each."""
    rows: dict[str, list] = {"ink": [], "grey": []}  # of mbarriers; of barriers of threads
    dots: list[tuple[str, float, float]] = []
    heads = ""
    for barrier, y in levels:
        columns = [place[agent] for agent in (*barrier.signals, *barrier.waiters) if agent in place]
        first, last = min(columns), max(columns)
        rows["grey" if barrier.init is None else "ink"].append((first, y, last, y))
        for agent, kind in barrier.signals.items():
            dots.append((kind[0].upper(), place[agent], y))
        for agent in barrier.waiters:
            heads += arrowhead(place[agent], y, agent in barrier.signals, first, last)
    return [
        *(lines(ends, tone, 1) for tone, ends in rows.items() if ends),
        "<defs>",
        *(part for letter in dict.fromkeys(letter for letter, _, _ in dots) for part in dot(letter)),
        "</defs>",
        *(f'<use href="#{letter}" x="{number(x)}" y="{number(y)}"/>' for letter, x, y in dots),
        Shape(f'path d="{heads}"', ""),
    ]


def dot(letter: str) -> list[Part]:
    """A dot with a letter, defined under that name, for use wherever an agent signals."""
    ring = f'<circle r="6" fill="white" stroke="{colour("ink")}"/>'
    return [f'<g id="{letter}">', ring, text(0, 3, letter, 8, "middle"), "</g>"]


def arrowhead(x: float, y: float, signals_too: bool, first: float, last: float) -> str:
    """The path of a triangle that points at a column from the line's side."""
    if signals_too:  # beside the agent's own dot
        return f"M{number(x + 7)} {number(y)}l8-4v8z"
    turn = 1 if x > first or first == last else -1
    return f"M{number(x - 2 * turn)} {number(y)}l{-8 * turn}-4v8z"
