"""Compiles the simulator's main loop on the first run on a computer: half a minute, with a progress bar."""

from __future__ import annotations

import sys
import threading
import time

USUAL = 30.0  # seconds on an average core; the bar approaches its end but never reaches it


def compile_with_bar() -> None:
    """Compiles the main loop; if stderr is a terminal, shows a progress bar meanwhile."""
    import ptxsim

    if not sys.stderr.isatty():
        ptxsim.warm_up()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    with Progress(BarColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        bar, done = progress.add_task("", total=1.0), threading.Event()
        mover = threading.Thread(target=_move, args=(progress, bar, done), daemon=True)
        mover.start()
        try:
            ptxsim.warm_up()
        finally:
            done.set()
            mover.join()


def share(spent: float) -> float:
    """The filled share of the bar after this many seconds: 3/4 at the usual time, always below 1."""
    return spent / (spent + USUAL / 3)


def _move(progress, bar, done: threading.Event) -> None:
    start = time.monotonic()
    while not done.wait(0.2):
        progress.update(bar, completed=share(time.monotonic() - start))
