"""The kernel of one planned run."""

from __future__ import annotations

import math
from collections.abc import Callable

from instructor.autograder.families import SMS
from instructor.autograder.plan import Run
from tirxlab.sandbox import Built


def built_for(run: Run, build: Callable[..., Built]) -> tuple[Run, Built]:
    """What `build(step, size, sms)` makes for it, and the run.

    That is another one, on all SMs, where the code does not ask how many there are: on a few of them, most of
    its CTAs would have nothing to do.
    """
    built = build(run.step, run.size, run.sms)
    few = run.sms not in (None, SMS)
    if few and built.artifact and math.prod(built.artifact.grid) != run.sms:
        run = run.on_all_sms()
        built = build(run.step, run.size, run.sms)
    return run, built
