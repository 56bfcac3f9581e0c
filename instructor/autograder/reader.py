"""Functions of ours on bytes of students, in a confined child: what is slow or large costs its own time.

    with Reader(opening) as reader:
        data = reader.call("open_tar", data)    # ReadError says what is wrong, or what became of the child

The child gets the text of one module, which imports nothing of `instructor`, and serves until it dies; a call
that takes too long halves the time of those that follow, so that many cost little more than one.
"""

from __future__ import annotations

import inspect
import subprocess
from dataclasses import replace
from types import ModuleType

from tirxlab.sandbox.limits import Limits, printable
from tirxlab.sandbox.session import Session, TooSlow, WorkerError

LIMITS = Limits(seconds=20, memory=768 << 20, processes=4, reply=64 << 20)
LEAST_SECONDS = 2


class ReadError(ValueError):
    """One line, fit to print."""


class Reader:
    """Calls functions of `module`, which take bytes and give bytes or raise ValueError."""

    def __init__(self, module: ModuleType, level: str | None = None):
        self.name, self.text = module.__name__, inspect.getsource(module).encode()
        self.session = Session("call", LIMITS, level)
        self.told: subprocess.Popen | None = None  # the process that has the module

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self.session.close()

    def call(self, function: str, data: bytes) -> bytes:
        try:
            if self.told is None or self.told is not self.session.process:
                self.session.ask({"module": self.name}, self.text)
                self.told = self.session.process
            answer, given = self.session.ask({"call": function}, data)
        except WorkerError as error:
            if isinstance(error, TooSlow):
                limits = self.session.limits
                self.session.limits = replace(limits, seconds=max(LEAST_SECONDS, limits.seconds / 2))
            raise ReadError(f"cannot be read: reading it {error}") from None
        if not answer["ok"]:
            raise ReadError(printable(str(answer.get("message", "")), 1, 200))
        return given
