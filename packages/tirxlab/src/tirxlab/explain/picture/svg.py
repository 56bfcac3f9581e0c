"""A few SVG shapes. Lengths are in points; colours are names of PALETTE or SVG colours.

A document has a background of its own: on a dark page dark ink would vanish.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

PALETTE = {
    "tma": "#2a7de1", "mma": "#d9480f", "threads": "#2b8a3e", "store": "#7048e8", "grey": "#868e96",
    "light": "#e9ecef", "ink": "#212529",
}  # fmt: skip
SERIES = ("#2a7de1", "#d9480f", "#2b8a3e", "#7048e8", "#c2255c", "#0c8599", "#e67700", "#495057")
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def colour(name: str) -> str:
    return PALETTE.get(name, name)


def rect(x, y, w, h, fill="light", stroke="white", opacity=1.0, width=0.5) -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}" fill="{colour(fill)}" '
        f'fill-opacity="{opacity}" stroke="{colour(stroke)}" stroke-width="{width}"/>'
    )


def text(x, y, content, size=9, anchor="start", fill="ink", bold=False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}" fill="{colour(fill)}"'
        f' font-family="{FONT}"{weight}>{escape(str(content))}</text>'
    )


def line(x1, y1, x2, y2, stroke="grey", width=0.5) -> str:
    return (
        f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{colour(stroke)}" '
        f'stroke-width="{width}"/>'
    )


def document(width: float, height: float, parts: list[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
