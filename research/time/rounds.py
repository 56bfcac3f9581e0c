"""rounds.csv.xz, the table of all times on an H200: round, kernel, predicted in advance, measured.

python -m research.time.rounds N PREDICTED.json TIMED.json      adds a round that was timed
"""

from __future__ import annotations

import csv
import json
import lzma
import sys
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("rounds.csv.xz")
CALIBRATION = 0  # the round whose times the model was first fitted on
_TIMED = {"measured": "ms", "spread": "spread", "tflops": "tflops", "mhz": "clock_mhz", "watts": "watts"}
_HEAD = ["round", "kernel", "predicted", "predicted_mhz", *_TIMED, "why_not"]  # the last if there is one


@dataclass(frozen=True)
class Timed:
    """A row: times in milliseconds, None if there are none; `spread`: of the
    samples, relative to the median.
    """

    round: int
    kernel: str
    predicted: float | None
    measured: float | None
    spread: float | None


def rows(number: int) -> list[Timed]:
    """The rows of a round."""
    with lzma.open(TABLE, "rt", newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return [_timed(line) for line in lines if int(line["round"]) == number]


def _timed(line: dict[str, str]) -> Timed:
    numbers = (float(line[name]) if line[name] else None for name in ("predicted", "measured", "spread"))
    return Timed(int(line["round"]), line["kernel"], *numbers)


def newest() -> int:
    """The last round that has been timed."""
    with lzma.open(TABLE, "rt", newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return max(int(line["round"]) for line in lines)


def add(number: int, predicted: dict, timed: dict) -> None:
    """Adds a round, from the output of `time_model.py predict` and `round.py`."""
    before = {row["kernel"]: row for row in predicted["rows"]}
    after = {row["kernel"]: row for row in timed["rows"]}
    about = f"# round {number}: {timed['gpu']}, {timed['date']}; {timed['method']}; predicted with h200.toml "
    with lzma.open(TABLE, "rt", newline="") as file:
        *comments, head, body = file.read().partition(",".join(_HEAD) + "\n")
    with lzma.open(TABLE, "wt", newline="") as file:
        file.write("".join(comments) + f"{about}{predicted['h200.toml']}\n" + head + body)
        table = csv.writer(file, lineterminator="\n")
        for kernel in dict.fromkeys([*before, *after]):
            said, took = before.get(kernel, {}), after.get(kernel, {})
            measured = [took.get(name, "") for name in _TIMED.values()]
            why_not = [why for why in (said.get("refused"), took.get("failed")) if why][:1]
            mine = [number, kernel, said.get("ms", ""), said.get("clock_mhz", "")]
            table.writerow([*mine, *measured, *why_not])


if __name__ == "__main__":
    add(int(sys.argv[1]), *(json.loads(Path(name).read_text()) for name in sys.argv[2:4]))
