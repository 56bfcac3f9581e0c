"""Processes that run tasks under a time and memory limit; the lab survives their death.

    with Pool(2) as pool:
        pool.submit("a", function, 1, 2)
        for key, result in pool.results(): ...        # Failed, if the process died, or took too long

Leaving the `with` block kills at once what is running; so does Ctrl-C.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from tirxlab import damaged
from tirxlab.sandbox import tree
from tirxlab.sandbox.clock import Clock, Starved

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]

SPAWN = get_context("spawn")
# In each process, its share of the cores.
_SHARED = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PTXSIM_JOBS"}


@dataclass(frozen=True)
class Failed:
    """A task without a result; the message is one line for a person."""

    message: str
    late: bool = False  # it took too long
    lost: bool = False  # the process died, or the machine was too busy: another try may succeed
    memory: bool = False  # it needed more memory than it may use


@dataclass
class _Worker:
    process: BaseProcess
    pid: int
    pipe: Connection
    task: tuple = ()  # (key, function, args); empty when idle
    clock: Clock = field(init=False)  # of its task


@dataclass
class Pool:
    """At most `count` processes, started when there is work for them."""

    count: int
    seconds: float = 600.0  # limit of a task, as clock.py counts
    memory: int = 16 << 30  # limit of a process's address space, in bytes
    workers: list[_Worker] = field(default_factory=list)

    def __post_init__(self):
        self.waiting: collections.deque[tuple] = collections.deque()
        self.unfinished, self.open = 0, False
        self.lock, self.ended = threading.Lock(), False
        self.spent = 0.0  # seconds that all tasks took, as clock.py counts them
        self.largest = 0  # most bytes of memory that a process held
        self.context: Any = SPAWN
        self.woken, self.waker = SPAWN.Pipe(duplex=False)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_) -> None:
        """Kill the processes. May be called from another thread; then `results` ends with an OSError."""
        with self.lock:
            self.ended = True
        self.waker.send_bytes(b".")
        for worker in list(self.workers):
            self._end(worker)

    def _end(self, worker: _Worker) -> None:
        """Kill a worker, only once: the thread that ends the pool and the one in `results` may both try."""
        with self.lock:
            if worker in self.workers:
                self.workers.remove(worker)
                self.largest = max(self.largest, tree.most_resident(worker.pid))
                _kill(worker)

    def start(self, prepare: Callable, *args) -> None:
        """Start the processes before there is work for them; each calls `prepare` first. If that returns a
        function, each calls it once there is no work for it.
        """
        while len(self.workers) < self.count:
            self._start((prepare, args))

    def preload(self, module: str) -> None:
        """Import what the tasks need, ahead of them: on Linux once, in a server of which the processes will
        be forks, so that one more costs little; elsewhere in each process, which is started now. A process
        has one server, with the module that was asked for first.
        """
        if _served(module, self._environment()):
            self.context = get_context("forkserver")
        else:
            self.start(importlib.import_module, module)

    def submit(self, key: Hashable, function: Callable, *args) -> None:
        """Queue a task; function, args and result must pickle. May be called from another thread."""
        self.unfinished += 1
        self.waiting.append((key, function, args))
        self.waker.send_bytes(b".")

    def expect(self, more: bool) -> None:
        """Say whether another thread will submit more; while it may, `results` does not end."""
        self.open = more
        self.waker.send_bytes(b".")

    def results(self) -> Iterator[tuple[Any, Any]]:
        """Yields (key, what the function returned, or Failed) as tasks finish, until no task is left."""
        while self.unfinished or self.open:
            if self.ended:
                raise _ended()
            self._dispatch()
            busy = {worker.pipe: worker for worker in self.workers if worker.task}
            ready = wait([*busy, self.woken], min((one.clock.left() for one in busy.values()), default=60))
            if self.woken in ready:
                self.woken.recv_bytes()
            for pipe, worker in busy.items():
                late = None if pipe in ready else _late(worker)
                if pipe in ready or late:
                    self.unfinished -= 1
                    yield self._finish(worker, late)

    def _dispatch(self) -> None:
        while self.waiting:
            idle = next((worker for worker in self.workers if not worker.task), None)
            if idle is None and len(self.workers) >= self.count:
                return
            if idle is None:
                idle = self._start()
            idle.task = self.waiting.popleft()
            idle.clock = Clock(idle.pid, self.seconds)
            with contextlib.suppress(OSError):  # it died while idle; `results` will notice
                idle.pipe.send(idle.task[1:])

    def _start(self, prepare: tuple | None = None) -> _Worker:
        with self.lock:
            if self.ended:
                raise _ended()
            try:
                worker = self._started(prepare)
            except (EOFError, OSError):
                if self.context is SPAWN:
                    raise
                self.context = SPAWN  # the server could not import, or has died
                worker = self._started(prepare)
            self.workers.append(worker)
        return worker

    def _started(self, prepare: tuple | None) -> _Worker:
        ours, theirs = SPAWN.Pipe()
        arguments = theirs, self.memory, self._environment(), prepare
        process = self.context.Process(target=_work, args=arguments, daemon=False)
        with _no_interrupt():
            process.start()
        theirs.close()
        assert process.pid is not None  # it is started
        return _Worker(process, process.pid, ours)

    def _environment(self) -> dict[str, str]:
        """As this process has it by now; a server keeps the one it was started in."""
        share = str(max(1, (os.cpu_count() or 1) // self.count))
        return dict.fromkeys(_SHARED, share) | dict(os.environ)

    def _finish(self, worker: _Worker, failed: Failed | None) -> tuple[Any, Any]:
        key, worker.task = worker.task[0], ()
        self.spent += worker.clock.spent()
        result: Any = failed
        if failed is None:
            try:
                result = worker.pipe.recv()
            except (EOFError, OSError):
                worker.process.join(5)
                status = _status(worker.process.exitcode)
                failed = result = Failed(f"the process that ran it died ({status})", lost=True)
        if failed is not None:
            self._end(worker)
        return key, result


def _ended() -> OSError:
    return BrokenPipeError("the pool has ended")


def _late(worker: _Worker) -> Failed | None:
    """Why a task has to be stopped; None if it may run on."""
    if worker.clock.left():
        return None
    try:
        over = worker.clock.over()
    except Starved as error:
        return Failed(str(error), lost=True)
    return Failed(f"took longer than {worker.clock.seconds:g} s and was stopped", late=True) if over else None


@contextlib.contextmanager
def _no_interrupt():
    """A process started in this block ignores Ctrl-C from its first instruction on, not only in `_work`."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else the first start would do this, and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _status(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit status {code}"


