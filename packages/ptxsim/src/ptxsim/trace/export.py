"""A timeline in Chrome's trace-event format, which ui.perfetto.dev and chrome://tracing open.

Events follow the Trace Event Format: complete events (ph X) for what takes time, instant events (i) for
moments, metadata (M) for names, and a pair of flow events (s, f, bound to the enclosing slice) for each arrow
from a signal to the wait that it ended. drawing.py makes pictures.
"""

from __future__ import annotations

from dataclasses import asdict

from ptxsim.trace.bands import arrows, rows
from ptxsim.trace.scale import NANOSECONDS, words
from ptxsim.trace.schedule import BARRIERS, WAITS, Event, Timeline

MOST_EVENTS = 60_000  # per file, about 200 bytes each; the earliest are kept
NO_TIMELINE = "there is no timeline: Result.trace is one after launch(.., trace=True)"
MODELS = {  # unit of a timeline -> what its times mean
    "ticks": "No clock: ticks are counted, not measured. What overlaps here was not ordered by the program's "
    "synchronisation; how long a chip takes is something else.",
    NANOSECONDS: "Times are modelled, not measured: the events of the simulated run are replayed with the "
    "constants of a chip.",
}


def shown(event: Event) -> bool:
    """Whether an event is visible: waits that took no time are left out."""
    return event.end > event.begin or event.kind in ("commit", "phase")


def chrome(timeline: Timeline, title: str, most: int = MOST_EVENTS) -> dict:
    """A JSON object: a process per CTA, a thread per lane (several if its events overlap).

    A tick is written as 1 us, a nanosecond as itself. At most `most` events are kept, the earliest.
    """
    if not isinstance(timeline, Timeline):
        raise ValueError(NO_TIMELINE)
    scale = 1e-3 if timeline.unit == NANOSECONDS else 1
    kept, notes = _kept(timeline, most)
    made: list[dict] = []
    where: dict[int, tuple[int, int]] = {}  # id of an event -> (pid, tid)
    for cta in sorted({lane.cta for lane in timeline.lanes}):
        made.append(_meta("process_name", cta, 0, name=f"CTA {cta}"))
        tid = 0
        for name, events in _tracks(timeline, cta):
            for number, row in enumerate(rows([e for e in events if id(e) in kept])):
                tid += 1
                made.append(_meta("thread_name", cta, tid, name=f"{name} {number + 1}" if number else name))
                made.append(_meta("thread_sort_index", cta, tid, sort_index=tid))
                made += [_chrome_event(event, cta, tid, scale) for event in row]
                where |= {id(event): (cta, tid) for event in row}
    made += _flows(timeline, where, scale)
    about = {
        "title": title,
        "model": MODELS[timeline.unit],
        "unit": "1 us stands for 1 tick" if scale == 1 else "us",
        "cluster": timeline.cluster,
        "finished": timeline.finished,
        "notes": [*timeline.notes, *notes],
        "costs": asdict(timeline.costs),
    }
    return {"traceEvents": made, "displayTimeUnit": "ms" if scale == 1 else "ns", "otherData": about}


def _kept(timeline: Timeline, most: int) -> tuple[set[int], list[str]]:
    """(ids of the events that the file holds, notes about the others)."""
    every = [e for e in timeline.events if shown(e)]
    if len(every) <= most:
        return {id(e) for e in every}, []
    first = sorted(every, key=lambda e: e.begin)[:most]
    upto = words(first[-1].begin, timeline.unit)
    return {id(e) for e in first}, [f"events after {upto}: {len(every) - most} of {len(every)}"]


def _tracks(timeline: Timeline, cta: int) -> list[tuple[str, list[Event]]]:
    lanes = [lane for lane in timeline.lanes if lane.cta == cta]
    tracks = [(lane.title, timeline.of(cta, lane.lane)) for lane in lanes]
    return [*tracks, ("barriers: phases completed", timeline.of(cta, BARRIERS))]


def _meta(what: str, pid: int, tid: int, **args) -> dict:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _chrome_event(event: Event, pid: int, tid: int, scale: float) -> dict:
    name = f"wait for {event.name}" if event.kind in WAITS else event.name
    args = {"amount": event.amount, "line": event.line, "phase": event.phase}
    args = {
        key: value for key, value in args.items() if value not in (None, 0) or key == "phase" and value == 0
    }
    begin, end = _at(event.begin, scale), _at(event.end, scale)
    base = {"name": name, "cat": event.kind, "pid": pid, "tid": tid, "ts": begin, "args": args}
    if event.end > event.begin:
        return base | {"ph": "X", "dur": round(end - begin, 3)}
    return base | {"ph": "i", "s": "t"}


def _at(moment: float, scale: float) -> float:
    """Microseconds, rounded to whole nanoseconds as in Perfetto, so that neighbours on a track touch."""
    return round(moment * scale, 3)


def _inside(event: Event, scale: float) -> float:
    """A moment inside an event's slice, near its end: half a tick or a nanosecond before."""
    last = min(_at(event.end - 0.5, scale), round(_at(event.end, scale) - 0.001, 3))
    return max(last, _at(event.begin, scale))


def _flows(timeline: Timeline, where: dict[int, tuple[int, int]], scale: float) -> list[dict]:
    """Two flow events per arrow: one inside the slice of the signal, one inside that of the wait."""
    made = []
    for number, arrow in enumerate(arrows(timeline)):
        signal, wait = timeline.events[arrow.signal], timeline.events[arrow.wait]
        if id(signal) in where and id(wait) in where:
            end = _inside(wait, scale)
            start = min(_inside(signal, scale), end)  # data may be there before its unit is done
            base = {"name": wait.name, "cat": "signal", "id": number}
            for event, ts, more in ((signal, start, {"ph": "s"}), (wait, end, {"ph": "f", "bp": "e"})):
                pid, tid = where[id(event)]
                made.append(base | more | {"pid": pid, "tid": tid, "ts": ts})
    return made
