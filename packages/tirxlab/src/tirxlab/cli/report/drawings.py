"""The page's own pictures as SVG in the page's colours (CSS classes): where D is wrong, and the roofline."""

from __future__ import annotations

import math
from html import escape

from tirxlab.cli.report.model import Roofline
from tirxlab.explain.mismatch_map import MismatchMap

MAP = 320  # pixels of the longer side of a map
LEVELS = 4  # shades of a cell, by the share of its elements that are wrong
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 640, 380, 56, 28, 44, 36  # of the roofline
# Offsets for the names of a roofline's points, in turn, so that the names of near points do not overlap.
_SIDES = ((8, -6), (8, 14), (-8, -6), (-8, 14))


def tiles_svg(mismatch: MismatchMap) -> str:
    """D in cells, darker where more elements are wrong; a frame marks the cell that is drawn in detail."""
    scale = MAP / max(mismatch.rows, mismatch.columns)
    shapes = [_rect(0, 0, mismatch.columns * scale, mismatch.rows * scale, "right")]
    for r, row in enumerate(mismatch.counts):
        for c, count in enumerate(row):
            if count:
                height = min(mismatch.cell, mismatch.rows - r * mismatch.cell)
                width = min(mismatch.cell, mismatch.columns - c * mismatch.cell)
                level = max(1, math.ceil(LEVELS * count / (height * width)))
                kind = "unwritten" if mismatch.unwritten[r][c] == count else f"level{level}"
                x, y = c * mismatch.cell * scale, r * mismatch.cell * scale
                said = f"rows from {r * mismatch.cell}, columns from {c * mismatch.cell}: {count} wrong"
                said += f", {mismatch.unwritten[r][c]} of them never written"
                shapes.append(_rect(x, y, width * scale, height * scale, kind, said))
    x, y, size = mismatch.zoom_column * scale, mismatch.zoom_row * scale, len(mismatch.zoom) * scale
    shapes.append(_rect(x, y, size, size, "frame"))
    return _svg(
        mismatch.columns * scale, mismatch.rows * scale, shapes, "Cells of D; the darker, the more is wrong"
    )


def zoom_svg(mismatch: MismatchMap) -> str:
    """The elements of one cell: those that are wrong, and those that were never written."""
    rows, columns = len(mismatch.zoom), len(mismatch.zoom[0])
    scale = MAP / max(rows, columns)
    shapes = [_rect(0, 0, columns * scale, rows * scale, "right")]
    for state, name in (("1", "level4"), ("2", "unwritten")):
        runs = [
            f"M{c * scale:g},{r * scale:g}h{n * scale:g}v{scale:g}h-{n * scale:g}z"
            for r, row in enumerate(mismatch.zoom)
            for c, n in _runs(row, state)
        ]
        if runs:
            shapes.append(_fill('<path class="{}" d="{}"/>', name, "".join(runs)))
    return _svg(columns * scale, rows * scale, shapes, "Elements of one cell of D")


def _runs(row: str, state: str) -> list[tuple[int, int]]:
    """(first column, count) of each stretch of a state in a row."""
    found, start = [], None
    for c, each in enumerate([*row, ""]):
        if each == state and start is None:
            start = c
        elif each != state and start is not None:
            found.append((start, c - start))
            start = None
    return found


def roofline_svg(roof: Roofline) -> str:
    """TFLOP/s over operations per byte, both logarithmic; a dot per kernel, a ring at a published speed."""
    ridge = roof.peak_tflops / roof.terabytes
    spread = [point.intensity for point in roof.points] + [ridge]
    x_low, x_high = _decades(min(spread) / 2, max(spread) * 2)
    speeds = [p.tflops for p in roof.points] + [p.published for p in roof.points if p.published]
    y_low, y_high = _decades(min([*speeds, roof.peak_tflops]), roof.peak_tflops * 1.2)

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - y_low) / (y_high - y_low) * (HEIGHT - BOTTOM - TOP)

    shapes = _roof_axes(x, y, (x_low, x_high), (y_low, y_high))
    first = max(10**x_low, 10**y_low / roof.terabytes)
    roof_line = [(first, first * roof.terabytes), (ridge, roof.peak_tflops), (10**x_high, roof.peak_tflops)]
    path = " ".join(f"{'L' if i else 'M'}{x(a):.1f},{y(b):.1f}" for i, (a, b) in enumerate(roof_line))
    shapes.append(_fill('<path class="roof" d="{}"/>', path))
    shapes.append(_text(WIDTH - RIGHT, y(roof.peak_tflops) - 6, f"{roof.peak_tflops:,.0f} TFLOP/s", "end"))
    shapes.append(_text(x(first) + 24, y(first * roof.terabytes) + 6, f"{roof.terabytes} TB/s"))
    for number, point in enumerate(roof.points):
        shapes += _point(point, x(point.intensity), y, _SIDES[number % len(_SIDES)])
    return _svg(WIDTH, HEIGHT, shapes, f"Roofline of {roof.chip}")


def _point(point, at: float, y, side: tuple[int, int]) -> list[str]:
    said = f"{point.name}: {point.tflops:,.0f} TFLOP/s predicted"
    said += f", {point.published:,.0f} published" if point.published else ""
    shapes = [_fill('<circle class="ring" cx="{:.1f}" cy="{:.1f}" r="6"/>', at, y(point.published))] \
        if point.published else []  # fmt: skip
    dot = '<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>'
    shapes.append(_fill(dot, at, y(point.tflops), said))
    anchor = "start" if side[0] > 0 else "end"
    shapes.append(_text(at + side[0], y(point.tflops) + side[1], point.name, anchor))
    return shapes


def _roof_axes(x, y, spread: tuple[int, int], speeds: tuple[int, int]) -> list[str]:
    line = '<path class="grid" d="M{:.1f},{:.1f}L{:.1f},{:.1f}"/>'
    shapes = []
    for power in range(spread[0], spread[1] + 1):
        at = x(10.0**power)
        shapes.append(_fill(line, at, TOP, at, HEIGHT - BOTTOM))
        shapes.append(_text(at, HEIGHT - BOTTOM + 16, f"{10.0**power:g}", "middle"))
    for power in range(speeds[0], speeds[1] + 1):
        at = y(10.0**power)
        shapes.append(_fill(line, LEFT, at, WIDTH - RIGHT, at))
        shapes.append(_text(LEFT - 6, at + 4, f"{10.0**power:g}", "end"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    shapes.append(_text(middle, HEIGHT - 6, "floating-point operations per byte of global memory", "middle"))
    return [*shapes, _text(4, 14, "TFLOP/s")]


def _decades(low: float, high: float) -> tuple[int, int]:
    return math.floor(math.log10(low)), math.ceil(math.log10(high))


def _fill(shape: str, *values) -> str:
    """The shape with its values filled in; texts are escaped."""
    return shape.format(*(escape(value) if isinstance(value, str) else value for value in values))


def _rect(x: float, y: float, width: float, height: float, name: str, said: str = "") -> str:
    title = _fill("<title>{}</title>", said) if said else ""
    shape = '<rect class="{}" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}">'
    return _fill(shape, name, x, y, width, height) + title + "</rect>"


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return _fill('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>', x, y, anchor, words)


def _svg(width: float, height: float, shapes: list[str], label: str) -> str:
    head = '<svg viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}" height="{:.0f}" role="img" aria-label="{}">'
    parts = [_fill(head, width, height, width, height, label), *shapes, "</svg>"]
    return "\n".join(parts)
