"""Sizes of the fifth round, drawn at random: `python -m research.time.drawn` prints those of the rungs.

With `DRAWN=6` or 7 in the environment every draw is for that round, by the same rule.

The rule, written down before any kernel was built or timed:

- Each draw has its own generator, `random.Random("5 " + what)`, so they are independent ("6 " for the sixth).
- An extent is log-uniform between two limits and rounded to a multiple of its step. A product's M and N lie
  between 768 and 6144, K between 512 and 6144, unless said otherwise; they are drawn again until the number
  of operations is within limits that correspond to about 20 to 500 us.
- Rungs: steps of 64 (all fit), or of 8 (edges; rung 1 takes none). Which rungs a size gets is drawn too.
- Triton's kinds: a tile, its stages and its warps are drawn from what fits into an SM; extents are whole
  tiles. Rows of streams: steps of 16 for the width, of 8 for the height, from the number of bytes to move.

Nothing that was drawn is discarded for its size or its predicted time.
"""

from __future__ import annotations

import math
import os
import random

Size = tuple[int, int, int]
ROUND = os.environ.get("DRAWN", "5")
SHARED = 200 * 1024  # bytes for the stages of a tile


def machine(what: str) -> random.Random:
    return random.Random(f"{ROUND} {what}")


def extent(chance: random.Random, low: int, high: int, step: int) -> int:
    """A log-uniform random multiple of `step` between low and high."""
    return max(1, round(math.exp(chance.uniform(math.log(low), math.log(high))) / step)) * step


def product(
    what: str, steps: Size, work: tuple[float, float], sides=((768, 6144), (768, 6144), (512, 6144))
) -> Size:
    """M, N, K; 2 M N K is within `work`."""
    chance = machine(what)
    while True:
        m, n, k = (extent(chance, *side, step) for side, step in zip(sides, steps, strict=True))
        if work[0] <= 2.0 * m * n * k <= work[1]:
            return m, n, k


def rows(what: str, each: float, steps=(8, 16), megabytes=(100, 400), widths=(768, 12288)) -> tuple[int, int]:
    """(height, width) of a stream that moves `each` bytes per number."""
    chance = machine(what)
    width = extent(chance, *widths, steps[1])
    bytes_ = math.exp(chance.uniform(*map(math.log, megabytes))) * 1e6
    return max(1, round(bytes_ / each / width / steps[0])) * steps[0], width


def tile(what: str, choices, size: int = 2, rights: int = 1) -> tuple[Size, int, int]:
    """((BM, BN, BK), stages, warps) for operands of `size` bytes and `rights` right-hand sides. A thread has
    32 to 128 sums.
    """
    chance = machine(f"{what} tile")
    while True:
        (m, n, k), stages, warps = chance.choice(choices), chance.choice((3, 4, 5)), chance.choice((4, 8))
        sums = m * n * rights // (32 * warps)
        if 32 <= sums <= 128 and (m + n * rights) * k * size * stages + m * n * 2 <= SHARED:
            return (m, n, k), stages, warps


def some(what: str, choices, count: int) -> list:
    """`count` of the choices, in their original order."""
    chosen = machine(what).sample(range(len(choices)), count)
    return [choices[i] for i in sorted(chosen)]


LADDERS = (  # (track, how many rungs, step of the extents, limits of the work)
    ("hopper", 9, 64, (12e9, 60e9)),
    ("hopper", 7, 64, (12e9, 60e9)),
    ("hopper", 5, 8, (12e9, 60e9)),
    ("hopper", 5, 8, (12e9, 60e9)),
    ("ampere", 9, 64, (8e9, 30e9)),
    ("ampere", 6, 8, (8e9, 30e9)),
    ("ampere", 5, 8, (8e9, 30e9)),
)


def ladders() -> list[tuple[str, list[int], Size]]:
    """(track, rungs, size) of the round."""
    found = []
    for place, (track, count, step, work) in enumerate(LADDERS):
        what = f"{track} {place}"
        numbers = some(f"{what} rungs", range(1 if step == 64 else 2, 10), count)
        found.append((track, numbers, product(what, (step,) * 3, work)))
    return found


if __name__ == "__main__":
    print(*ladders(), sep="\n")
