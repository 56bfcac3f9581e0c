"""The guard of one confined program: enforces its limits and leaves no process behind.

It sleeps, and wakes when the program or the lab ends (pidfd), when the lab wants an end (SIGTERM), or when an
orphan is to be reaped (SIGCHLD); and to check memory and disk, no sooner than they could be full, which is
seldom while there is room. An idle program costs one system call a second. Uses only the standard library.
"""

import contextlib
import errno
import importlib
import os
import select
import signal
import subprocess
import time

tree = importlib.import_module("tree")  # beside this file


MEMORY_EXCEEDED, DISK_EXCEEDED, PROCESSES_EXCEEDED = (
    90,
    92,
    93,
)  # exit statuses of the guard; else the program's own, or 128 + signal
_FASTEST = 4 << 30  # bytes a second: no program fills memory or a disk faster
_LEAST, _MOST = 0.03, 1.0  # seconds between two checks
FILES = 5000  # most files that a program may leave on a disk that is not its own


class Alarm:
    """Turns signals into something that can be polled."""

    def __init__(self):
        self.read, self.write = os.pipe()
        os.set_blocking(self.write, False)
        os.set_blocking(self.read, False)
        self.asked_to_end = False
        signal.set_wakeup_fd(self.write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_) -> None:
        self.asked_to_end = True

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.read, 4096):
                pass

    def close(self) -> None:
        """Undo it in a forked child, which does not need it."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)


class Guard:
    """Guards `program`, which this process has forked on behalf of the process `lab`."""

    def __init__(self, program: int, spec: dict, lab: int, alarm: Alarm):
        self.program, self.lab, self.alarm = program, lab, alarm
        self.memory, self.disk, self.processes = spec["memory"], spec["disk"], spec["processes"]
        self.inside = spec["level"] == "bubblewrap"  # its disk in memory has no limit on files
        own_disk = spec["level"] in ("bubblewrap", "namespaces")
        self.uid, self.home = spec["uid"], None if own_disk else spec["cwd"]
        self.free = self._free()
        self.clock = (~program << 3) | 2  # id of its CPU-time clock, see clock_getcpuclockid(3)
        self.looked, self.alone = -1.0, False

    def wait(self) -> int:
        """The program's exit status, or the status for why it was ended, once no descendant is left."""
        try:
            return self._wait()
        finally:
            self._end_all()

    def _wait(self) -> int:
        poll = select.poll()
        poll.register(self.alarm.read, select.POLLIN)
        lab = self._watch(self.lab)
        if lab is not None:
            poll.register(lab, select.POLLIN)
        status, pause = None, 0.0
        while status is None:
            poll.poll(1000 * pause)
            self.alarm.clear()
            status = self._bury()
            if status is None and (self.alarm.asked_to_end or os.getppid() != self.lab):
                status = 128 + signal.SIGTERM
            if status is None:
                status, pause = self._look()
        return status

    @staticmethod
    def _watch(pid: int) -> int | None:
        """A pidfd to poll for the end of a process; None if there is none: that is checked once a second."""
        try:
            return os.pidfd_open(pid)
        except (AttributeError, OSError):
            return None

    def _look(self) -> tuple[int | None, float]:
        """(the status with which the program has to end, or None; seconds until the next check)."""
        with contextlib.suppress(OSError):
            now = time.clock_gettime(self.clock)
            if now == self.looked and self.alone:  # nothing has run since
                return None, _MOST
            self.looked = now
        below = tree.descendants(os.getpid())
        self.alone = below == [self.program]
        if len(below) > self.processes + 2:  # RLIMIT_NPROC does not hold for root
            return PROCESSES_EXCEEDED, 0.0
        if self.inside and _files_on(f"/proc/{(below or [self.program])[-1]}/root/tmp") > FILES:
            return DISK_EXCEEDED, 0.0
        room = self.memory - sum(map(tree.resident, below))
        if room < 0:
            return MEMORY_EXCEEDED, 0.0
        if self.home is not None:
            left = self.disk - self._filled(self.home, below)
            if left < 0:
                return DISK_EXCEEDED, 0.0
            room = min(room, left)
        return None, min(_MOST, max(_LEAST, room / _FASTEST))

    # ---- a disk that is shared with others ----

    def _free(self) -> tuple[int, int]:
        """(bytes, files) that are free on the disk of the program's folder."""
        if self.home is None:
            return 0, 0
        seen = os.statvfs(self.home)
        return seen.f_bavail * seen.f_frsize, seen.f_favail

    def _filled(self, home: str, below: list[int]) -> int:
        """Bytes that the program may have written; counted only if that much is gone from the disk."""
        free, files = self._free()
        gone = self.free[0] - free
        if gone <= self.disk and self.free[1] - files <= FILES:
            return max(0, gone)
        used, count = _content(home)
        used += sum(map(tree.unlinked, below))
        self.free = free + used, files + count  # the rest was written by others
        return self.disk + 1 if count > FILES else used

    # ---- the end ----

    def _bury(self) -> int | None:
        """Reaps dead children; the program's status if it is one of them."""
        found = None
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self.program:
                    code = os.waitstatus_to_exitcode(status)
                    found = code if code >= 0 else 128 - code
        return found

    def _end_all(self) -> None:
        for _ in range(100):
            below = tree.descendants(os.getpid())
            if not below:
                break
            for pid in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            select.select([self.alarm.read], [], [], 0.02)
            self.alarm.clear()
            self._bury()
        if self.uid is not None and self.home is not None:
            for folder in ("/tmp", "/var/tmp", "/dev/shm"):
                _sweep(folder, self.uid)


def _files_on(path: str) -> int:
    """How many files the disk of this path has; 0 if that cannot be determined."""
    try:
        seen = os.statvfs(path)
        return seen.f_files - seen.f_ffree
    except OSError:
        return 0


def _sweep(folder: str, uid: int) -> None:
    """Removes what a user has left in a world-writable folder."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == uid:
                    subprocess.call(["rm", "-rf", "--", entry.path])  # however deep


def _content(folder: str) -> tuple[int, int]:
    """(bytes, files) below a folder; a folder that is too deep to be searched counts as too many files."""
    used, count, todo = 0, 0, [folder]
    while todo and count <= FILES:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError as error:
            count += FILES + 1 if error.errno == errno.ENAMETOOLONG else 1
            continue
        count += len(entries)
        todo += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        for entry in entries:
            with contextlib.suppress(OSError):
                used += 512 * entry.stat(follow_symlinks=False).st_blocks
    return used, count
