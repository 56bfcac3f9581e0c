"""Runs our functions on students' bytes in a confined child, so that slow or large input harms only itself.

    with Reader(opening) as reader:
        data = reader.call("open_tar", data)    # ReadError says what is wrong, or how the child ended

The child gets the source of one module, which imports nothing of `instructor`, and serves until it dies. A
call that takes too long halves the time limit of later calls, so that many cost little more than one.
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
    """The message is one printable line."""


class Reader:
    """Calls functions of `module`, which take bytes and return bytes or raise ValueError."""

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
