"""A deadlock's cycle of waits as SVG in the page's colours: boxes in a column, an arrow back at the left.

In a column it fits a phone, and no texts overlap, however long the names are.
"""

from __future__ import annotations

import textwrap
from html import escape

from tirxlab.cli.report.model import Waits

WIDTH, LEFT, LINE, PAD = 440, 26, 17, 8  # pixels; LEFT: the lane of the arrow back
LETTERS = 48  # in a line of text
_TIP = (
    '<defs><marker id="ring-tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>'
)


def ring_svg(ring: list[Waits]) -> str:
    """The cycle: each box waits for what its arrow's text names; the last arrow leads to the first box."""
    y, parts = 4, [_TIP]
    for number, one in enumerate(ring):
        shape, y = _box(one, y)
        parts += shape
        words, below = _words([f"waits for {one.wants}", one.state], LEFT + 30, y + PAD, "wants")
        parts += words
        last = number == len(ring) - 1
        parts.append(
            _arrow(f"M{LEFT + 16},{y} V{below} " + (f"H8 V{4 + LINE} H{LEFT}" if last else f"v{PAD}"))
        )
        y = below + PAD
    said = " -> ".join(one.who for one in [*ring, ring[0]])
    head = (
        f'<svg viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img" aria-label="{escape(said)}">'
    )
    return head + "".join(parts) + "</svg>"


def _box(one: Waits, y: int) -> tuple[list[str], int]:
    """(shapes of a box, the y at which it ends)."""
    who, end = _words([one.who], LEFT + PAD, y + 4, "who")
    line, end = _words([f"is at line {one.line}"] if one.line else [], LEFT + PAD, end, "line-of")
    height = end - y + 5
    frame = f'<rect class="group" x="{LEFT}" y="{y}" width="{WIDTH - LEFT - 2}" height="{height}" rx="5"/>'
    return [frame, *who, *line], y + height


def _words(said: list[str], x: int, y: int, kind: str) -> tuple[list[str], int]:
    """(the texts, wrapped, one line below the other; the y at which they end)."""
    parts = []
    for line in (line for text in said if text for line in textwrap.wrap(text, LETTERS)):
        y += LINE
        parts.append(f'<text class="{kind}" x="{x}" y="{y - 4}">{escape(line)}</text>')
    return parts, y


def _arrow(path: str) -> str:
    return f'<path class="back" d="{path}" marker-end="url(#ring-tip)"/>'
