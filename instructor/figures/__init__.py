"""The figures and printed findings of the slides, drawn from this project's layouts, artifacts and runs.

`draw_all(folder)` writes SVG and text files. Nothing is drawn from memory: every number comes from
ptxsim, from an artifact, or from the published table in tirxlab/data.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from instructor.figures import layouts, numbers, runs, structure, tables


def figures() -> dict[str, Callable[[], str]]:
    """File name -> what makes its text."""
    return layouts.FIGURES | numbers.FIGURES | runs.FIGURES | structure.FIGURES | tables.FIGURES


def draw_all(folder: Path, progress: Callable[[str], None] = lambda name: None) -> list[Path]:
    """Write every figure; returns the files. Takes under a minute with warm caches."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, make in figures().items():
        progress(name)
        file = folder / name
        file.write_text(make(), encoding="utf-8")
        written.append(file)
    return written
