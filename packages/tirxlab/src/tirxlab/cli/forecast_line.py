"""The line of `check` about time: what the time model predicts for a step on a B200.

This file imports little: the command waits for it, and a process of the pool imports it to unpickle a task.
"""

from tirxlab.artifact import Artifact
from tirxlab.pool import Failed, Pool
from tirxlab.steps import size_text

COMPARABLE_FROM = 4  # steps 1 to 3 differ from the published kernels, which copied tiles element by element


def told_in_a_line(artifact: Artifact, size: tuple[int, int, int], published: float, pool: Pool) -> str:
    """The predicted time at a size beside the published one (ms), as one line; made in a pool process."""
    pool.submit("forecast", attempt, artifact, 2.0 * size[0] * size[1] * size[2])
    ((_, found),) = pool.results()
    if isinstance(found, str | Failed):
        return f"time: not predicted ({found if isinstance(found, str) else found.message})"
    ms, bound = found
    at = f"time on a B200 at {size_text(size)}"
    return f"{at}: {ms:.3g} ms predicted ({published:g} published), bound by {bound}; not measured"


def attempt(artifact: Artifact, flops: float) -> tuple[float, str] | str:
    """(milliseconds, what bounds it), or why there is no forecast. Runs in a process of the pool."""
    from tirxlab.forecast import NoForecast, forecast

    try:
        found = forecast(artifact, "b200", flops)
        return found.ms, found.bound
    except (NoForecast, ValueError) as error:
        return str(error)
