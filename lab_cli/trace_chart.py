"""A timeline on a terminal: the chart (as wide as it fits), the shares of its lanes, what overlaps."""

from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from ptxsim.trace.schedule import UNITS, WAITS, Event, Lane, Timeline, spans

WIDTH = 100  # of the chart at most; MIN_WIDTH on the narrowest terminal
MIN_WIDTH = 60
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
    "L load, M MMA, S store; T, G, D a warp moves tensor, global, shared memory; * issues or arrives;\n"
    ". waits; ! waits forever. A small letter: less than half of the column."
)


@dataclass
class Row:
    """Lanes that are shown as one: a unit, or warps of a warpgroup with the same role."""

    title: str
    lanes: list[Lane]

    @property
    def busy(self) -> float:
        return sum(lane.busy for lane in self.lanes) / len(self.lanes)

    @property
    def waiting(self) -> float:
        return sum(lane.waiting for lane in self.lanes) / len(self.lanes)

    def waits(self, ticks: int) -> str:
        """The two barriers that take most of the ticks: `tma2mma 77%, cta_sync 14%`."""
        total: dict[str, int] = {}
        for lane in self.lanes:
            for name, spent in lane.waits.items():
                total[name] = total.get(name, 0) + spent
        most = sorted(total.items(), key=lambda item: -item[1])[:2]
        return ", ".join(f"{name} {spent / len(self.lanes) / max(ticks, 1):.0%}" for name, spent in most)


def rows(timeline: Timeline) -> list[Row]:
    """One row per unit and per group of warps with a role, or with work of their own."""
    found: list[Row] = []
    for lane in timeline.lanes:
        if lane.lane not in UNITS and not lane.roles and timeline.finished:
            continue
        last = found[-1].lanes[-1] if found else None
        if last and last.lane not in UNITS and lane.lane not in UNITS and _alike(last, lane):
            found[-1].lanes.append(lane)
        else:
            found.append(Row("", [lane]))
    for row in found:
        row.title = _title(row.lanes)
    return found


def _alike(one: Lane, other: Lane) -> bool:
    return one.cta == other.cta and one.roles == other.roles and _group(one) == _group(other)


def _group(lane: Lane) -> str:
    """The title up to the warp: `CTA 0 WG1 `."""
    return lane.title.partition("warp ")[0]


def _title(lanes: list[Lane]) -> str:
    first = lanes[0]
    if len(lanes) == 1:
        return first.title
    numbers = [lane.title.partition("warp ")[2].split()[0] for lane in lanes]
    roles = f" ({', '.join(first.roles)})" if first.roles else ""
    if _group(first).strip().startswith(("WG", "CTA")) and "WG" in first.title and len(lanes) == 4:
        return _group(first).strip() + roles
    return f"{_group(first)}warps {numbers[0]}-{numbers[-1]}{roles}"


def chart(timeline: Timeline, width: int = WIDTH) -> list[Text]:
    """A line per row, with the scale above, in `width` columns of text (MIN_WIDTH .. WIDTH)."""
    shown = rows(timeline)
    width = max(MIN_WIDTH, min(WIDTH, width))
    left = min(38, width // 2, max(len(row.title) for row in shown) + 1)
    columns = width - left
    end = f"{timeline.ticks} ticks"
    lines = [Text(" " * left + "0" + end.rjust(columns - 1))]
    for row in shown:
        line = Text(row.title[: left - 1].ljust(left))
        events = [e for lane in row.lanes for e in timeline.of(lane.cta, lane.lane)]
        for letter, colour in _cells(events, timeline.ticks, columns):
            line.append(letter, colour)
        lines.append(line)
    return lines


def _cells(events: list[Event], ticks: int, columns: int) -> list[tuple[str, str]]:
    """Letter and colour of every column: what covers most of it, work first, then waiting."""
    covered: list[dict[str, float]] = [{} for _ in range(columns)]
    width = max(ticks, 1) / columns
    for kind in {e.kind for e in events} & set(LETTERS):
        for begin, end in spans([e for e in events if e.kind == kind]):
            for column in range(int(begin / width), min(columns, int((end - 1) / width) + 1)):
                part = min(end, (column + 1) * width) - max(begin, column * width)
                covered[column][kind] = covered[column].get(kind, 0.0) + part
    return [_letter(kinds, width) for kinds in covered]


def _letter(kinds: dict[str, float], width: float) -> tuple[str, str]:
    for group in (set(kinds) - {*WAITS}, {"stuck"}, {"wait"}):
        here = [kind for kind in group if kind in kinds]
        if here:
            letter, colour = LETTERS[max(here, key=kinds.get)]
            half = sum(kinds[kind] for kind in here) < width / 2
            return letter.lower() if half else letter, colour
    return " ", ""


def shares(timeline: Timeline) -> Table:
    """Who was busy how long, and what it waited for."""
    made = Table(box=None, pad_edge=False)
    for name, justify in (
        ("", "left"),
        ("busy", "right"),
        ("waits", "right"),
        ("most for (of all ticks)", "left"),
    ):
        made.add_column(name, justify=justify, no_wrap=True)
    for row in rows(timeline):
        unit = row.lanes[0].lane in UNITS
        waits = "" if unit else f"{row.waiting:.0%}"
        made.add_row(row.title, f"{row.busy:.0%}", waits, row.waits(timeline.ticks))
    return made


PAIRS = {  # what students ask: does A go on while B does?
    "loads and MMAs": ("load", "mma"),
    "TMEM reads and MMAs": ("TMEM read", "mma"),
    "stores and MMAs": ("store", "mma"),
}


def overlaps(timeline: Timeline, cta: int = 0) -> dict[str, dict]:
    """For each pair: ticks in which both are under way, and their share of the MMAs' ticks."""
    mma = sum(
        end - begin for begin, end in spans([e for e in timeline.events if e.cta == cta and e.kind == "mma"])
    )
    found = {}
    for name, (one, other) in PAIRS.items():
        ticks = timeline.overlap(cta, one, other)
        found[name] = {"ticks": ticks, "of_mma": round(ticks / mma, 3) if mma else 0.0}
    return found
