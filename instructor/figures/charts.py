"""Charts: the published B200 times of the course, and what the simulator counts in one run of each step."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import tirxlab
from tirxlab.explain.picture.svg import SERIES, Shape, alike, document, line, rect, text

TABLE = Path(tirxlab.__file__).parent / "data" / "b200_reference_ms.csv"


def published(size: int) -> dict[int, float]:
    """Step -> TFLOP/s at size^3, from the published times."""
    with TABLE.open(encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        wanted = [r for r in rows if r["M"] == r["N"] == r["K"] == str(size)]
    return {int(r["step"]): 2 * size**3 / (float(r["ms"]) * 1e-3) / 1e12 for r in wanted}


def bars(title: str, values: dict[str, float], unit: str, form: str = "{:.0f}") -> str:
    """A horizontal bar chart, one row per entry."""
    top, left, width, row = 24, 70, 330, 20
    largest = max(values.values())
    parts: list[Shape] = [text(10, 13, title, 10, bold=True)]
    for i, (name, value) in enumerate(values.items()):
        y = top + i * row
        parts.append(text(left - 6, y + 13, name, 9, "end"))
        parts.append(
            rect(left, y + 2, value / largest * width, row - 5, SERIES[i % len(SERIES)], opacity=0.6)
        )
        label = f"{form.format(value)} {unit}"
        parts.append(text(left + value / largest * width + 5, y + 13, label, 9))
    parts.append(line(left, top, left, top + len(values) * row, "ink"))
    return document(500, top + len(values) * row + 6, alike(parts))


def published_chart() -> str:
    title = "published B200 figures of the course, 4096 x 4096 x 4096"
    return bars(title, {f"step {s}": v for s, v in published(4096).items()}, "TFLOP/s")


def counted_chart() -> str:
    from instructor.figures.runs import simulate

    counts = {f"step {s}": simulate(s, (512, 512, 512)).stats["warp_instructions"] for s in range(3, 11)}
    title = "warp instructions at 512 x 512 x 512, counted by ptxsim"
    return bars(title, counts, "", "{:,.0f}")


FIGURES: dict[str, Callable[[], str]] = {"published.svg": published_chart, "counted.svg": counted_chart}
