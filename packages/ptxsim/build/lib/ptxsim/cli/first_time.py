"""The first run on a computer compiles the simulator's main loop: once, about a minute, with a bar."""

from __future__ import annotations

import threading
import time

USUAL = 60.0  # seconds on an average core; the bar approaches its end and never passes it


def compile_with_bar(quiet: bool = False) -> None:
    """Compiles while a bar on stderr moves; with `quiet` one line says what takes so long."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    import ptxsim

    console = Console(stderr=True)
    if quiet:
        console.print("ptxsim: compiling the simulator, once, about a minute")
        ptxsim.warm_up()
        return
    columns = (
        TextColumn("ptxsim: compiling the simulator (once, about a minute)"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar, done = progress.add_task("", total=1.0), threading.Event()
        mover = threading.Thread(target=_move, args=(progress, bar, done), daemon=True)
        mover.start()
        try:
            ptxsim.warm_up()
        finally:
            done.set()
            mover.join()


def _move(progress, bar, done: threading.Event) -> None:
    start = time.monotonic()
    while not done.wait(0.2):
        spent = (time.monotonic() - start) / USUAL
        progress.update(bar, completed=spent / (0.3 + spent) * 1.2 if spent < 1.5 else 0.99)
