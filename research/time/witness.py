"""Guessed and counted instructions over those that an H200 counted: `python -m research.time.witness`.

Uses the 24 kernels of research/chip/results/timing-counters-nvidia-h200.json.xz; takes a minute and a half
and needs ptxas. A cluster is recorded; how often each row ran is multiplied by the number of instructions
that it becomes, as sass_guess.py guesses and as sass_count.py counts in the machine code. Warps that wait on
a barrier in a loop (hopper1) run it more often than the model does.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path

from ptxsim.forecasting import assembled, chip, sample
from ptxsim.timing.execution import Execution, Run
from ptxsim.timing.machine_code import code
from ptxsim.timing.sass_count import Counted
from research import packed
from research.time.counters import SETS
from research.time.run import load
from tirxlab.forecast import launch_of

COUNTERS = Path(__file__).parents[1] / "chip" / "results" / "timing-counters-nvidia-h200.json.xz"
CLOSE = 0.05


def executions(execution: Execution) -> Counter:
    """Row -> how often the warps of the cluster run it."""
    found: Counter = Counter()
    for step in (step for warp in execution.warps for step in warp):
        rows = range(step.first, step.last + 1) if type(step) is Run else [step.row]
        found.update(row for row in rows if row >= 0)
    return found


def ratios(artifact, measured: float) -> tuple[float, float]:
    """(guessed, counted), each divided by the counter."""
    model, launch = chip("h200"), launch_of(artifact)
    taken = sample(launch, sms=int(model.sms))
    sass = code(assembled(artifact.ptx, model.arch))
    if sass is None:
        raise SystemExit("ptxas was not found: install nvidia-cuda-nvcc, or put it into the PATH")
    rows, clusters = executions(taken.execution), taken.clusters * taken.mean
    both = taken.execution.sass_counts, Counted(launch.program, sass).counts
    times = clusters / measured
    guessed, counted = (sum(n * becomes[row] for row, n in rows.items()) * times for becomes in both)
    return guessed, counted


def main() -> None:
    measured = {row["kernel"]: row["instructions"] for row in json.loads(packed.read(COUNTERS))["rows"]}
    found = []
    for saved in (saved for path in SETS for saved in load(path) if saved.name in measured):
        found.append(ratios(saved.artifact, measured[saved.name]))
        print(f"{saved.name:54} guessed {found[-1][0]:5.2f} counted {found[-1][1]:5.2f}", flush=True)
    for title, some in zip(("guessed", "counted"), zip(*found, strict=True), strict=True):
        errors = [abs(ratio - 1) for ratio in some]
        close = sum(error <= CLOSE for error in errors)
        print(f"{title}: {len(errors)} kernels, median {statistics.median(errors):.3f}, within 5 %: {close}")


if __name__ == "__main__":
    main()
