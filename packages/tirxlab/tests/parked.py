"""Processes that one test leaves idle serve the next: their imports take more time than most kernels.

A process of a Pool is the same as a new one for any caller that asks for as much memory and as many
processes, in the same environment and folder: its tasks never see the test's own process. A confined child
serves any caller that confines it in the same way, as it serves one save after the other; one that has left
files behind, was stopped or still owes an answer is ended as usual. Tests of pools and of children do not use
this (test_pool.py, test_worker.py).
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Hashable

from tirxlab.pool import Pool, _kill
from tirxlab.sandbox.session import Session

MOST = 4  # kept processes: each has 100 to 300 MB
CHANGES = "PYTEST_CURRENT_TEST"  # changes with every test
_CARRIED = ("process", "streams", "folder", "buffer", "awake", "guessed", "level")
_idle: list[tuple[Hashable, object, Callable]] = []  # (what it can serve, the process, what ends it)
_pool_start, _session = (
    Pool._start,
    {name: getattr(Session, name) for name in ("start", "ask", "stop", "close")},
)


def _park(key: Hashable, one: object, end: Callable) -> None:
    _idle.append((key, one, end))
    while len(_idle) > MOST:
        _, oldest, end = _idle.pop(0)
        end(oldest)


def _take(key: Hashable, lives: Callable[[object], bool]):
    for at, (known, one, end) in enumerate(_idle):
        if known == key:
            del _idle[at]
            if lives(one):
                return one
            end(one)
            return _take(key, lives)
    return None


@atexit.register
def end_all() -> None:
    while _idle:
        _, one, end = _idle.pop()
        end(one)


class _Pool:
    """Replacements of `Pool`'s methods."""

    def _start(self, prepare=None):
        known = {name: value for name, value in os.environ.items() if name != CHANGES}
        key = self.memory, self.count, prepare, frozenset(known.items()), os.getcwd()
        worker = _take(key, lambda one: one.process.is_alive())
        if worker is None:
            worker = _pool_start(self, prepare)
            worker.good_for = key
        else:
            self.workers.append(worker)
        return worker

    def __exit__(self, *_) -> None:
        for worker in self.workers:
            idle = not worker.task and worker.process.is_alive() and not worker.pipe.poll()
            key = getattr(worker, "good_for", None)
            _park(key, worker, _kill) if idle and key is not None else _kill(worker)
        self.workers.clear()


class _Session:
    """Replacements of `Session`'s methods."""

    def start(self) -> None:
        key = tuple(self.arguments), self.limits, self.level, os.environ.get("TMPDIR")
        found = _take(key, lambda one: one["process"].poll() is None)
        if found is None:
            _session["start"](self)
        else:
            self.__dict__.update(found)
        self.good_for, self.busy = key, False

    def ask(self, request, data=b""):
        self.busy = True
        answer = _session["ask"](self, request, data)
        self.busy = bool(answer[0].get("spent"))  # then its folder has changed
        return answer

    def stop(self) -> None:
        if self.process is None or self.busy:
            _session["stop"](self)

    def close(self) -> None:
        if self.process is None or self.busy or self.process.poll() is not None or self.buffer:
            _session["close"](self)
            return
        _park(self.good_for, {name: getattr(self, name) for name in _CARRIED}, _end_child)
        self.process = None


def _end_child(carried: dict) -> None:
    session = Session([])
    session.__dict__.update(carried)
    _session["close"](session)


def use(monkeypatch) -> None:
    """Keeps processes for as long as the monkeypatch lasts."""
    for theirs, ours in ((Pool, _Pool), (Session, _Session)):
        for name in vars(ours).keys() & vars(theirs).keys() - {
            "__module__",
            "__doc__",
            "__dict__",
            "__weakref__",
        }:
            monkeypatch.setattr(theirs, name, vars(ours)[name])
