"""Timelines as SVG: a picture of one run, or of several runs below each other on a common axis.

A band per role or unit, an axis with its unit, waits labelled with their barrier, and arrows from each signal
to the wait that it ends. Bars narrower than half a pixel are drawn together with neighbours of the same kind,
so that a picture has at most a few thousand shapes, however long the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ptxsim.trace.bands import Arrow, Band, Bar, arranged, arrows
from ptxsim.trace.export import MODELS, NO_TIMELINE
from ptxsim.trace.scale import axis_unit, marks, number, rounded, words
from ptxsim.trace.schedule import WAITS, Timeline

COLOURS = {
    "load": "#2a7de1",
    "mma": "#2b8a3e",
    "store": "#7048e8",
    "wait": "#dee2e6",
    "stuck": "#e03131",
    "issue": "#495057",
}  # other kinds: data that warps move themselves
OTHER = "#e67700"
ARROWS = 40  # drawn at most, for the longest waits
LEFT, WIDTH, ROW, GAP = 250, 940, 16, 8  # pixels
BAR = ROW - 3  # pixels: height of a bar, drawn as a stroke
_LETTER = 6.2  # pixels per letter at 10 px
_FONT = "font-family='DejaVu Sans Mono, Menlo, Consolas, monospace'"


def svg(timeline: Timeline, title: str) -> str:
    """A picture of one run."""
    return stack([(title, timeline)])


def stack(runs: list[tuple[str, Timeline]]) -> str:
    """Several (title, Timeline) below each other, on one axis with one unit."""
    if not runs or not all(isinstance(timeline, Timeline) for _, timeline in runs):
        raise ValueError(NO_TIMELINE)
    end = max(max(timeline.ticks for _, timeline in runs), 1)
    unit = runs[0][1].unit
    parts: list[str] = []
    scale, y, drawn = WIDTH / end, 44.0, 0
    for title, timeline in runs:
        panel, y, count = _panel(timeline, title, y, scale)
        parts, drawn = parts + panel, drawn + count
    grid = _axis(end, unit, 40, y)
    words_ = [
        _text(8, 18, MODELS[unit], "fill='#495057' font-size='10'"),
        *_legend(y + 20, drawn),
    ]
    height = y + 52
    size = f"width='{LEFT + WIDTH + 24}' height='{height:.0f}' viewBox='0 0 {LEFT + WIDTH + 24} {height:.0f}'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {_FONT} font-size='11'>"
    tip = (
        "<defs><marker id='tip' viewBox='0 0 6 6' refX='6' refY='3' markerWidth='6' markerHeight='6' "
        "orient='auto'><path d='M0 0l6 3-6 3z' fill='#c2255c'/></marker></defs>"
    )
    back = "<rect width='100%' height='100%' fill='#fff'/>"
    return "\n".join([head, tip, back, *grid, *words_, *parts, "</svg>\n"])


def _panel(timeline: Timeline, title: str, y: float, scale: float) -> tuple[list[str], float, int]:
    """(shapes of one run, y where the next run begins, number of arrows)."""
    unit = timeline.unit
    end = "" if timeline.finished else ", up to the standstill"
    parts = [_text(8, y + 12, f"{title}: {words(timeline.ticks, unit)}{end}", "font-weight='bold'")]
    y += 22
    tops: dict[int, float] = {}  # event -> y of its bar
    for band in arranged(timeline):
        parts += _band(band, y, scale, unit, timeline.ticks)
        for bar in band.bars:
            tops |= dict.fromkeys(bar.events, y + bar.row * ROW)
        y += ROW * band.rows + GAP
    drawn: dict[tuple[str, str], None] = {}  # one arrow for warps of a band that wait together
    for arrow in arrows(timeline):
        if arrow.signal in tops and arrow.wait in tops and len(drawn) < ARROWS:
            drawn[_arrow(timeline, arrow, tops, scale)] = None
    style = "fill='none' stroke='#c2255c' stroke-opacity='.75' marker-end='url(#tip)'"
    pointing = [f"<g {style}>", *_grouped(drawn), "</g>"] if drawn else []
    return [*parts, *pointing], y + 10, len(drawn)


def _grouped(shapes: Iterable[tuple[str, str]]) -> list[str]:
    """Puts shapes, given as (opening tag of a group, shape), with equal opening tags into one group."""
    groups: dict[str, list[str]] = {}
    for begin, shape in shapes:
        groups.setdefault(begin, []).append(shape)
    return [line for begin, inside in groups.items() for line in (begin, *inside, "</g>")]


def _band(band: Band, y: float, scale: float, unit: str, ticks: float) -> list[str]:
    parts = [_text(8, y + 11, band.title)]
    waits = band.waits(ticks) if not band.is_unit and band.rows > 1 else ""
    if waits:
        parts.append(_text(8, y + 24, f"waits: {waits}", "fill='#868e96' font-size='9'"))
    bars, labels = [], []
    for row in range(band.rows):
        top = y + row * ROW
        for bar, alone in thinned([b for b in band.bars if b.row == row], 0.5 / scale):
            bars.append(_bar(bar, alone, top, scale, unit))
            labels += _label(bar, top, scale) if alone else []
    return [*parts, *_grouped(bars), *_grouped(labels)]


def thinned(bars: list[Bar], least: float) -> list[tuple[Bar, bool]]:
    """(bar, whether it represents itself alone): a bar narrower than `least` joins the one before it.

    It does so if both are of one kind, or if the one before is as narrow; the longest part gives the kind.
    """
    found: list[tuple[Bar, bool]] = []
    for bar in bars:
        last = found[-1][0] if found else None
        small = bar.end - bar.begin < least
        near = last is not None and bar.begin - last.end < least
        if last and small and near and (last.first.kind == bar.first.kind or last.end - last.begin < least):
            longest = max(last.first, bar.first, key=lambda e: e.end - e.begin)
            joined = Bar(longest, last.begin, bar.end, last.events + bar.events, last.amount + bar.amount)
            found[-1] = (joined, False)
        else:
            found.append((bar, True))
    return found


def _bar(bar: Bar, alone: bool, y: float, scale: float, unit: str) -> tuple[str, str]:
    """(opening tag of its kind's group, the bar with its tooltip)."""
    x, width = LEFT + bar.begin * scale, max((bar.end - bar.begin) * scale, 0.5)
    more = "" if alone else f" (and {len(bar.events) - 1} more)"
    title = f"<title>{escape(described(bar, unit) + more, quote=False)}</title>"
    shape = f"<path d='M{_at(x)} {_at(y + BAR / 2)}h{_at(width)}'>{title}</path>"
    return f"<g stroke='{COLOURS.get(bar.first.kind, OTHER)}' stroke-width='{BAR}'>", shape


def _label(bar: Bar, y: float, scale: float) -> list[tuple[str, str]]:
    """(opening tag of its kind's group, the name on a bar), if there is room."""
    name, kind, width = bar.first.name, bar.first.kind, (bar.end - bar.begin) * scale
    if kind not in (*WAITS, "load", "store") or width <= _LETTER * 0.9 * len(name) + 6:
        return []
    tone = "#495057" if kind == "wait" else "#fff"
    return [(f"<g fill='{tone}' font-size='9'>", _text(LEFT + bar.begin * scale + 3, y + 10, name))]


def described(bar: Bar, unit: str) -> str:
    """A bar in one line: what, from when to when, how much, and where in the source."""
    event = bar.first
    what = {"wait": "waits for", "stuck": "waits forever for"}.get(event.kind, event.kind + ":")
    said = f"{what} {event.name}" if event.name != event.kind else event.name
    said += f", phase {event.phase}" if event.phase is not None else ""
    name, size = axis_unit(max(bar.end, 1), unit)
    said += f", {number(rounded(bar.begin / size))} to {number(rounded(bar.end / size))} {name}"
    said += f", {bar.amount:,} {'MACs' if event.kind == 'mma' else 'B'}" if bar.amount else ""
    return said + (f", line {event.line}" if event.line else "")


def _arrow(timeline: Timeline, arrow: Arrow, tops: dict[int, float], scale: float) -> tuple[str, str]:
    """(group with the tooltip, path from the end of the signal to the end of the wait)."""
    signal, wait = timeline.events[arrow.signal], timeline.events[arrow.wait]
    top1, top2 = tops[arrow.signal], tops[arrow.wait]
    x1, x2 = LEFT + min(signal.end, wait.end) * scale, LEFT + wait.end * scale
    y1, y2 = (top1 + BAR, top2) if top2 > top1 else (top1, top2 + BAR)
    middle = _at((y1 + y2) / 2)
    curve = f"C{_at(x1)} {middle} {_at(x2)} {middle} {_at(x2)} {_at(y2)}" if x1 != x2 else f"V{_at(y2)}"
    said = f"{signal.name} ends the wait for {wait.name}"
    return f"<g><title>{escape(said, quote=False)}</title>", f"<path d='M{_at(x1)} {_at(y1)}{curve}'/>"


def _axis(end: float, unit: str, top: float, bottom: float) -> list[str]:
    """Grid lines at round values, with the unit left of the first."""
    name, size = axis_unit(end, unit)
    at = [(LEFT + moment * size * WIDTH / end, moment) for moment in marks(end / size, 10)]
    lines = "".join(f"M{_at(x)} {top:.0f}V{bottom:.0f}" for x, _ in at)
    return [
        f"<path d='{lines}' stroke='#e9ecef'/>",
        "<g fill='#495057' font-size='10' text-anchor='middle'>",
        *(_text(x, top - 4, number(moment)) for x, moment in at),
        "</g>",
        _text(LEFT - 12, top - 4, name, "fill='#495057' font-size='10' text-anchor='end'"),
    ]


def _legend(y: float, drawn: int) -> list[str]:
    parts, x = [], 8.0
    for name, colour in {**COLOURS, "memory, by a warp itself": OTHER}.items():
        parts.append(f"<path d='M{_at(x)} {_at(y - 9)}h10v10h-10z' fill='{colour}'/>")
        parts.append(_text(x + 14, y, name))
        x += 34 + 7 * len(name)
    said = f"arrows: what ended the {drawn} longest waits"
    return [*parts, _text(8, y + 18, said, "fill='#c2255c'")] if drawn else parts


def _at(pixels: float) -> str:
    return f"{pixels:.1f}".removesuffix(".0")


def _text(x: float, y: float, words_: str, more: str = "") -> str:
    """more: extra attributes."""
    return f"<text x='{_at(x)}' y='{_at(y)}'{more and ' ' + more}>{escape(words_, quote=False)}</text>"
