"""What was seen of the barriers that a finding names: which threads signalled and waited, where and how
often.

Added to the first finding if its hint asks for rivals (causes/rivals.py): the numbers are facts whichever
rival is right, and most rivals show up in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxsim.causes.ranking import rank
from ptxsim.checks.barrier_history import history_of, ring_of
from ptxsim.checks.diagnosis.number_agreement import agree, role
from ptxsim.checks.phrases import SourceLine, line_of, lines_text, times
from ptxsim.events.observer import Observer
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster, Launch
from ptxsim.report.findings import Reporter

_VERBS = {
    "arrive": "arrives",
    "neutral": "arrives without .noinc, which adds what it takes away",
    "commit": "commits",
    "load": "loads",
    "wait": "has passed its wait",
}
_WAITS = "has passed its waits"  # at several lines
_NAMED = re.compile(r"(\w+)(?:\[\d+\])?(?: of CTA (\d+))?")
_ASKS = "is each of these intended, by these threads and this often?"
_ARRAYS, _GROUPS, _SLOTS, _LINES = 2, 5, 8, 3  # the most that are shown


class Seen(Observer):
    """Runs after all checks, when their findings are complete."""

    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter

    def finish(self, cluster: Cluster) -> None:
        errors = [f for f in self.reporter.by_identity.values() if f.severity == "error"]
        first = min(errors, key=rank, default=None)
        if first is None or "seen" in first.evidence or not first.hint.endswith("?"):
            return
        lines = [line for ring in self._rings(cluster, first.message) for line in self._told(cluster, ring)]
        lines += [_ASKS] if lines else []
        first.evidence["seen"] = lines
        first.message += "".join(f"\n  {line}" for line in lines)

    def _rings(self, cluster: Cluster, message: str) -> list[list[Place]]:
        """The barrier arrays that the first sentence of a finding names, each in one CTA."""
        histories, rings = history_of(cluster), []
        array_of = self.reporter.shared_array
        for name, cta in _NAMED.findall(message.split("\n")[0]):
            place = next((p for p in histories if p[0] == int(cta or 0) and array_of(p[1]) == name), None)
            ring = ring_of(histories, place, array_of) if place is not None else []
            if ring and ring not in rings:
                rings.append(ring)
        return rings[:_ARRAYS]

    def _told(self, cluster: Cluster, ring: list[Place]) -> Iterator[str]:
        """`seen of tma_bar, init(1):`, then a line for each group of threads."""
        counts = sorted({history_of(cluster)[p].count for p in ring})
        cta = f" of CTA {ring[0][0]}" if cluster.ctas > 1 else ""
        array = self.reporter.shared_array(ring[0][1])
        yield f"seen of {array}{cta}, init({' or '.join(map(str, counts))}):"
        groups = _groups(cluster, ring)
        if not groups:
            yield "  nobody has signalled it, and nobody has passed a wait for it"
        for (how, lines, numbers), lanes in list(groups.items())[:_GROUPS]:
            who = role(cluster, lanes)
            at = lines_text(lines)
            verb = _WAITS if how == "wait" and len(lines) > 1 else _VERBS[how]
            yield f"  {who} {agree(who, verb)} ({at}): {_how_often(numbers)}"


def _how_often(numbers: tuple[int, ...]) -> str:
    """`3 times on each`, `2 times on [0], 0 on [1]`."""
    if len({*numbers}) == 1:
        return times(numbers[0]) + " on each" * (len(numbers) > 1)
    first, *rest = (f"on [{slot}]" for slot in range(len(numbers)))
    shown = [f"{number} {at}" for number, at in zip(numbers[1:_SLOTS], rest, strict=False)]
    return ", ".join([f"{times(numbers[0])} {first}", *shown])


def _groups(cluster: Cluster, ring: list[Place]) -> dict[tuple, dict[int, int]]:
    """(how, lines, how often on each element) -> warps that did so, with their lanes.

    Loads at several lines, such as those of A and B, are reported together with the number of the most
    frequent one.
    """
    done: dict[tuple, dict[tuple, list[int]]] = {}  # how, warp, lines -> lines -> their numbers
    lanes: dict[tuple, int] = {}
    for slot, place in enumerate(ring):
        for how, warp, lines, mask, number in _done_at(cluster, place):
            key = how, warp, () if how == "load" else lines
            numbers = done.setdefault(key, {}).setdefault(lines, [0] * len(ring))
            numbers[slot] += number  # an unrolled loop has several instructions of a line
            lanes[key] = lanes.get(key, 0) | mask
    groups: dict[tuple, dict[int, int]] = {}
    for key in sorted(done, key=lambda key: [*_VERBS].index(key[0])):
        most = tuple(max(of) for of in zip(*done[key].values(), strict=True))
        about = key[0], tuple(sorted({line for lines in done[key] for line in lines})[:_LINES]), most
        groups.setdefault(about, {})[key[1]] = lanes[key]
    return groups


def _done_at(cluster: Cluster, place: Place) -> Iterator[tuple[str, int, tuple[SourceLine, ...], int, int]]:
    """(how, warp, lines, lanes, how often) of each instruction that signalled a barrier, and of all waits of
    a warp for it.
    """
    history, program = history_of(cluster)[place], cluster.program
    for (how, warp, row), signals in history.sources.items():
        yield how, warp, (line_of(program, row),), signals.lanes, signals.each
    for (warp, row), signals in history.neutral.items():
        yield "neutral", warp, (line_of(program, row),), signals.lanes, signals.each
    for warp, waits in history.waits.items():
        lines = {line_of(program, row) for row in waits.rows}
        yield "wait", warp, tuple(sorted(lines)), waits.lanes, waits.count
