"""The public rubric as plain data: points, sizes, tolerances and reference times of the ten steps.

Read from `data/rubric.toml` and `data/b200_reference_ms.csv`. A size is (M, N, K).
"""

from __future__ import annotations

import csv
import functools
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).parent / "data"
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Shares:
    """How a step's points are shared out, and how speed counts that was not measured."""

    correctness: float
    implementation: float
    speed: float
    without_speed: str  # "apart" or "scaled"
    result_alone: float  # factor for a right result whose kernel lacks what the previous step demands

    def __post_init__(self):
        if abs(self.correctness + self.implementation + self.speed - 1) > 1e-9:
            raise ValueError("rubric.toml: the three shares of [grading] must add up to 1")
        if self.without_speed not in ("apart", "scaled"):
            raise ValueError('rubric.toml: without_speed is "apart" or "scaled"')
        if not 0 <= self.result_alone <= 1:
            raise ValueError("rubric.toml: result_alone is a part, from 0 to 1")

    def result(self, complete: bool) -> float:
        """The share for a right result; `complete`: the kernel has what the previous step demands."""
        return self.correctness * (1 if complete else self.result_alone)


@dataclass(frozen=True)
class Rubric:
    """Everything public about grading; dictionaries are by step number."""

    titles: dict[int, str]
    points: dict[int, int]
    reference_ms: dict[int, dict[Size, float]]  # published B200 milliseconds per size; also the test sizes
    uneven: dict[int, tuple[Size, ...]]  # further sizes, for correctness alone
    graded: dict[int, tuple[Size, ...]]  # the public sizes of `./lab grade`
    few_sms: dict[tuple[int, Size], int]  # (step, size) -> SM_COUNT of that run
    shares: Shares
    rtol: float
    atol: float
    speed_factor: float  # passes at >= reference TFLOP/s / speed_factor

    def sizes(self, step: int) -> list[Size]:
        """Every size at which the step's result is tested."""
        return [*self.reference_ms[step], *self.uneven[step]]

    def orders(self, step: int, size: Size) -> tuple[str, ...]:
        """The orders in which the simulator runs a size by default; both extremes for the uneven ones."""
        return ("program", "adverse") if size in self.uneven[step] else ("program",)

    def quick_sizes(self, step: int) -> list[Size]:
        """The sizes that the simulator runs by default: up to 1024 cubed in volume, and the uneven ones."""
        small = [(M, N, K) for M, N, K in self.reference_ms[step] if M * N * K <= 1024**3]
        return [*small, *self.uneven[step]]


@functools.cache
def load_rubric() -> Rubric:
    """The rubric; ValueError if the two files disagree about the steps."""
    with open(DATA / "rubric.toml", "rb") as file:
        data = tomllib.load(file)
    steps = {row["number"]: row for row in data["step"]}
    times = _reference_times()
    if set(steps) != set(times):
        raise ValueError(f"rubric.toml has steps {sorted(steps)}, b200_reference_ms.csv has {sorted(times)}")
    return Rubric(
        titles={n: row["title"] for n, row in steps.items()},
        points={n: row["points"] for n, row in steps.items()},
        reference_ms=times,
        uneven={n: _sizes(row["uneven"]) for n, row in steps.items()},
        graded={n: _sizes(row["grade"]) for n, row in steps.items()},
        few_sms={
            (n, tuple(size[:3])): size[3]
            for n, row in steps.items()
            for size in (*row["uneven"], *row["grade"])
            if len(size) > 3
        },
        shares=Shares(**data["grading"]),
        rtol=data["tolerance"]["rtol"],
        atol=data["tolerance"]["atol"],
        speed_factor=data["speed_factor"],
    )


def _sizes(rows: list[list[int]]) -> tuple[Size, ...]:
    """[M, N, K] or [M, N, K, SM_COUNT] -> (M, N, K)."""
    return tuple((m, n, k) for m, n, k, *_ in rows)


def _reference_times() -> dict[int, dict[Size, float]]:
    times: dict[int, dict[Size, float]] = {}
    with open(DATA / "b200_reference_ms.csv", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            size = (int(row["M"]), int(row["N"]), int(row["K"]))
            times.setdefault(int(row["step"]), {})[size] = float(row["ms"])
    return times
