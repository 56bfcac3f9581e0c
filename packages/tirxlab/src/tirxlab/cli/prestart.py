"""Starts the processes that `check` will need, before the command itself imports anything.

While the confined children import TVM and NVRTC and a process of the pool imports the simulator, the command
reads its arguments. If it does not take the processes (an argument is wrong, say), they end with it.
"""

from __future__ import annotations

import atexit
import compileall
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tirxlab.pool import Pool
from tirxlab.sandbox.session import Session

TIRXLAB = Path(__file__).parents[1]
_READY: list[Processes] = []


@dataclass
class Processes:
    """The processes of one Runner."""

    pool: Pool
    student: Session
    compiler: Session

    def close(self) -> None:
        self.pool.__exit__()
        for session in (self.student, self.compiler):
            session.stop()
        for session in (self.student, self.compiler):
            session.close()


def wanted(*arguments: str) -> bool:
    """Whether these words after `./lab` are a `check` of steps on the usual device."""
    command, step, *others = *arguments, "", ""
    steps = step in ("", "all") or step[:1].isdigit() or step.startswith("--")
    asked = {word.partition("=")[0] for word in (step, *others)}
    return command == "check" and steps and not asked & {"--device", "--help"} and len(arguments) > 0


def start() -> None:
    made = Processes(Pool(1), Session("lower"), Session("compile"))
    atexit.register(_end_unused)
    _READY.append(made)
    made.pool.start(prepare, None)
    made.student.start()
    made.compiler.start()


def take() -> Processes | None:
    """The processes that were started ahead, to the first caller; None to any other."""
    return _READY.pop() if _READY else None


def _end_unused() -> None:
    while _READY:
        _READY.pop().close()


def prepare(device: str | None) -> Callable[[], None]:
    """Imports what a run needs and warms it up, in a pool process while the first kernel is built."""
    from tirxlab.devices import device_name

    simulates = device_name(device) == "sim"
    if simulates:
        import ptxsim

        ptxsim.warm_up()
    import utils  # noqa: F401

    return functools.partial(prepare_more, simulates)


def prepare_more(simulates: bool) -> None:
    """What only later work needs: the prediction of a time, and other processes."""
    if simulates:
        import ptxsim.forecasting  # noqa: F401

    if not sys.dont_write_bytecode:
        compileall.compile_dir(TIRXLAB, quiet=2)  # a confined child imports these but cannot write them
