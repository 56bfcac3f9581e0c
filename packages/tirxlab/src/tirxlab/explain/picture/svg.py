"""A few SVG shapes. Lengths are in points; colours are names of PALETTE or SVG colours.

A document has a background of its own: on a dark page dark ink would vanish.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from xml.sax.saxutils import escape

PALETTE = {
    "tma": "#2a7de1", "mma": "#d9480f", "threads": "#2b8a3e", "store": "#7048e8", "grey": "#868e96",
    "light": "#e9ecef", "ink": "#212529",
}  # fmt: skip
SERIES = ("#2a7de1", "#d9480f", "#2b8a3e", "#7048e8", "#c2255c", "#0c8599", "#e67700", "#495057")
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
OFTEN = 3  # shapes of one look: then it becomes a class
_SHAPE = re.compile(r'<(?:rect|text|line|circle|polygon)(?: (?!class)[\w-]+="[^"]*")+(?=/?>)')
_CLASSED = re.compile(r'<(?:rect|text|line|circle|polygon) [^<]* class="(s\d+)"(?:/>|>[^<]*</text>)$')
_LOOK = re.compile(r' (fill|fill-opacity|stroke|stroke-width|font-size|text-anchor|font-weight)="([^"]*)"')


def colour(name: str) -> str:
    return PALETTE.get(name, name)


def number(value: float) -> str:
    """At most two decimals, none that say nothing."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def rect(x, y, w, h, fill="light", stroke="white", opacity=1.0, width=0.5) -> str:
    clear = f' fill-opacity="{opacity:g}"' if opacity != 1 else ""
    edge = f' stroke="{colour(stroke)}" stroke-width="{width:g}"' if stroke else ""
    at = f'x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}"'
    return f'<rect {at} fill="{colour(fill)}"{clear}{edge}/>'


def squares(corners, side, fill, opacity=1.0) -> str:
    """Squares of one size and look, as one shape; those side by side are one box with lines in it."""
    path, wide = "", 0
    rows = [*corners, None]
    for at, following in zip(rows, rows[1:], strict=False):
        wide += 1
        if following != (at[0] + side, at[1]):
            path += _row(at[0] - (wide - 1) * side, at[1], side, wide)
            wide = 0
    look = f'fill="{colour(fill)}" fill-opacity="{opacity:g}" stroke="white" stroke-width="0.5"'
    return f'<path d="{path}" {look}/>'


def _row(x, y, side, count: int) -> str:
    high, whole = number(side), number(count * side)
    inner = [f"m{high} 0v{high}", *[f"m{high}-{high}v{high}"] * (count - 2)][: count - 1]
    return f"M{number(x)} {number(y)}h{whole}v{high}h-{whole}z{''.join(inner)}"


def text(x, y, content, size: float = 9, anchor="start", fill="ink", bold=False) -> str:
    """What the document says of all text, ink and the letters of 9 points, is not said again."""
    more = f' font-size="{size:g}"' if size != 9 else ""
    more += f' text-anchor="{anchor}"' if anchor != "start" else ""
    more += f' fill="{colour(fill)}"' if fill != "ink" else ""
    more += ' font-weight="bold"' if bold else ""
    return f'<text x="{number(x)}" y="{number(y)}"{more}>{escape(str(content))}</text>'


def line(x1, y1, x2, y2, stroke="grey", width=0.5) -> str:
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line {ends} stroke="{colour(stroke)}" stroke-width="{width:g}"/>'


def document(width: float, height: float, parts: list[str], style: str = "") -> str:
    body, classes = shared("\n".join(part for part in parts if part))
    style = f"{style} {classes}".strip()
    sizes = (
        f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    )
    letters = f'font-family="{FONT}" font-size="9" fill="{PALETTE["ink"]}"'
    rules = f"<style>{style}</style>\n" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {sizes} {letters}>\n{rules}'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def shared(body: str) -> tuple[str, str]:
    """(the shapes, rules of style): a look that many shapes have is said once, as a class."""
    counted = Counter(look for shape in _SHAPE.findall(body) if (look := _look(shape)))
    names = {look: f"s{i}" for i, (look, n) in enumerate(counted.most_common()) if n >= OFTEN}

    def named(shape: re.Match) -> str:
        name = names.get(_look(shape[0]))
        return _LOOK.sub("", shape[0]) + f' class="{name}"' if name else shape[0]

    rules = " ".join(f".{name}{{{look}}}" for look, name in names.items())
    return _grouped(_SHAPE.sub(named, body)), rules


def _grouped(body: str) -> str:
    """OFTEN shapes of one class in lines one below the other: the class is said once, of all of them."""
    made: list[str] = []
    for name, run in itertools.groupby(body.split("\n"), lambda line: (_CLASSED.match(line) or [""] * 2)[1]):
        lines = list(run)
        if name and len(lines) >= OFTEN:
            bare = (line.replace(f' class="{name}"', "", 1) for line in lines)
            lines = [f'<g class="{name}">', *bare, "</g>"]
        made += lines
    return "\n".join(made)


def _look(shape: str) -> str:
    """All but place and size, as a style sheet has it; there a size of letters needs its unit."""
    units = {"font-size": "px"}
    return ";".join(f"{name}:{value}{units.get(name, '')}" for name, value in _LOOK.findall(shape))
