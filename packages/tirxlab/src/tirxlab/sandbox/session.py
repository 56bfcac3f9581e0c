"""The parent's side of one confined child: a request gets bytes back in time, or a line that says why not."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
from pathlib import Path

from tirxlab.sandbox.clock import Clock, Starved
from tirxlab.sandbox.levels import launcher, likely, strongest
from tirxlab.sandbox.limits import (
    DISK_EXCEEDED,
    MEMORY_EXCEEDED,
    MIB,
    NOT_STARTED,
    PROCESSES_EXCEEDED,
    Limits,
    printable,
)

_HEAD = 64 << 10  # most bytes of an answer's first line
_START = 300.0  # seconds, counted as for a request, within which the child must be ready


class WorkerError(RuntimeError):
    """The child gave no valid answer and is gone; the message is one line for the student."""


class OverLimit(WorkerError):
    """The child exceeded a limit; near several limits, chance decides which one."""


class TooSlow(OverLimit):
    """The child gave no answer in time."""


class NotDone(WorkerError):
    """Not the fault of the code inside: the child cannot be started here, or the machine is too busy."""


class Session:
    """One child, started with the first request (or ahead of it) and again after it has died.

    Without a level it is confined as well as the machine allows. Linux nearly always allows the best level,
    so that is tried first, instead of asking strongest(), which starts processes to find out.
    `mode`: as in child.py, or Python's arguments for another program that speaks its protocol.
    """

    def __init__(self, mode: str | list[str], limits: Limits | None = None, level: str | None = None):
        self.arguments = (
            ["LAB/packages/tirxlab/src/tirxlab/sandbox/child.py", mode] if isinstance(mode, str) else mode
        )
        self.mode, self.limits, self.level = mode, limits or Limits(), level
        self.process: subprocess.Popen | None = None
        self.printed = bytearray()  # what the child has printed since `ask` began
        self.spent = 0.0  # seconds that all requests took, as clock.py counts them

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self.process is not None

    @property
    def child(self) -> subprocess.Popen:
        """The child's process; WorkerError if there is none."""
        if self.process is None:
            raise WorkerError("is not running")
        return self.process

    def start(self) -> None:
        level = self.level or likely()
        self.guessed = level if self.level is None else None
        self.folder = tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True)
        command = launcher(
            self.arguments,
            level,
            self.limits,
            Path(self.folder.name),
        )
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env={}, start_new_session=True, bufsize=0
        )
        made = self.process.stdin, self.process.stdout, self.process.stderr
        self.streams = [stream for stream in made if stream is not None]
        for stream in self.streams:
            os.set_blocking(stream.fileno(), False)
        self.buffer, self.awake = bytearray(), not isinstance(self.mode, str)

    def ask(self, request: dict, data: bytes = b"") -> tuple[dict, bytes]:
        """(answer, its bytes). WorkerError if the child breaks a limit or the protocol; it is ended then."""
        if not self.running:
            self.start()
        head = json.dumps({**request, **({"bytes": len(data)} if data else {})}).encode() + b"\n"
        try:
            self._wake()
            self.printed.clear()
            answer = self._counted(memoryview(head + data))
        except BaseException as error:
            self.close()
            if isinstance(error, WorkerError) and self.guessed and strongest() != self.guessed:
                self.level = strongest()
                return self.ask(request, data)
            raise
        self.guessed = None
        return answer

    def _wake(self) -> None:
        """Waits until the child has imported what it needs, which does not count as its time."""
        if self.awake:
            return
        try:
            self._exchange(memoryview(b'{"ready": true}\n'), Clock(self.child.pid, _START))
        except WorkerError as error:
            raise NotDone(f"could not be looked at: its process {error}") from None
        self.awake = True

    def stop(self) -> None:
        """Make the child end soon, and with it an `ask` in another thread."""
        if self.process is not None:
            self.process.terminate()  # the guard kills what is below it

    def close(self) -> None:
        """End the child and everything that it has started."""
        process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for stream in self.streams:
            stream.close()
        try:
            self.folder.cleanup()
        except RecursionError:  # folders in folders
            subprocess.run(["rm", "-rf", "--", self.folder.name])

    # ---- one exchange ----

    def _counted(self, outgoing: memoryview) -> tuple[dict, bytes]:
        clock = Clock(self.child.pid, self.limits.seconds)
        try:
            return self._exchange(outgoing, clock)
        finally:
            self.spent += clock.spent()

    def _exchange(self, outgoing: memoryview, clock: Clock) -> tuple[dict, bytes]:
        requests, replies, printed = self.streams
        with selectors.DefaultSelector() as selector:
            selector.register(requests, selectors.EVENT_WRITE)
            selector.register(replies, selectors.EVENT_READ)
            selector.register(printed, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select(clock.left()):
                    if key.fileobj is requests:
                        outgoing = self._write(outgoing, selector)
                    elif key.fileobj is printed:
                        self._read_printed(selector)
                    elif not self._read_reply():
                        raise self._obituary()
                answer = self._parse()
                if answer is not None:
                    return answer
                if not clock.left():
                    self._check(clock)

    def _check(self, clock: Clock) -> None:
        try:
            over = clock.over()
        except Starved as error:
            raise NotDone(str(error)) from None
        if over:
            raise TooSlow(f"took longer than {clock.seconds:g} s and was stopped")

    def _write(self, outgoing: memoryview, selector) -> memoryview:
        requests = self.streams[0]
        try:
            outgoing = outgoing[os.write(requests.fileno(), outgoing[:65536]) :]
        except OSError:  # it no longer reads; its end shows when its answer is read
            outgoing = outgoing[:0]
        if not outgoing:
            selector.unregister(requests)
        return outgoing

    def _read_reply(self) -> bool:
        data = os.read(self.streams[1].fileno(), 1 << 20)
        self.buffer += data
        return bool(data)

    def _read_printed(self, selector) -> None:
        printed = self.streams[2]
        data = os.read(printed.fileno(), 1 << 16)
        if not data:
            selector.unregister(printed)
        self.printed += data
        if len(self.printed) > self.limits.printed:
            raise OverLimit(f"printed more than {self.limits.printed // MIB} MiB and was stopped")

    def _parse(self) -> tuple[dict, bytes] | None:
        """The answer at the start of the buffer, None if incomplete; WorkerError if it is not a valid one."""
        line, newline, _ = bytes(self.buffer[:_HEAD]).partition(b"\n")
        if not newline:
            if len(self.buffer) > _HEAD:
                raise WorkerError("gave an invalid answer")
            return None
        head = self._head(line)
        end = len(line) + 1 + head["bytes"]
        if len(self.buffer) < end:
            return None
        data = bytes(self.buffer[len(line) + 1 : end])
        del self.buffer[:end]
        return head, data

    def _head(self, line: bytes) -> dict:
        try:
            head = json.loads(line)
            good = type(head["ok"]) is bool and type(head["bytes"]) is int and head["bytes"] >= 0
        except (ValueError, TypeError, KeyError, RecursionError):
            good = False
        if not good:
            raise WorkerError("gave an invalid answer")
        if head["bytes"] > self.limits.reply:
            raise OverLimit(f"gave an answer of more than {self.limits.reply // MIB} MiB")
        return head

    def _obituary(self) -> WorkerError:
        """Why the child is gone, as far as its exit status shows."""
        try:
            status = self.child.wait(3)
        except subprocess.TimeoutExpired:
            return WorkerError("closed its output without an answer")
        reasons = {
            MEMORY_EXCEEDED: f"used more than {self.limits.memory // MIB} MiB of memory and was stopped",
            DISK_EXCEEDED: f"wrote more than {self.limits.disk // MIB} MiB or too many files and was stopped",
            PROCESSES_EXCEEDED: f"started more than {self.limits.processes} processes and was stopped",
        }
        if status in reasons:
            return OverLimit(reasons[status])
        if status == NOT_STARTED:
            said = printable(self.printed.decode(errors="replace"), 1)
            return WorkerError(f"could not be started: {said}")
        if status > 128:
            return WorkerError(f"crashed ({_signal_name(status - 128)})")
        return WorkerError(f"ended the process before there was a kernel (exit status {status})")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
