"""A few SVG shapes. Lengths are in points; colours are names of PALETTE or SVG colours.

Neighbours with the same look are written as one group that states it once; `alike` sorts shapes so that these
are neighbours. A document has its own background, because dark ink would vanish on a dark page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

PALETTE = {
    "tma": "#2a7de1", "mma": "#d9480f", "threads": "#2b8a3e", "store": "#7048e8", "grey": "#868e96",
    "light": "#e9ecef", "ink": "#212529",
}  # fmt: skip
SERIES = ("#2a7de1", "#d9480f", "#2b8a3e", "#7048e8", "#c2255c", "#0c8599", "#e67700", "#495057")
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"


class Shape(NamedTuple):
    """An element of SVG."""

    place: str  # its name, and the attributes that only it has
    look: str  # attributes that neighbours may share
    inside: str = ""  # content, of text elements only

    def markup(self, look: str) -> str:
        end = f">{self.inside}</{self.place.split()[0]}>" if self.inside else "/>"
        return f"<{self.place}{look}{end}"


Part = Shape | str  # a string is written as it is


def colour(name: str) -> str:
    return PALETTE.get(name, name)


def number(value: float) -> str:
    """A number with at most one decimal; without it if it is 0."""
    return f"{value:.1f}".removesuffix(".0")


def box(x, y, w, h) -> str:
    """A box as a part of a path."""
    return f"M{number(x)} {number(y)}h{number(w)}v{number(h)}h{number(-w)}z"


def rect(x, y, w, h, fill="light", stroke="white", opacity=1.0, width=0.5) -> Shape:
    return rects([(x, y, w, h)], fill, stroke, opacity, width)


def rects(boxes: Iterable[tuple], fill="light", stroke="white", opacity=1.0, width=0.5) -> Shape:
    """Boxes (x, y, width, height) as one shape; where they overlap, the fill does not get darker."""
    clear = f' fill-opacity="{opacity:g}"' if opacity != 1 else ""
    edge = _edge(stroke, width) if stroke else ""
    path = "".join(box(*one) for one in boxes)
    return Shape(f'path d="{path}"', f' fill="{colour(fill)}"{clear}{edge}')


def line(x1, y1, x2, y2, stroke="grey", width=0.5) -> Shape:
    return lines([(x1, y1, x2, y2)], stroke, width)


def lines(ends: Iterable[tuple], stroke="grey", width=0.5) -> Shape:
    """Vertical and horizontal lines (x1, y1, x2, y2) as one shape."""
    path = "".join(
        f"M{number(x1)} {number(y1)}" + (f"V{number(y2)}" if x1 == x2 else f"H{number(x2)}")
        for x1, y1, x2, y2 in ends
    )
    return Shape(f'path d="{path}"', _edge(stroke, width))


def _edge(stroke: str, width: float) -> str:
    return f' stroke="{colour(stroke)}"' + (f' stroke-width="{width:g}"' if width != 1 else "")


def text(x, y, content, size: float = 9, anchor="start", fill="ink", bold=False) -> Shape:
    look = _letters(size, anchor, fill, bold)
    return Shape(f'text x="{number(x)}" y="{number(y)}"', look, escape(str(content)))


def texts(y, row: Iterable[tuple], size: float = 9, anchor="start", fill="ink", bold=False) -> Shape:
    """Texts (x, content) in one row as one shape."""
    inside = "".join(f'<text x="{number(x)}">{escape(str(content))}</text>' for x, content in row)
    return Shape(f'g transform="translate(0 {number(y)})"', _letters(size, anchor, fill, bold), inside)


def _letters(size: float, anchor: str, fill: str, bold: bool) -> str:
    """Attributes of text, without the document's defaults: ink colour, 9 points."""
    look = f' font-size="{size:g}"' if size != 9 else ""
    look += f' text-anchor="{anchor}"' if anchor != "start" else ""
    look += f' fill="{colour(fill)}"' if fill != "ink" else ""
    return look + (' font-weight="bold"' if bold else "")


def mosaic(x, y, side, rows: int, columns: int, looks: Mapping[tuple[str, float], Iterable]) -> list[Part]:
    """The cells (row, column) of each (colour, opacity), and the lines between all cells of the board.

    Neighbours in a row are drawn as one stroke, as wide as a cell, with lengths in cells.
    """
    in_cells = f'<g transform="translate({number(x)} {y + side / 2:g}) scale({side:g})">'
    strokes = [
        Shape(f'path d="{_strokes(cells)}" stroke="{colour(fill)}"', f' stroke-opacity="{opacity:g}"')
        for (fill, opacity), cells in looks.items()
    ]
    right, bottom = x + columns * side, y + rows * side
    level = [(x, y + i * side, right, y + i * side) for i in range(rows + 1)]
    upright = [(x + i * side, y, x + i * side, bottom) for i in range(columns + 1)]
    return [in_cells, *alike(strokes), "</g>", lines(level + upright, "white", 0.8)]


def _strokes(cells: Iterable[tuple[int, int]]) -> str:
    """A stroke for each stretch of adjacent cells in a row."""
    path = ""
    placed = enumerate(sorted(cells))
    for _, stretch in itertools.groupby(placed, lambda item: (item[1][0], item[1][1] - item[0])):
        (_, (row, column)), *rest = stretch
        path += f"M{column} {row}h{1 + len(rest)}"
    return path


def labels(x, y, side, said: Mapping[tuple[int, int], object], size: float, bold=False) -> list[Part]:
    """The text in each cell (row, column) of a board; a row equal to one above is a reference to it."""
    rows: dict[int, list] = {}
    for (row, column), content in said.items():
        rows.setdefault(row, []).append((x + (column + 0.5) * side, content))
    same: dict[tuple, list[int]] = {}
    for row, words in rows.items():
        same.setdefault(tuple(words), []).append(row)
    parts: list[Part] = []
    for contents, (first, *others) in same.items():
        one = texts(y + (first + 0.5) * side + 3, contents, size, "middle", bold=bold)
        name = f"row{first}-{number(x)}"
        parts.append(one._replace(place=f'{one.place} id="{name}"') if others else one)
        for row in others:
            parts.append(Shape(f'use href="#{name}" y="{number((row - first) * side)}"', one.look))
    return parts


def alike(shapes: Iterable[Shape]) -> list[Part]:
    """The shapes, texts last (on top), and those with the same look together."""
    looks: dict[str, list[Part]] = {}
    for shape in sorted(shapes, key=lambda shape: shape.inside != ""):
        looks.setdefault(shape.look, []).append(shape)
    return [shape for same in looks.values() for shape in same]


def document(width: float, height: float, parts: Sequence[Part], style: str = "") -> str:
    sizes = (
        f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    )
    letters = f'font-family="{FONT}" font-size="9" fill="{PALETTE["ink"]}"'
    rules = [f"<style>{style}</style>"] if style else []
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {sizes} {letters}>', *rules,
        '<rect width="100%" height="100%" fill="white"/>', *_written(parts), "</svg>\n",
    ])  # fmt: skip


def _written(parts: Sequence[Part]) -> list[str]:
    made: list[str] = []
    for look, run in itertools.groupby(parts, lambda part: part.look if isinstance(part, Shape) else ""):
        same = list(run)
        own = look if len(same) == 1 else ""
        body = [part.markup(own) if isinstance(part, Shape) else part for part in same]
        made += [f"<g{look}>", *body, "</g>"] if look != own else body
    return made
