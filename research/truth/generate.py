"""Random programs that keep the rules: chains of writes, synchronisation and reads by random mechanisms.

`program_of(seed)` is one program; most are then broken by `mutate`. Whether the result is right is not
decided here, but by `judge`.
"""

from __future__ import annotations

import random

from research.truth import chains, mutate
from research.truth.model import BARS, FLAGS, FULL, SLOTS, TILES, Op, Program


class Builder:
    """A program under construction: hands out slots, barriers and flags, appends events."""

    def __init__(self, rng: random.Random, warps: int, ctas: int, target: str):
        self.rng = rng
        self.program = Program(warps, ctas, [[] for _ in range(warps * ctas)], {}, target)
        self.slots = [0] * ctas
        self.tiles = [0] * ctas
        self.global_slots = 0
        self.bars = [0] * ctas
        self.flags = {}
        self.ids = [{} for _ in range(ctas)]  # (participants, role) -> number of a CTA's barrier
        self.columns = [0] * ctas
        self.source = 0
        self.block = 0

    def put(self, warp: int, kind: str, lanes: int = FULL, **a) -> None:
        self.program.code[warp].append(Op(kind, lanes, a))

    def rank(self, warp: int) -> int:
        return warp // self.program.warps

    def warps_of(self, rank: int) -> list[int]:
        return list(range(rank * self.program.warps, (rank + 1) * self.program.warps))

    def pick(self, warps: list[int], most: int = 3) -> list[int]:
        return sorted(self.rng.sample(warps, self.rng.randint(1, min(most, len(warps)))))

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    # ---- places; raises Exhausted when there is no more room ----

    def slot(self, rank: int, count: int = 1) -> int:
        first = self.slots[rank]
        self.slots[rank] = self._below(first + count, SLOTS)
        return first

    def tile(self, rank: int) -> int:
        self.tiles[rank] = self._below(self.tiles[rank] + 1, TILES)
        return self.tiles[rank] - 1

    def global_slot(self, count: int = 1) -> int:
        self.global_slots = self._below(self.global_slots + count, 128)
        return self.global_slots - count

    def column(self, rank: int) -> int:
        self.columns[rank] = self._below(self.columns[rank] + 16, 128)
        return self.columns[rank] - 16

    def bar(self, rank: int, count: int) -> tuple[int, int]:
        index = self.bars[rank]
        self.bars[rank] = self._below(index + 1, BARS)
        self.program.bars[rank, index] = count
        return rank, index

    def flag(self, space: str, rank: int) -> int:
        number = self.flags.get((space, rank), 0)
        self.flags[space, rank] = self._below(number + 1, FLAGS)
        return number

    def barrier_id(self, rank: int, who: tuple) -> int:
        """The same participants in the same roles share a barrier number; others get another one."""
        known = self.ids[rank]
        if who not in known:
            known[who] = self._below(len(known) + 1, 15)
        return known[who]

    def blocks(self, count: int) -> int:
        """Numbers for events that several warps execute as one instruction."""
        self.block += count
        return self.block - count

    def _below(self, value: int, limit: int) -> int:
        if value > limit:
            raise Exhausted
        return value


class Exhausted(Exception):
    """No room for another chain."""


BIG = 0.003  # share of clusters with more than 2,048 threads


def shape(rng: random.Random) -> tuple[int, int]:
    """(warps of a CTA, CTAs)."""
    if rng.random() < BIG:
        return 24, 3
    ctas = rng.choices([1, 2, 3, 4], [65, 25, 4, 6])[0]
    warps = rng.choices([2, 3, 4, 5, 6, 8], [20, 15, 30, 15, 5, 15])[0]
    return (warps, ctas) if warps * ctas <= 16 else (4, ctas)


def correct_program(seed: int) -> Program:
    """A program that keeps the rules, as far as the generator knows."""
    rng = random.Random(seed)
    warps, ctas = shape(rng)
    target = rng.choice(["sm_100a", "sm_100a", "sm_90a"])
    builder = Builder(rng, warps, ctas, target)
    builder.program.elect = rng.random() < 0.3
    builder.program.seed = seed
    for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3])):
        kinds = [c for c in chains.CHAINS if c.fits(builder)]
        try:
            rng.choices(kinds, [c.weight for c in kinds])[0].build(builder)
        except Exhausted:
            break
    return builder.program


def program_of(seed: int) -> Program:
    """The program of a seed, two thirds of them with one to three mutations."""
    program = correct_program(seed)
    rng = random.Random(f"mutate {seed}")
    for _ in range(rng.choices([0, 1, 2, 3], [35, 40, 15, 10])[0]):
        mutate.mutate(program, rng)
    return program.number()
