"""Waiting for other processes without a clock: until one has ended, until one has come to a certain line."""

import os
import select
from pathlib import Path

PATIENCE = 60  # seconds, only ever spent when something is broken


def ends(pid: int) -> bool:
    """Whether a process has ended or does so soon; nobody need have waited for it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE)[0])
    finally:
        os.close(descriptor)


def that_know(word: str) -> list[int]:
    """Processes with a word in their command line or environment, but this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            known = word.encode() in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if known and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


class Signpost:
    """A named pipe that other processes write to when they come by, and keep open as long as they live."""

    def __init__(self, path: Path):
        os.mkfifo(path)
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def passed(self) -> bool:
        """Somebody wrote to it; waits for that."""
        return self._ready() and os.read(self._end, 1 << 16) != b""

    def deserted(self) -> bool:
        """All who had it open are gone; waits for that."""
        while self._ready():
            if not os.read(self._end, 1 << 16):
                return True
        return False

    def _ready(self) -> bool:
        return bool(select.select([self._end], [], [], PATIENCE)[0])
