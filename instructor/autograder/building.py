"""Builds the kernel of one planned run."""

from __future__ import annotations

import math
from collections.abc import Callable

from instructor.autograder.families import SMS
from instructor.autograder.plan import Run
from tirxlab.sandbox import Built


def built_for(run: Run, build: Callable[..., Built]) -> tuple[Run, Built]:
    """(the run, the kernel that `build(step, size, sms)` makes for it).

    The run becomes another one, on all SMs, if the code ignores the number of SMs: on a few of them, most of
    its CTAs would have nothing to do.
    """
    built = build(run.step, run.size, run.sms)
    few = run.sms not in (None, SMS)
    if few and built.artifact and math.prod(built.artifact.grid) != run.sms:
        run = run.on_all_sms()
        built = build(run.step, run.size, run.sms)
    return run, built
