"""What the checks cost: a run with all checks over one without, in turns in one process.

    python packages/tirxlab/bench/checks_cost.py [STEP:SIZE ..]   default: uneven sizes; 8, 10 at 2048

One line per kernel: seconds without and with checks (medians of three), their ratio, verdict.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from instructor.solutions import gemm_kernels
from tirxlab.devices import sim
from tirxlab.rubric import load_rubric
from tirxlab.steps import parse_size, size_text
from tirxlab.toolchain.build import build
from utils import prepare_data


def defaults() -> list[tuple[int, tuple[int, int, int]]]:
    uneven = load_rubric().uneven
    largest = [(step, max(sizes, key=np.prod)) for step, sizes in sorted(uneven.items()) if sizes]
    return [*largest, (8, (2048,) * 3), (10, (2048,) * 3)]


def cost(step: int, size: tuple[int, int, int]) -> str:
    artifact = build(getattr(gemm_kernels, f"hgemm_v{step}")(*size))
    arrays, seconds = prepare_data(*size), {False: [], True: []}
    for checks in (False, True) * 4:
        start = time.perf_counter()
        run = sim.run(artifact, arrays, checks=checks)
        seconds[checks].append(time.perf_counter() - start)
    off, on = (float(np.median(times[1:])) for times in seconds.values())  # the first compiles and imports
    text = f"step {step:2} {size_text(tuple(size)):>14}"
    return f"{text}: {off:6.2f} s without, {on:6.2f} s with checks, ratio {on / off:.1f}, {run.verdict}"


if __name__ == "__main__":
    given = [(int(step), parse_size(size)) for step, size in (a.split(":") for a in sys.argv[1:])]
    for step, size in given or defaults():
        print(cost(step, tuple(size)), flush=True)
