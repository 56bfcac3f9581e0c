"""A timeline as text: the chart in a given width, the lanes' shares of time, the waits, what overlaps."""

from rich.table import Table
from rich.text import Text

from ptxsim.tracing import (
    UNITS,
    Band,
    Event,
    Timeline,
    arrows,
    axis_unit,
    bands,
    marks,
    number,
    spans,
    words,
)

WIDTH = 100  # columns if the output is not a terminal and $COLUMNS is not set
MIN_WIDTH = 40
LETTERS = {  # kind -> letter and colour
    "issue": ("*", "white"),
    "load": ("L", "blue"),
    "mma": ("M", "green"),
    "store": ("S", "magenta"),
    "TMEM read": ("T", "yellow"),
    "TMEM write": ("T", "yellow"),
    "global read": ("G", "yellow"),
    "global write": ("G", "yellow"),
    "shared read": ("D", "yellow"),
    "shared write": ("D", "yellow"),
    "wait": (".", "bright_black"),
    "stuck": ("!", "red"),
}
LEGEND = (
    "L load, M MMA, S store; T, G, D a warp moves tensor, global, shared memory; * issues or arrives; "
    ". waits; ! waits forever. A small letter: less than half of the column."
)
LONGEST = 5  # how many waits are listed


def chart(timeline: Timeline, width: int = WIDTH) -> list[Text]:
    """The axis and a line per band, in `width` columns of text (at least MIN_WIDTH)."""
    width = max(MIN_WIDTH, width)
    left = label_width(bands(timeline), width)
    above = axis(timeline.ticks, timeline.unit, left, width)
    return [above, *lines(timeline, width, timeline.ticks, left)]


def lines(timeline: Timeline, width: int, end: float, left: int) -> list[Text]:
    """A line per band: the title in `left` columns, the rest for the time from 0 to `end`."""
    made = []
    for band in bands(timeline):
        line = Text(fitted(band.title, left - 1).ljust(left))
        events = [e for lane in band.lanes for e in timeline.of(lane.cta, lane.lane)]
        for letter, colour in _cells(events, end, width - left):
            line.append(letter, colour)
        made.append(line)
    return made


def label_width(shown: list[Band], width: int) -> int:
    """Columns for the titles: as many as they need, at most two fifths of the line."""
    return min(max((len(band.title) for band in shown), default=0) + 1, 2 * width // 5)


def fitted(title: str, width: int) -> str:
    """A title in at most `width` columns: without its roles if they do not fit, and else cut."""
    if len(title) <= width:
        return title
    short = title.partition(" (")[0]
    return short if len(short) <= width else f"{short[: width - 1]}…"


def axis(end: float, unit: str, left: int, width: int) -> Text:
    """`   |0      |5,000      ticks`: a bar at each mark, followed by its number; the unit at the right."""
    name, size = axis_unit(max(end, 1), unit)
    columns, line = width - left, [" "] * width
    line[width - len(name) :] = name
    for moment in marks(end / size, max(1, columns // 12)):
        at = left + min(columns - 1, int(moment * size * columns / max(end, 1)))
        label = f"|{number(moment)}"
        if at + len(label) < width - len(name):
            line[at : at + len(label)] = label
    return Text("".join(line), "bright_black")


def _cells(events: list[Event], ticks: float, columns: int) -> list[tuple[str, str]]:
    """Letter and colour of every column, for the kind that covers most of it; any work outranks waiting."""
    covered: list[dict[str, float]] = [{} for _ in range(columns)]
    width = max(ticks, 1) / columns
    for kind in {e.kind for e in events} & set(LETTERS):
        for begin, end in spans([e for e in events if e.kind == kind]):
            for column in range(int(begin / width), columns):
                if column * width >= end:
                    break
                part = min(end, (column + 1) * width) - max(begin, column * width)
                covered[column][kind] = covered[column].get(kind, 0.0) + part
    return [_letter(kinds, width) for kinds in covered]


def _letter(kinds: dict[str, float], width: float) -> tuple[str, str]:
    for group in (set(kinds) - {"wait", "stuck"}, {"stuck"}, {"wait"}):
        here = [kind for kind in group if kind in kinds]
        if here:
            letter, colour = LETTERS[max(here, key=lambda kind: kinds[kind])]
            half = sum(kinds[kind] for kind in here) < width / 2
            return letter.lower() if half else letter, colour
    return " ", ""


def shares(timeline: Timeline) -> Table:
    """A table of the share of time that each band was busy or waited, and what it waited for most."""
    made = Table(box=None, pad_edge=False)
    made.add_column("", overflow="ellipsis", no_wrap=True)
    made.add_column("busy", justify="right", no_wrap=True)
    made.add_column("waits", justify="right", no_wrap=True)
    made.add_column("most for (of all the time)", overflow="fold")
    for band in bands(timeline):
        unit = band.lanes[0].lane in UNITS
        waits = "" if unit else f"{band.waiting:.0%}"
        made.add_row(band.title, f"{band.busy:.0%}", waits, band.waits(timeline.ticks))
    return made


def longest_waits(timeline: Timeline) -> list[str]:
    """The longest waits, a line each: who, for which barrier, how long, and what ended it."""
    events, unit = timeline.events, timeline.unit
    titles = {(lane.cta, lane.lane): band.title for band in bands(timeline) for lane in band.lanes}
    said: dict[tuple, str] = {}
    for arrow in arrows(timeline):
        wait, signal = events[arrow.wait], events[arrow.signal]
        who = titles.get((wait.cta, wait.lane))
        whose = titles.get((signal.cta, signal.lane), signal.lane)
        if who is None or len(said) == LONGEST:
            continue
        line = f" (line {signal.line})" if signal.line else ""
        said.setdefault(
            (who, wait.name, wait.phase),
            f"{who}: {wait.name}{_phase(wait)}, {words(wait.end - wait.begin, unit)} until "
            f"{words(wait.end, unit)}; ended by {whose}: {signal.name}{line}",
        )
    return list(said.values())


def _phase(wait: Event) -> str:
    return f" phase {wait.phase}" if wait.phase is not None else ""


PAIRS = {  # what students ask: does A proceed while B does?
    "loads and MMAs": ("load", "mma"),
    "TMEM reads and MMAs": ("TMEM read", "mma"),
    "stores and MMAs": ("store", "mma"),
}


def overlaps(timeline: Timeline) -> dict[str, dict]:
    """Per pair, in CTA 0: ticks (or ns) in which both are in flight, and their share of the MMAs' time."""
    mma = sum(
        end - begin for begin, end in spans([e for e in timeline.events if e.cta == 0 and e.kind == "mma"])
    )
    found = {}
    for name, (one, other) in PAIRS.items():
        ticks = timeline.overlap(0, one, other)
        found[name] = {"ticks": ticks, "of_mma": round(ticks / mma, 3) if mma else 0.0}
    return found
