"""Puts the steps of a warp into the order that ptxas gave them, read from the machine code if there is any.

Waits, barriers, fences and commands to units keep their places. Between two of them, and within an iteration
or the iterations that ptxas joined, the rows of a warp are replayed in the order of their machine code: loads
moved up (from tensor memory too), instructions delayed until they are needed, shuffles of several sums
interleaved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ptxsim.timing.execution import Run
from ptxsim.timing.instructions import Rows
from ptxsim.timing.sass_count import Place
from ptxsim.timing.steps import Global, Other, Product, Shared, Step, Stretch, Tmem, TmemWait

NOWHERE = -1


class Item(NamedTuple):
    """One execution of a row of PTX by a warp."""

    row: int
    copy: int  # number of its iteration among those that ptxas joined
    step: int  # its index among the steps; NOWHERE for a plain instruction
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass
class FreeRows:
    """Consecutive rows whose order is free, from one iteration or from the iterations that ptxas joined."""

    key: list[tuple] = field(default_factory=list)  # per row: (row, copy), and what a step reads and writes
    steps: list[int] = field(default_factory=list)  # per row: Item.step
    joined: int = 0  # iterations; 0 if that is not known yet
    copy: int = 0

    def takes(self, row: int, place: Place | None) -> bool:
        """Whether a row belongs to this block: to the current iteration, or to the next, which it starts."""
        if place and self.joined not in (0, place.joined):
            return False
        self.joined = place.joined if place else self.joined
        back = bool(self.key) and row <= self.key[-1][0]
        self.copy += back
        return not back or self.copy < self.joined

    def items(self, rows: Rows) -> list[Item]:
        return [
            Item(row, copy, step, *(uses or rows.row(row)[2:]))
            for (row, copy, *uses), step in zip(self.key, self.steps, strict=True)
        ]


class SassOrder:
    """The order of one program. Blocks that are alike, also those of other warps, are put in order once."""

    def __init__(self, rows: Rows, places: dict[int, Place], costs: Callable):
        """costs: consecutive plain rows (row, reads, writes), whether they end with a branch -> their
        Stretch.
        """
        self.rows, self.places, self.costs = rows, places, costs
        self.laid_out: dict[tuple, list[tuple[int, Step]]] = {}  # key of a block -> its steps

    def reordered(self, steps: list, out: list) -> tuple[list, list]:
        """(steps of a warp, their costs) in the order of the machine code."""
        found: list[tuple] = []
        for part in self._blocks(steps, out):
            if isinstance(part, int):
                found.append((steps[part], out[part]))
                continue
            for number, step in self._in_order(part):
                at = part.steps[number]
                if at >= 0:
                    found.append((steps[at], step._replace(does=out[at].does)))
                else:
                    row = part.key[number][0]
                    found.append((Run(row, row), step))
        return [step for step, _ in found], [does for _, does in found]

    def _in_order(self, block: FreeRows) -> list[tuple[int, Step]]:
        key = tuple(block.key)
        if key not in self.laid_out:
            self.laid_out[key] = [*_laid_out(block.items(self.rows), self.rows, self.places, self.costs)]
        return self.laid_out[key]

    def _blocks(self, steps: list, out: list) -> Iterator[int | FreeRows]:
        """The blocks, and between them the indices of steps that keep their places."""
        block = FreeRows()
        for number, (step, does) in enumerate(zip(steps, out, strict=True)):
            if does is None:
                continue
            if not _moves(step, does):
                yield from (block,) if block.key else ()
                yield number
                block = FreeRows()
                continue
            plain = type(step) is Run
            uses = () if plain else (does.reads, does.writes)
            for row in range(step.first, step.last + 1) if plain else (step.row,):
                place = self.places.get(row)
                if not block.takes(row, place):
                    yield block
                    block = FreeRows()
                    block.takes(row, place)
                block.key.append((row, block.copy, *uses))
                block.steps.append(NOWHERE if plain else number)
        if block.key:
            yield block


def _moves(step, does) -> bool:
    """Whether ptxas may move a step: arithmetic, loads, stores, shuffles, mma.sync, tcgen05.ld, .st and
    .wait.
    """
    if type(step) is Run:
        return True
    if type(does) is not Step or step.row < 0:
        return False
    kind = type(does.does)
    return kind in (Shared, Global, Product, Tmem, TmemWait) or kind is Other and not does.does.stays


def _laid_out(
    items: list[Item], rows: Rows, places: dict[int, Place], costs: Callable
) -> Iterator[tuple[int, Step]]:
    """The steps of a block in machine-code order: (index of an item of the step, the step)."""
    items = _named(items)
    order = sorted(zip(_keys(items, places), range(len(items)), strict=True))
    plain: list[int] = []
    for _, number in order:
        if items[number].step < 0:
            plain.append(number)
            continue
        if plain:
            yield plain[-1], _run([items[n] for n in plain], rows, places, costs)
            plain = []
        yield number, Step(None, items[number].reads, items[number].writes)
    if plain:
        yield plain[-1], _run([items[n] for n in plain], rows, places, costs)


def _run(items: list[Item], rows: Rows, places: dict[int, Place], costs: Callable) -> Step:
    jumps = [i for i in items if rows.row(i.row).name in ("bra", "brx") and _stands(i, places) >= 0]
    does: Stretch = costs(tuple((i.row, i.reads, i.writes) for i in items), bool(jumps))
    return Step(does, tuple(does.needed), tuple(does.ready))


def _named(items: list[Item]) -> list[Item]:
    """The items with registers renamed as in the machine code: each joined iteration has its own."""
    last, found = items[-1].copy, []
    names: dict[str, str] = {}
    for item in items:
        reads = tuple(names.get(name, name) for name in item.reads)
        names.update((name, name if item.copy == last else f"{name}'{item.copy}") for name in item.writes)
        found.append(item._replace(reads=reads, writes=tuple(names[name] for name in item.writes)))
    return found


def _keys(items: list[Item], places: dict[int, Place]) -> list[int]:
    """The position of each item: after the writers of what it reads, and after the readers of the old values
    of its registers. An item without an instruction of its own is placed right before its first reader.
    """
    stand = [_stands(item, places) for item in items]
    found = _not_before(items, stand)
    last = max(found)
    readers: dict[str, int] = {}
    writers: dict[str, int] = {}
    for number in reversed(range(len(items))):
        item = items[number]
        if stand[number] < 0 and item.step < 0:
            limits = [readers.get(name, last) for name in item.writes]
            limits += [writers.get(name, last) for name in (*item.reads, *item.writes)]
            found[number] = min(limits, default=last)
        at = found[number]
        for name in item.writes:
            readers.pop(name, None)
            writers[name] = at
        readers.update((name, min(at, readers.get(name, at))) for name in item.reads)
    return found


def _not_before(items: list[Item], stand: list[int]) -> list[int]:
    """The earliest position of each item: not before its own instruction, nor before what it depends on."""
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    found: list[int] = []
    for item, at in zip(items, stand, strict=True):
        if at < 0 and item.step >= 0 and found:
            at = found[-1]
        at = max([at, *(written.get(name, at) for name in (*item.reads, *item.writes))])
        at = max([at, *(read.get(name, at) for name in item.writes)])
        read.update((name, max(at, read.get(name, at))) for name in item.reads)
        written.update(dict.fromkeys(item.writes, at))
        found.append(at)
    return found


def _stands(item: Item, places: dict[int, Place]) -> int:
    """The position of the last instruction of a row in its iteration; NOWHERE if it has none there."""
    place = places.get(item.row)
    if place is None:
        return NOWHERE
    first, last = (n * len(place.at) // place.joined for n in (item.copy, item.copy + 1))
    return place.at[last - 1] if last > first else NOWHERE
