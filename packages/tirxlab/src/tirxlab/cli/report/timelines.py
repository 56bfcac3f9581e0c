"""A timeline in the form that the page's script takes: short lists of numbers, and each text once."""

from __future__ import annotations

from ptxsim.tracing import MODELS, Band, Timeline, arranged, arrows, words
from tirxlab.cli.report.model import Cell, Grid, Run

MOST_BARS = 12_000  # in one timeline, the earliest; some 40 bytes each


def run_of(timeline: Timeline, title: str, source: str = "") -> Run:
    """The timeline with its shares of time. `source`: the student's file, of which bars show their line."""
    bands = arranged(timeline)
    unit = timeline.unit
    stuck = "" if timeline.finished else ", up to the standstill"
    head = f"{title}: {words(timeline.ticks, unit)}{stuck}"
    data = encoded(timeline, bands, source)
    lead = MODELS[unit]
    if data["left_out"]:
        lead += f" The first {MOST_BARS:,} bars are drawn, {data['left_out']:,} are left out."
    return Run(head, lead, data, shares(bands, timeline.ticks))


def encoded(timeline: Timeline, bands: list[Band], source: str, most: int = MOST_BARS) -> dict:
    """Lanes; bars as [lane, row, begin, end, kind, name, amount, line, phase, events]; arrows as bar pairs.

    kind and name are indices into `texts`; a line or phase that does not exist is -1.
    """
    texts: dict[str, int] = {}

    def text(said: str) -> int:
        return texts.setdefault(said, len(texts))

    bars = sorted(((n, bar) for n, band in enumerate(bands) for bar in band.bars), key=lambda b: b[1].begin)
    kept = bars[:most]
    made: list[list] = []
    place: dict[int, int] = {}
    for number, (lane, bar) in enumerate(kept):
        event = bar.first
        place |= dict.fromkeys(bar.events, number)
        line, phase = event.line or -1, -1 if event.phase is None else event.phase
        times = round(bar.begin, 2), round(bar.end, 2)
        about = text(event.kind), text(event.name), bar.amount, line, phase
        made.append([lane, bar.row, *times, *about, len(bar.events)])
    pairs = dict.fromkeys(
        (place[a.signal], place[a.wait]) for a in arrows(timeline) if a.signal in place and a.wait in place
    )
    lines = source.splitlines()
    named = sorted({bar[7] for bar in made if 0 < bar[7] <= len(lines)})
    return {
        "end": timeline.ticks,
        "unit": timeline.unit,
        "texts": list(texts),
        "lanes": [{"title": band.title, "rows": band.rows} for band in bands],
        "bars": made,
        "arrows": [list(pair) for pair in pairs],
        "lines": {number: lines[number - 1].strip() for number in named},
        "left_out": len(bars) - len(kept),
    }


def shares(bands: list[Band], ticks: float) -> Grid:
    """A table of the share of time that each band was busy or waited, and what it waited for most."""
    rows = []
    for band in bands:
        waiting = "" if band.is_unit else f"{band.waiting:.0%}"
        cells = [Cell(band.title), Cell(f"{band.busy:.0%}", number=True), Cell(waiting, number=True)]
        rows.append([*cells, Cell(band.waits(ticks))])
    return Grid("Shares of the time", ["", "busy", "waits", "most for"], rows)
