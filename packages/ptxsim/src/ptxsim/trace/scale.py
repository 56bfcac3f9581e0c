"""The time axis of a timeline: round marks, times as text. Ticks are counted, nanoseconds modelled."""

from __future__ import annotations

import itertools

NANOSECONDS = "ns"
_MICRO = 20_000  # from so many nanoseconds on, an axis is in microseconds


def step_of(end: float, most: int) -> float:
    """The step between marks on an axis from 0 to `end` with at most `most` intervals: 1, 2 or 5 * 10^n."""
    steps = (lead * 10.0**power for power in itertools.count() for lead in (1, 2, 5))
    return next(step for step in steps if end / step <= most)


def marks(end: float, most: int) -> list[float]:
    """0, step, 2 * step, .. up to `end`."""
    step = step_of(end, max(most, 1))
    return [i * step for i in range(int(end / step) + 1)]


def axis_unit(end: float, unit: str) -> tuple[str, float]:
    """(name of the axis's unit, how many of `unit` make one)."""
    if unit == NANOSECONDS and end >= _MICRO:
        return "µs", 1000.0
    return unit, 1.0


def number(value: float) -> str:
    """A number as text: 1,536 or 2.5."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}".rstrip("0").rstrip(".")


def words(value: float, unit: str) -> str:
    """A span of time as text: `1,536 ticks`, `840 ns`, `23.4 µs`."""
    name, size = axis_unit(value, unit)
    return f"{number(rounded(value / size))} {name}"


def rounded(value: float) -> float:
    """Rounded to two decimals; from 100 on, to an integer."""
    return round(value) if value >= 100 else round(value, 2)
