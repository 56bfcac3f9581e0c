"""The processes below a process, their memory and their time. On Linux; elsewhere nothing is found.

Uses only the standard library, nothing of the lab, because the guard of a confined child runs this first.
"""

import contextlib
import os
import stat

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
HIDDEN = 1 << 60  # bytes: more than any limit
_LISTED = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # CONFIG_PROC_CHILDREN


def descendants(pid: int) -> list[int]:
    """All processes below this one. If Linux lists children, only the files of these are read."""
    found, new = [], [pid]
    while new:
        new = [child for parent in new for child in children(parent)] if _LISTED else _children_of(new)
        found += new
    return found


def children(pid: int) -> list[int]:
    """The children of all threads of a process, those inherited as a subreaper included."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _children_of(parents: list[int]) -> list[int]:
    """The children of several processes, from the whole process table."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and (row := _stat(int(name))) and int(row[1]) in parents:
            found.append(int(name))
    return found


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the third on."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []


def resident(pid: int) -> int:
    """Bytes of memory of a process, swapped-out memory and page tables included."""
    return _memory(pid, "VmRSS:", "VmSwap:", "VmPTE:")


def most_resident(pid: int) -> int:
    """Most bytes of memory that a process has held so far."""
    return _memory(pid, "VmHWM:")


def _memory(pid: int, *rows: str) -> int:
    """The sum of rows of /proc/PID/status, in bytes."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(rows))
    return 0


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, of all below it and of those that they have reaped."""
    rows = [row for one in (pid, *descendants(pid)) if (row := _stat(one))]
    return sum(int(ticks) for row in rows for ticks in row[11:15]) / _TICKS


def queued(pid: int) -> float:
    """Seconds that this process, or one below it, has waited for a processor: the longest wait of any."""
    longest = 0
    for one in (pid, *descendants(pid)):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{one}/schedstat") as file:
            longest = max(longest, int(file.read().split()[1]))
    return longest * 1e-9


def _hides(pid: int) -> bool:
    """Whether a process has made itself unreadable to its own user; then its files are root's (proc(5))."""
    with open(f"/proc/{pid}/status") as file:
        uid = next(line.split()[1] for line in file if line.startswith("Uid:"))
    return os.stat(f"/proc/{pid}/fd").st_uid != int(uid)


def unlinked(pid: int) -> int:
    """Bytes of deleted files that a process holds open; HIDDEN if it does not let us see."""
    total = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except PermissionError:
            return HIDDEN if _hides(pid) else 0
        for name in names:
            with contextlib.suppress(OSError):
                seen = os.stat(f"/proc/{pid}/fd/{name}")
                if stat.S_ISREG(seen.st_mode) and not seen.st_nlink:
                    total += 512 * seen.st_blocks
    return total