def _kill(worker: _Worker) -> None:
    """Kill the process and what it has forked."""
    with contextlib.suppress(OSError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.process.kill()
    worker.process.join(5)
    worker.pipe.close()


def prepared(prepare: Callable, args: tuple = ()) -> Callable | None:
    """Imports what a process will need; returns what `prepare` leaves for when there is no work."""
    more = None
    gc.disable()  # objects made by imports live to the end
    with contextlib.suppress(Exception):  # an error will come up again where the import is needed
        more = prepare(*args)
    gc.freeze()
    gc.enable()
    return more


def _served(module: str, environment: dict[str, str]) -> bool:
    """Whether a server of forks runs. It imports the module first, with a share of the cores."""
    if sys.platform != "linux" or sys.version_info < (3, 10, 9) or sys.version_info[:3] == (3, 11, 0):
        return False  # before, anybody on the machine could use the server (CVE-2022-42919)
    get_context("forkserver").set_forkserver_preload(["__main__", module])
    added = environment.keys() - os.environ.keys()
    os.environ.update(environment)  # the server's libraries ask only once
    try:
        with _no_interrupt():
            forkserver.ensure_running()
        return True
    except OSError:  # no room for its socket in the temporary folder, whose name may be too long for one
        return False
    finally:
        for name in added:
            del os.environ[name]


def _work(pipe: Connection, memory: int, environment: dict[str, str], prepare: tuple | None) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    os.setpgid(0, 0)
    if sys.platform == "linux":  # die with the parent
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if resource:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.environ.clear()
    os.environ.update(environment)
    idle = prepared(*prepare) if prepare is not None else None
    with contextlib.suppress(EOFError, OSError):
        while True:
            if idle is not None and not pipe.poll():
                idle = prepared(idle)
            function, args = pipe.recv()
            try:
                result = function(*args)
            except MemoryError as error:
                result = Failed(f"needs more memory than it may use: {error}".rstrip(": "), memory=True)
            except ImportError as error:
                result = Failed(f"cannot be made: {damaged.told(error)}", lost=True)
            pipe.send(result)
