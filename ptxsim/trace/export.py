"""A timeline as a file: Chrome's trace-event format (for ui.perfetto.dev or chrome://tracing), or SVG."""

from __future__ import annotations

from dataclasses import asdict
from html import escape

from ptxsim.trace.schedule import BARRIERS, WAITS, Event, Lane, Timeline

MODEL = (
    "No clock: ticks are counted, not measured. What overlaps here was not ordered by the program's "
    "synchronisation; how long a chip takes is something else."
)
COLOURS = {
    "load": "#1f77b4",
    "mma": "#2ca02c",
    "store": "#9467bd",
    "wait": "#d9d9d9",
    "stuck": "#d62728",
    "issue": "#333333",
}  # anything else: what warps move themselves
_OTHER = "#e58a00"
_LEFT, _WIDTH, _ROW = 250, 900, 20  # of the SVG, in pixels


def rows(events: list[Event]) -> list[list[Event]]:
    """Events of one lane in as few rows as it takes so that none overlaps another of its row."""
    found: list[list[Event]] = []
    for event in sorted(events, key=lambda e: (e.begin, e.end)):
        row = next((r for r in found if r[-1].end <= event.begin), None)
        if row is None:
            found.append([event])
        else:
            row.append(event)
    return found


def shown(event: Event) -> bool:
    """Whether there is anything to see: waits that took no time are left out."""
    return event.end > event.begin or event.kind in ("commit", "phase")


# ---- Chrome ----


def chrome(timeline: Timeline, title: str) -> dict:
    """A JSON object: a process per CTA, a thread per lane (more where its events overlap). 1 us is 1 tick."""
    made: list[dict] = []
    for cta in sorted({lane.cta for lane in timeline.lanes}):
        made.append(_meta("process_name", cta, 0, name=f"CTA {cta}"))
        tid = 0
        for name, events in _tracks(timeline, cta):
            for number, row in enumerate(rows([e for e in events if shown(e)])):
                tid += 1
                made.append(_meta("thread_name", cta, tid, name=f"{name} {number + 1}" if number else name))
                made.append(_meta("thread_sort_index", cta, tid, sort_index=tid))
                made += [_chrome_event(event, cta, tid) for event in row]
    about = {
        "title": title,
        "model": MODEL,
        "unit": "1 us stands for 1 tick",
        "finished": timeline.finished,
        "notes": timeline.notes,
        "costs": asdict(timeline.costs),
    }
    return {"traceEvents": made, "displayTimeUnit": "ms", "otherData": about}


def _tracks(timeline: Timeline, cta: int) -> list[tuple[str, list[Event]]]:
    lanes = [lane for lane in timeline.lanes if lane.cta == cta]
    tracks = [(lane.title, timeline.of(cta, lane.lane)) for lane in lanes]
    return [*tracks, ("barriers: phases completed", timeline.of(cta, BARRIERS))]


def _meta(what: str, pid: int, tid: int, **args) -> dict:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _chrome_event(event: Event, pid: int, tid: int) -> dict:
    name = f"wait for {event.name}" if event.kind in WAITS else event.name
    args = {"amount": event.amount, "line": event.line, "phase": event.phase}
    args = {
        key: value for key, value in args.items() if value not in (None, 0) or key == "phase" and value == 0
    }
    base = {"name": name, "cat": event.kind, "pid": pid, "tid": tid, "ts": event.begin, "args": args}
    if event.end > event.begin:
        return base | {"ph": "X", "dur": event.end - event.begin}
    return base | {"ph": "i", "s": "t"}


# ---- SVG ----


def svg(timeline: Timeline, title: str) -> str:
    """A picture: one band per lane, as many rows in it as events overlap."""
    bands, y = [], 40
    scale = _WIDTH / max(timeline.ticks, 1)
    for lane in timeline.lanes:
        drawn = rows([e for e in timeline.of(lane.cta, lane.lane) if e.end > e.begin])
        bands.append(_band(lane, drawn, y, scale))
        y += _ROW * max(1, len(drawn)) + 6
    end = "" if timeline.finished else ", up to the standstill"
    head = [
        _text(8, 16, f"{title}: {timeline.ticks} ticks{end}", "font-weight='bold'"),
        _text(8, 32, MODEL, "fill='#555'"),
    ]
    legend = _legend(y + 14)
    body = "\n".join([*head, *bands, legend])
    size = f"width='{_LEFT + _WIDTH + 10}' height='{y + 24}'"
    style = "font-family='sans-serif' font-size='11'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} {style}>\n{body}\n</svg>\n"


def _band(lane: Lane, drawn: list[list[Event]], y: int, scale: float) -> str:
    parts = [_text(8, y + 14, lane.title)]
    for number, row in enumerate(drawn):
        for event in row:
            x, width = _LEFT + event.begin * scale, max((event.end - event.begin) * scale, 0.4)
            colour = COLOURS.get(event.kind, _OTHER)
            said = f"{event.kind}: {event.name}, ticks {event.begin} to {event.end}"
            said += f", line {event.line}" if event.line else ""
            parts.append(
                f"<rect x='{x:.1f}' y='{y + number * _ROW}' width='{width:.1f}' height='{_ROW - 4}' "
                f"fill='{colour}'><title>{escape(said)}</title></rect>"
            )
    return "\n".join(parts)


def _legend(y: int) -> str:
    parts, x = [], _LEFT
    for name, colour in {**COLOURS, "memory, by a warp itself": _OTHER}.items():
        parts.append(f"<rect x='{x}' y='{y - 9}' width='10' height='10' fill='{colour}'/>")
        parts.append(_text(x + 14, y, name))
        x += 32 + 7 * len(name)
    return "\n".join(parts)


def _text(x: int, y: int, words: str, more: str = "") -> str:
    return f"<text x='{x}' y='{y}' {more}>{escape(words)}</text>"
