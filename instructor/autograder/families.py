"""Sizes that show what a step lacks: never square, K an odd number of K tiles and 1024 or more.

No ring holds all of such a K; from step 6 on there are more tiles than CTAs (or clusters), so that some take
two. Hidden sizes are of this family, and so is the size that is drawn for a submission.
"""

from __future__ import annotations

import random

from instructor.autograder.behaviour import SMS
from tirxlab.rubric import Size, load_rubric

BLOCK_K = 64
K_TILES = (17, 19, 21)
TILES = {step: (128, 128) for step in range(1, 9)} | {9: (256, 256), 10: (512, 256)}  # of D, by step
WORKERS = {6: SMS, 7: SMS, 8: SMS, 9: SMS // 2, 10: SMS // 2}  # CTAs or clusters that take tiles in turn
MORE = 1.1  # times as many tiles as workers, at most
EVEN = 256  # what M is a multiple of at the public sizes of steps 3 to 5: nobody has to do with less


def candidates(step: int) -> list[Size]:
    (height, width), workers = TILES[step], WORKERS.get(step, 0)
    shapes = [(1, 1)] if step == 2 else [(m, n) for m in range(2, 25) for n in range(2, 25) if m != n]
    if step != 2:
        least, most = (workers + 1, MORE * workers) if workers else (8, 15)
        shapes = [(m, n) for m, n in shapes if least <= m * n <= most]
    return [(m * height, n * width, k * BLOCK_K) for m, n in shapes for k in K_TILES]


def drawn(step: int, seed: int) -> Size | None:
    """The size for this seed; None for step 1, whose size is fixed.

    What is hidden is not left out: what is never drawn would tell it.
    """
    public = set(load_rubric().sizes(step)) | set(load_rubric().graded[step])
    able = [size for size in candidates(step) if size not in public] if step > 1 else []
    if 3 <= step <= 5:
        able = [size for size in able if size[0] % EVEN == 0]
    return random.Random(seed).choice(able) if able else None
