"""A timeline for display: lanes of one role form one band, with bars in rows and arrows from signal to wait.

A band is a hardware unit, or the warps of a warpgroup that do the same. What several of its warps do at the
same time under the same name is one bar.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxsim.trace.schedule import UNITS, Event, Lane, Timeline


@dataclass
class Bar:
    """A stretch of time in a band: one event, or the same activity of several warps."""

    first: Event  # the bar's kind, name, line and phase
    begin: float
    end: float
    events: list[int]  # indices into Timeline.events
    amount: int = 0  # bytes or MACs of all events
    row: int = 0  # row within the band


@dataclass
class Band:
    """Lanes that are drawn together."""

    title: str
    lanes: list[Lane]
    bars: list[Bar] = field(default_factory=list)

    @property
    def is_unit(self) -> bool:
        return self.lanes[0].lane in UNITS

    @property
    def rows(self) -> int:
        return 1 + max((bar.row for bar in self.bars), default=0)

    @property
    def busy(self) -> float:
        return sum(lane.busy for lane in self.lanes) / len(self.lanes)

    @property
    def waiting(self) -> float:
        return sum(lane.waiting for lane in self.lanes) / len(self.lanes)

    def waits(self, ticks: float) -> str:
        """The two barriers that take the most waiting time: `tma2mma 77%, cta_sync 14%`."""
        total: dict[str, float] = {}
        for lane in self.lanes:
            for name, spent in lane.waits.items():
                total[name] = total.get(name, 0) + spent
        most = sorted(total.items(), key=lambda item: -item[1])[:2]
        return ", ".join(f"{name} {spent / len(self.lanes) / max(ticks, 1):.0%}" for name, spent in most)


@dataclass(frozen=True)
class Arrow:
    """The event that ended a wait. Both are indices into Timeline.events."""

    signal: int
    wait: int


def bands(timeline: Timeline) -> list[Band]:
    """The bands of a timeline, without their bars; idle warps are left out, unless the run hangs."""
    found: list[Band] = []
    for lane in timeline.lanes:
        if lane.lane not in UNITS and not lane.roles and timeline.finished:
            continue
        last = found[-1].lanes[-1] if found else None
        if last and last.lane not in UNITS and lane.lane not in UNITS and _alike(last, lane):
            found[-1].lanes.append(lane)
        else:
            found.append(Band("", [lane]))
    for band in found:
        band.title = _title(band.lanes)
    return found


def arranged(timeline: Timeline) -> list[Band]:
    """The bands with their bars, placed in rows without overlap."""
    events: dict[tuple[int, str], list[int]] = {}
    for number, event in enumerate(timeline.events):
        if event.end > event.begin:
            events.setdefault((event.cta, event.lane), []).append(number)
    found = bands(timeline)
    for band in found:
        numbers = [n for lane in band.lanes for n in events.get((lane.cta, lane.lane), ())]
        band.bars = _bars(timeline, numbers, merge=len(band.lanes) > 1)
        for number, row in enumerate(rows(band.bars)):
            for bar in row:
                bar.row = number
    return found


def rows(items: list) -> list[list]:
    """Events or bars in as few rows as possible, so that none overlaps another in its row."""
    found: list[list] = []
    for item in sorted(items, key=lambda i: (i.begin, i.end)):
        row = next((r for r in found if r[-1].end <= item.begin), None)
        if row is None:
            found.append([item])
        else:
            row.append(item)
    return found


def arrows(timeline: Timeline) -> list[Arrow]:
    """For each wait that took time and ended, the last event it waited for; the longest waits first."""
    events = timeline.events
    waits = [n for n, e in enumerate(events) if e.kind == "wait" and e.end > e.begin]
    found = [Arrow(signal, n) for n in waits if (signal := _signal(events, n)) is not None]
    return sorted(found, key=lambda arrow: events[arrow.wait].begin - events[arrow.wait].end)


def _signal(events: list[Event], number: int) -> int | None:
    """The work whose end completed the barrier (or group) that an event waits for."""
    event = events[number]
    mine = event.cta, event.lane
    candidates = [n for n in (*event.after, *event.read) if (events[n].cta, events[n].lane) != mine]
    while candidates:
        last = max(candidates, key=lambda n: events[n].end)
        if events[last].kind not in ("phase", "commit"):
            return last if events[last].end > events[last].begin else None
        before = [n for n in events[last].after if n != last]
        candidates = [n for n in before if events[n].kind != "phase"] or before
    return None


def _alike(one: Lane, other: Lane) -> bool:
    return one.cta == other.cta and one.roles == other.roles and _group(one) == _group(other)


def _group(lane: Lane) -> str:
    """The title up to the warp, such as `CTA 0 WG1 `."""
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


def _bars(timeline: Timeline, numbers: list[int], merge: bool) -> list[Bar]:
    """A bar per event; with `merge`, overlapping events with the same name and phase share one."""
    made: list[Bar] = []
    open_: dict[tuple, Bar] = {}
    for number in sorted(numbers, key=lambda n: (timeline.events[n].begin, timeline.events[n].end)):
        event = timeline.events[number]
        key = event.kind, event.name, event.phase
        bar = open_.get(key)
        if merge and bar and event.begin <= bar.end:
            bar.end = max(bar.end, event.end)
            bar.events.append(number)
            bar.amount += event.amount
        else:
            bar = open_[key] = Bar(event, event.begin, event.end, [number], event.amount)
            made.append(bar)
    return made
