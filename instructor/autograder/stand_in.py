"""What a student is told of a size that the course keeps to itself: whether it passes. Nothing else.

Whatever a kernel does at such a size (what it reports, where, when, in which words) could carry the size
out. So a step that fails there is tried once more at a size that is drawn for the submission, from its hash
alone; of that one everything may be told, the size too, and a student can try it. Its kernel is built before
any hidden size: code that is built later could tell, by the clock, what was built between.
"""

from __future__ import annotations

from instructor.autograder.families import BLOCK_K, SMS, TILES, WORKERS, few_sms
from instructor.autograder.plan import PERSISTENT, Hidden, Run, secret_seed
from tirxlab.rubric import Size

HIDDEN_SIZE = "a size that the course keeps to itself"


def stand_in(step: int, digest: str, hidden: Hidden) -> Run:
    """A run at a size like the public ones: not square, K odd in tiles, from step 6 on with second tiles."""
    seed = secret_seed(hidden, digest, step, "stand-in")
    return Run(step, _size(step, seed), "integers", "adverse", seed, sms=few_sms(step))


def _size(step: int, seed: int) -> Size:
    """Hidden sizes are not left out: what is never drawn would tell them."""
    a, b, c = seed % 4, seed // 4 % 4, seed // 16 % 5
    if step <= 2:
        m = n = 1
    elif step < PERSISTENT:
        m, n = 2 + a, 6 - a + b
    else:
        workers = WORKERS[step] * few_sms(step) // SMS
        m = int(workers**0.5) + 1 + a
        n = workers // m + 1 + b
    rows, columns = TILES[step]
    return m * rows, n * columns, BLOCK_K * (17 + 2 * c)


def told(run: Run, reason: str) -> str:
    """The hint for a step that passes the public sizes and fails a hidden one; `reason`: at the stand-in."""
    if reason:
        return f"it fails at {HIDDEN_SIZE}, and at {run.place}, which you can try: {reason}"
    return f"it fails at {HIDDEN_SIZE}, and not at {run.place}: is one of them special in the code?"
