"""Facts -> SVG: tiles of the grid, shared memory, tensor memory, agents and the barriers between them.

Each panel is a function that returns (width, height, SVG parts); `page` puts them below each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tirxlab.explain.picture.facts import Agent, Barrier, Block, Structure
from tirxlab.explain.picture.svg import SERIES, document, line, rect, squares, text
from tirxlab.explain.picture.tiles import CELL

WIDTH = 860
HEAD = 48  # of the barrier panel: the last line above its columns
Panel = tuple[float, float, list[str]]
KINDS = {"TMA": "tma", "MMA": "mma", "write-back": "threads"}  # role -> colour
UNIT_KINDS = {"TMA loads": "tma", "tensor core": "mma", "TMA stores": "store"}
LIMIT = 227 * 1024  # bytes of shared memory of a CTA


def page(title: str, panels: list[Panel]) -> str:
    """An SVG document of all panels, with a title."""
    parts, y = [text(10, 22, title, 14, bold=True)], 40.0
    for _, height, inner in panels:
        parts.append(f'<g transform="translate(10 {y:.0f})">\n' + "\n".join(inner) + "\n</g>")
        y += height + 22
    return document(max(width for width, _, _ in panels) + 20, y, parts)


def one(panel: Panel) -> str:
    """One panel as a document of its own."""
    width, height, inner = panel
    shifted = ['<g transform="translate(5 5)">', *inner, "</g>"]
    return document(width + 10, height + 10, shifted)


def tile_panel(
    owner: np.ndarray, per_cluster: int, width: float = WIDTH, chosen: int = -1, order: Sequence = ()
) -> Panel:
    """D in cells of 128x128, each with the number of the cluster (or CTA) that writes it.

    The cells of cluster `chosen` have a frame and, from `order` (cells), their place in it for a number.
    """
    what = "CTA" if per_cluster == 1 else "cluster"
    rows, columns = owner.shape
    cell = max(14, min(48, width * 0.6 / columns, 420 / rows))
    title = f"D in cells of {CELL}x{CELL}: the {what} that writes each"
    parts = [
        text(0, 10, title, 10, bold=True),
        rect(0, 20, columns * cell, rows * cell, "light", opacity=0.6),
    ]
    parts += [line(0, 20 + i * cell, columns * cell, 20 + i * cell, "white") for i in range(1, rows)]
    parts += [line(i * cell, 20, i * cell, 20 + rows * cell, "white") for i in range(1, columns)]
    framed, said_in = [], []
    looks: dict[tuple, list] = {}
    for (row, column), number in np.ndenumerate(owner):
        if number < 0:
            continue
        x, y = column * cell, 20 + row * cell
        mine = number == chosen and len(np.unique(owner)) > 1
        looks.setdefault((SERIES[number % len(SERIES)], 0.8 if mine else 0.4), []).append((x, y))
        placed = mine and (row, column) in order
        said = f"{order.index((row, column)) + 1}." if placed else number
        middle = x + cell / 2, y + cell / 2 + 3
        said_in.append(text(*middle, said, min(12, cell * 0.5), "middle", bold=placed))
        if mine:
            framed.append(rect(x + 0.7, y + 0.7, cell - 1.4, cell - 1.4, "none", "ink", width=1.6))
    remark = tile_remark(owner, what, chosen if framed else -1, bool(order))
    parts += [squares(corners, cell, *look) for look, corners in looks.items()] + said_in
    parts += [*framed, text(0, 34 + rows * cell, remark, 8.5, fill="grey")]
    said = max(6.1 * len(title), 5.2 * len(remark))  # in the widths of the two fonts
    return max(columns * cell, said), rows * cell + 40, parts


def tile_remark(owner: np.ndarray, what: str, framed: int, ordered: bool) -> str:
    """What the colours, the frame and its numbers mean."""
    said = [f"framed: {what} {framed}"] if framed >= 0 else []
    said += ["in the frame: the order of its stores"] if framed >= 0 and ordered else []
    return "; ".join(said + (["grey: written by nobody"] if (owner < 0).any() else []))


def memory_panel(blocks: list[Block], shared_bytes: int, width: float = WIDTH) -> Panel:
    """Dynamic shared memory of a CTA to scale, in the parts that the kernel counts (stages, consumers)."""
    parts = [text(0, 10, "shared memory of a CTA", 10, bold=True)]
    for i, block in enumerate(b for b in blocks if b.size >= 1024):
        share = width * block.size / shared_bytes / block.parts
        x = width * block.offset / shared_bytes
        for part in range(block.parts):
            parts.append(rect(x + part * share, 22, share, 40, SERIES[i % len(SERIES)], opacity=0.5))
            label = f"{part}" if block.parts > 1 else ""
            parts.append(text(x + (part + 0.5) * share, 57, label, 8.5, "middle"))
        middle = x + width * block.size / shared_bytes / 2
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
    return width, 124, parts


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
    return width, 24 + len(ctas) * (height + 8), parts


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
    parts = [text(0, 10, "who signals and who awaits each barrier", 10, bold=True)]
    for agent, x in place.items():
        parts += agent_head(agent, x, step, several)
        parts.append(line(x, top - 4, x, bottom, colour_of(agent), 1))
    for i, barrier in enumerate(barriers):
        parts += barrier_row(barrier, top + (i + 0.6) * row, place, several)
    legend = "dot: signals (B: TMA brings bytes, C: commit of MMAs, A: threads arrive); arrow: waits"
    parts.append(text(0, bottom + 14, legend, 8.5, fill="grey"))
    return left + len(agents) * step, bottom + 18, parts


def agent_head(agent: Agent, x: float, step: float, several: bool) -> list[str]:
    """The title of a column, in two or three lines."""
    lines = [f"CTA {agent.cta}"] * several + [agent.name, ", ".join(agent.roles)]
    size = 8.5 if step > 66 else 8
    first = HEAD - 10 * (len(lines) - 1)
    return [text(x, first + 10 * i, said, size, "middle", bold=i == several) for i, said in enumerate(lines)]


def colour_of(agent: Agent) -> str:
    roles = [KINDS[role] for role in agent.roles if role in KINDS]
    return UNIT_KINDS.get(agent.name) or (roles[0] if len(roles) == 1 else "grey")


def barrier_row(barrier: Barrier, y: float, place: dict[Agent, float], several: bool) -> list[str]:
    """The name and count of a barrier on the left, and its line through the columns."""
    is_thread_barrier = barrier.init is None
    where = f" of CTA {barrier.cta}" if several and barrier.name != "cluster_sync" else ""
    slots = f" x {barrier.slots}" if barrier.slots > 1 else ""
    count = "" if is_thread_barrier else f"init {barrier.init}" + f", {barrier.bytes} B" * bool(barrier.bytes)
    parts = [
        text(0, y, f"{barrier.name}{slots}{where}", 9, bold=True),
        text(0, y + 10, count, 8, fill="grey"),
    ]
    columns = [place[agent] for agent in (*barrier.signals, *barrier.waiters) if agent in place]
    tone = "grey" if is_thread_barrier else "ink"
    parts.append(line(min(columns), y, max(columns), y, tone, 1))
    for agent, kind in barrier.signals.items():
        x = place[agent]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="white" stroke="#212529"/>')
        parts.append(text(x, y + 3, kind[0].upper(), 8, "middle"))
    for agent in barrier.waiters:
        parts += arrowhead(place[agent], y, agent in barrier.signals, min(columns), max(columns))
    return parts


def arrowhead(x: float, y: float, signals_too: bool, first: float, last: float) -> list[str]:
    """A filled triangle that points at a column, from the side that the line comes from."""
    x += 13 if signals_too else 0
    turn = 1 if x > first or first == last else -1
    tip = x - 2 * turn
    points = f"{tip},{y} {tip - 8 * turn},{y - 4} {tip - 8 * turn},{y + 4}"
    if signals_too:  # beside the agent's own dot
        points = f"{x - 6},{y} {x + 2},{y - 4} {x + 2},{y + 4}"
    return [f'<polygon points="{points}" fill="#212529"/>']
