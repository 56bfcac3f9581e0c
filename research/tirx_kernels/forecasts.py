"""`python forecasts.py write ROWS` / `fit` / `compare`: predicted and published times of workloads on a B200.

`write` puts the times that forecast_one.py left in ROWS into library_b200.csv.xz next to this file; rows that
ROWS lacks stay. A hash of a row's name put it into one of two halves, until both had been looked at; a row
that was added later is `new`, or `seen` if it has been looked at since. A `fresh` row was predicted before it
was compared, and nothing has been fitted or fixed since. `fit` shows the first half and the times that the
library publishes (tirx_kernels/bench_suite/baseline.md, an NVIDIA B200): whatever was fitted or fixed was
looked up there. `compare` shows all rows. The published figures are not ours.
"""

from __future__ import annotations

import csv
import json
import lzma
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

TABLE = Path(__file__).parent / "library_b200.csv.xz"
FIELDS = ("kernel", "config", "half", "launches", "model_us", "bound", "published_us")
LONG = 10.0  # us: shorter kernels are mostly launch


def published() -> dict[tuple[str, str], float]:
    """(kernel, configuration) -> us, for the library's own implementation."""
    import tirx_kernels

    path = Path(tirx_kernels.__file__).parent / "bench_suite" / "baseline.json"
    rows = json.loads(path.read_text())["results"]
    return {
        (r["kernel"], r["label"]): next(iter(r["impls"].values())) for r in rows if r["timer"] == "proton"
    }


def write(folder: Path) -> None:
    known, lines = published(), []
    with lzma.open(TABLE, "rt") as file:
        before = {(row["kernel"], row["config"]): row for row in csv.DictReader(file)}
    for (kernel, config), us in sorted(known.items()):
        old = before.get((kernel, config))
        path = folder / f"{kernel}--{config}.json"
        launches = json.loads(path.read_text())["launches"] if path.exists() else []
        if launches:
            longest = max(launches, key=lambda one: one["us"])
            bound = max(longest["spent"], key=longest["spent"].get, default="launch")
            model = round(sum(one["us"] for one in launches), 3)
            part = old["half"] if old else "fresh"
            lines.append((kernel, config, part, len(launches), model, bound, round(us, 3)))
        elif old:
            lines.append(tuple(old.values()))
    with lzma.open(TABLE, "wt", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *lines])


def predicted(row: dict) -> float:
    """Predicted us, with the device's constant for each launch."""
    from ptxsim.forecasting import chip

    return float(row["model_us"]) + 1e6 * chip("b200", "kernel").launch * int(row["launches"])


def show(rows: Iterable[dict], name: str) -> None:
    ratios = []
    for row in rows:
        ratio = predicted(row) / float(row["published_us"])
        ratios.append((abs(ratio - 1), float(row["published_us"]), ratio))
        times = f"{predicted(row):9.1f} {float(row['published_us']):9.1f}"
        line = f"{row['kernel'][:44]:44} {row['config'][:50]:50} {times}"
        print(f"{line}  {ratio:5.2f}  {row['bound']}")
    for what, errors in (
        (f"over {LONG:.0f} us", [e for e, us, _ in ratios if us > LONG]),
        ("shorter", [e for e, us, _ in ratios if us <= LONG]),
    ):
        if errors:
            good = sum(e <= 0.15 for e in errors)
            print(
                f"{name}, {what}: {len(errors)} rows, median error {statistics.median(errors):.3f}, mean "
                f"{statistics.mean(errors):.3f}, worst {max(errors):.2f}, within 15 %: {good}"
            )


def main() -> None:
    what, *rest = sys.argv[1:] or [""]
    if what == "write" and rest:
        write(Path(rest[0]))
        return
    if what not in ("fit", "compare"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    with lzma.open(TABLE, "rt") as file:
        rows = list(csv.DictReader(file))
    for part in ("fit", "unseen", "new", "seen", "fresh") if what == "compare" else ("fit",):
        show([row for row in rows if row["half"] == part], part)


if __name__ == "__main__":
    main()
