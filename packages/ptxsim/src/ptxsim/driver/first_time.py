"""The first run on a computer compiles the simulator's main loop: once, about half a minute, with a bar."""

from __future__ import annotations

import sys
import threading
import time

USUAL = 30.0  # seconds on an average core; the bar approaches its end and never passes it


def compile_with_bar() -> None:
    """Compiles; on a terminal a bar moves meanwhile."""
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
    """How full the bar is after this many seconds: three quarters at the usual time, and never quite full."""
    return spent / (spent + USUAL / 3)


def _move(progress, bar, done: threading.Event) -> None:
    start = time.monotonic()
    while not done.wait(0.2):
        progress.update(bar, completed=share(time.monotonic() - start))
