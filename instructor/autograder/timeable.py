"""Whether an artifact may be timed: it first runs on the simulator, at the size and with the data of timing.

A step that is right at small sizes may be another kernel at the published ones: its code knows the size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ptxsim
from instructor.autograder.judge import judge
from instructor.autograder.plan import Run
from instructor.autograder.ptx_rules import outlives_a_flush
from instructor.autograder.speed import Timed, floor, launches
from ptxsim.observing import unset_reads
from tirxlab.artifact import Artifact
from tirxlab.forecast import NoForecast, forecast
from tirxlab.pool import Failed, Pool

SECONDS = 300.0  # for a run of the largest published size


def timeable(step: int, build: Callable, seed_of: Callable) -> list[Timed]:
    """The step's launches at its published sizes, each checked by `look`; raises NotBuilt like `launches`."""
    return [with_floor(one) for one in launches(step, build, seed_of, look)]


def look(step: int, one: Timed, artifact: Artifact) -> str:
    """Why the launch must not be timed, in fixed words with nothing of the step's own; "" if it may."""
    if kept := outlives_a_flush(artifact.ptx):
        return kept
    run = Run(step, one.size, "random", "program", one.seed)
    with Pool(1, SECONDS, memory=16 << 30) as pool:
        pool.submit(step, judge, run, artifact)
        ((_, found),) = pool.results()
    if isinstance(found, Failed):
        return f"the run {found.message}"
    if not found.right:
        return "it is not right"
    if any(finding["kind"] == "uninitialized" for finding in found.findings):
        return "it reads uninitialized memory, in which a launch could leave D for the next"
    if unset_reads(ptxsim.load(artifact.ptx).module, artifact.entry):
        return "it reads a register that may be uninitialized, in which a launch could leave D for the next"
    return ""


def with_floor(one: Timed) -> Timed:
    """The launch with its least possible time, for which a prediction counts if there is one."""
    flops = 2.0 * one.size[0] * one.size[1] * one.size[2]
    with Pool(1, SECONDS, memory=16 << 30) as pool:
        pool.submit("forecast", predicted_ms, Artifact.from_bytes(one.artifact), flops)
        ((_, found),) = pool.results()
    return one if isinstance(found, Failed) else replace(one, floor_ms=floor(one.size, found))


def predicted_ms(artifact: Artifact, flops: float) -> float:
    """The predicted milliseconds on a B200; 0 if nothing can be predicted."""
    try:
        return forecast(artifact, "b200", flops).ms
    except (NoForecast, ValueError):
        return 0.0
