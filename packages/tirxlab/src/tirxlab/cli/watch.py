"""Ctrl-C ends every command within a second, even one that is inside compiled code.

The command runs in a child process, and its parent only waits. After Ctrl-C (or SIGTERM) the child has GRACE
seconds to end by itself; then it is killed. No process that it started outlives it.
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

GRACE = 0.5  # seconds
STOPPED = 130  # exit status after Ctrl-C, as in shells
PR_SET_PDEATHSIG = 1  # prctl(2)
SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"  # an interrupted progress bar leaves its line, and the cursor hidden


def watched(command: Callable[[], int]) -> int:
    """Run `command` in a child process and return its exit status; in this process where there is no fork."""
    if not hasattr(os, "fork"):
        return command()
    sys.stdout.flush()
    watch = Watch()
    signal.signal(signal.SIGINT, watch.stop)
    signal.signal(signal.SIGTERM, watch.stop)
    watch.child = os.fork()
    if watch.child == 0:
        return in_child(command)
    if watch.number:  # the signal came before there was a child
        watch.stop(watch.number)
    _, raw = os.waitpid(watch.child, 0)
    status = os.waitstatus_to_exitcode(raw)
    if watch.number:
        return watch.end(status)
    if status < 0:
        name = signal.Signals(-status).name
        print(f"lab: the command was killed by {name}{why(-status)}", file=sys.stderr)
        return 128 - status
    return status


def in_child(command: Callable[[], int]) -> int:
    """Run the command. Any exception after Ctrl-C is taken as its effect (an interrupted import, say)."""
    stopped: list[int] = []

    def stop(number: int, frame) -> None:
        if not stopped:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # C code prints errors when an import is interrupted
        stopped.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):  # Linux: this process dies with its parent
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        return command()
    except BaseException:
        if not stopped:
            raise
        return STOPPED


class Watch:
    """The parent's state: its child, the first stop signal, and the processes that ran when it came."""

    def __init__(self):
        self.child, self.number, self.started = 0, 0, []

    def stop(self, number: int, frame=None) -> None:
        """Handle SIGINT and SIGTERM: pass SIGTERM on as SIGINT; kill the child GRACE seconds after the first.

        Ctrl-C needs no passing on: the terminal sends it to the child as well.
        """
        first, self.number = not self.started, self.number or number
        if not self.child:
            return
        if number == signal.SIGTERM:
            kill([self.child], signal.SIGINT)
        if first:
            self.started = [self.child, *descendants(self.child)]
            timer = threading.Timer(GRACE, lambda: kill([self.child, *descendants(self.child)]))
            timer.daemon = True
            timer.start()

    def end(self, status: int) -> int:
        """Print that the command was stopped, kill what it left running, and return the exit status."""
        kill(self.started[1:])
        if sys.stderr.isatty():
            print(SHOW_CURSOR, end="", file=sys.stderr)
        print("lab: stopped", file=sys.stderr)
        return 128 + self.number


def why(number: int) -> str:
    """What the signal that ended a command means to the user, as the end of a sentence."""
    if number == signal.SIGKILL:
        return ": out of memory? Take a smaller --size"
    if number == signal.SIGSEGV:
        return ", a bug in the lab or in TVM: please report it with the kernels file"
    return ""


def kill(processes: list[int], number: int = signal.SIGKILL) -> None:
    """Send a signal to those processes that still run."""
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def descendants(pid: int) -> list[int]:
    """The process ids of children, their children and so on; [] where /proc does not list them."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *descendants(child)]
    return found
