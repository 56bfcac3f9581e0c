"""The figures and printed findings of the slides, drawn from this project's layouts, artifacts and runs.

`figures()` names them; `./lab figures` writes them. Nothing is drawn from memory: every number comes from
ptxsim, from an artifact, or from the published table in tirxlab/data.
"""

from __future__ import annotations

from collections.abc import Callable

from instructor.figures import charts, layouts, runs, structure, tables


def figures() -> dict[str, Callable[[], str]]:
    """File name -> what makes its text."""
    return layouts.FIGURES | charts.FIGURES | runs.FIGURES | structure.FIGURES | tables.FIGURES
