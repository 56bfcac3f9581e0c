"""What a student is told of a size that the course keeps to itself: whether it passes. Nothing else.

Whatever a kernel does at such a size (what it reports, where, when, in which words) could carry the size
out. So a step that fails there is tried once more at a size that is drawn for the submission, from its hash
alone; of that one everything may be told, the size too, and a student can try it.
"""

from __future__ import annotations

from collections.abc import Iterable

from instructor.autograder.plan import PERSISTENT, Hidden, Run, secret_seed
from tirxlab.rubric import Size
from tirxlab.steps import size_text

HIDDEN_SIZE = "a size that the course keeps to itself"
TILES = {9: (256, 256), 10: (512, 256)}  # of D that a CTA or a pair takes; others 128 x 128
SMS = 148


def stand_in(step: int, digest: str, hidden: Hidden) -> Run:
    """A run at a size like the public ones: not square, K odd in tiles, from step 6 on with second tiles."""
    seed = secret_seed(hidden, digest, step, "stand-in")
    size = next(size for size in _sizes(step, seed) if size not in hidden.sizes.get(step, ()))
    return Run(step, size, "integers", "adverse", seed)


def _sizes(step: int, seed: int) -> Iterable[Size]:
    rows, columns = TILES.get(step, (128, 128))
    at_once = SMS // 2 if step in TILES else SMS
    while True:
        seed, a, b, c = seed // 5 + 7, seed % 4, seed // 4 % 4, seed // 16 % 5
        if step <= 2:
            m = n = 1
        elif step < PERSISTENT:
            m, n = 2 + a, 6 - a + b
        else:
            m = int(at_once**0.5) + 1 + a
            n = at_once // m + 1 + b
        yield m * rows, n * columns, 64 * (17 + 2 * c)


def told(size: Size, reason: str) -> str:
    """The hint for a step that passes the public sizes and fails a hidden one; `reason`: at the stand-in."""
    if reason:
        return f"it fails at {HIDDEN_SIZE}, and at {size_text(size)}, which you can try: {reason}"
    return f"it fails at {HIDDEN_SIZE}, and not at {size_text(size)}: is one of them special in the code?"
