"""Waiting for other processes without a clock: until one has ended, or has reached a certain line."""

import os
import select
from pathlib import Path

PATIENCE = 60  # seconds, used up only if something is broken


def ends(pid: int) -> bool:
    """Whether a process has ended or does so soon; nobody needs to have waited for it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE)[0])
    finally:
        os.close(descriptor)


def that_know(word: str) -> list[int]:
    """Processes with a word in their command line or environment, except this one."""
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
    """A named pipe that other processes write to when they pass it, and keep open as long as they live."""

    def __init__(self, path: Path):
        os.mkfifo(path)
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def passed(self) -> bool:
        """Waits until somebody has written to it; whether that happened."""
        return self._ready() and os.read(self._end, 1 << 16) != b""

    def deserted(self) -> bool:
        """Waits until all who had it open are gone; whether that happened."""
        while self._ready():
            if not os.read(self._end, 1 << 16):
                return True
        return False

    def _ready(self) -> bool:
        return bool(select.select([self._end], [], [], PATIENCE)[0])
