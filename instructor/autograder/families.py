"""Sizes that reveal what a step lacks: never square, with an odd number of K tiles and K of at least 1024.

No ring holds all of such a K; from step 6 on there are more tiles than CTAs (or clusters), so that some take
two. Hidden sizes are of this family. So is the size drawn for a submission, except for its K: in steps 4 and
5, with one tile per CTA, it may be as long as at the timed sizes. From step 6 on both are launches on a few
SMs, which cost less, and a third, larger size is drawn, on all SMs: each CTA takes four or more tiles with a
longer K. Of that launch only one cluster is run.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tirxlab.rubric import Size, load_rubric

SMS = 148  # of a B200
BLOCK_K = 64
K_TILES = (17, 19, 21)
LONGER = {4: range(33, 66, 2), 5: range(33, 66, 2)}  # K tiles of a drawn size
TILES = {step: (128, 128) for step in range(1, 9)} | {9: (256, 256), 10: (512, 256)}  # of D, by step
WORKERS = {6: SMS, 7: SMS, 8: SMS, 9: SMS // 2, 10: SMS // 2}  # CTAs or clusters that take tiles in turn
MORE = 1.1  # times as many tiles as workers, at most
MANY = 4, 4.6  # least and most tiles per worker, on average, of the larger launch
LONG_K = range(24, 34)  # K tiles of the larger launch
FEW = 16  # SMs of small launches: some CTAs have two tiles; an odd factor that permutes 148 also permutes 16
MORE_OF_FEW = 1.75  # times as many tiles as workers, at most, of a small launch
EVEN = 256  # M is a multiple of it at the public sizes of steps 3 to 5: no kernel has to support others


def candidates(step: int, k_tiles: Sequence[int] = K_TILES, sms: int = SMS) -> list[Size]:
    """The sizes of this family for a launch on `sms` SMs."""
    (height, width), workers = TILES[step], WORKERS.get(step, 0) * sms // SMS
    shapes = [(1, 1)] if step == 2 else [(m, n) for m in range(2, 25) for n in range(2, 25) if m != n]
    if step != 2:
        more = MORE if sms == SMS else MORE_OF_FEW
        least, most = (workers + 1, more * workers) if workers else (8, 15)
        shapes = [(m, n) for m, n in shapes if least <= m * n <= most]
    if 3 <= step <= 5:
        shapes = [(m, n) for m, n in shapes if m * height % EVEN == 0]
    return [(m * height, n * width, k * BLOCK_K) for m, n in shapes for k in k_tiles]


def few_sms(step: int) -> int:
    """SMs for which the launch at the drawn size is built."""
    return FEW if step in WORKERS else SMS


def drawn(step: int, seed: int, sms: int = SMS) -> Size | None:
    """The size drawn with this seed; None for step 1, whose size is fixed.

    Hidden sizes are not left out: the sizes that are never drawn would give them away.
    """
    public = set(load_rubric().sizes(step)) | set(load_rubric().graded[step])
    if step == 1:
        return None
    able = candidates(step, LONGER.get(step, K_TILES), sms)
    return random.Random(seed).choice([size for size in able if size not in public])


def many_tiles(step: int, seed: int) -> Size | None:
    """The larger size drawn with this seed, square half of the time, as timed sizes; None before step 6."""
    if step not in WORKERS:
        return None
    draw, (height, width) = random.Random(seed), TILES[step]
    least, most = (n * WORKERS[step] for n in MANY)
    sides = [(m * height, n * width) for m in range(2, 49) for n in range(2, 49) if least <= m * n <= most]
    sides = [(m, n) for m, n in sides if m % EVEN == 0 and max(m, n) <= 4 * min(m, n)]
    square = draw.random() < 0.5
    M, N = draw.choice([(m, n) for m, n in sides if (m == n) == square])
    return M, N, draw.choice(LONG_K) * BLOCK_K
