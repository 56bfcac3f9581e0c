"""How well a child can be confined on this machine, and the SPEC for confine.py. Levels, the best first:

"bubblewrap"  as "namespaces", but made by bwrap(1), where it is installed and works.
"namespaces"  its own file system (system libraries, Python, its packages and the public part of the lab, all
              read-only, and an empty /tmp), process table and network: on Linux that allows unshare(2), as
              root or with user namespaces.
"user"        another user, for root without namespaces; with Landlock (Linux 5.13) it can read only the files
              above, without it all that everyone may read. Its own folder is deleted afterwards.
"landlock"    the same user behind Landlock: only those files, and no access to other processes.
"limits"      the same user in its own process group: time, memory, processes and files are limited, but it
              can read and write what you can. Good enough for your own code, not for a class.

At every level on Linux a filter of system calls refuses sockets, namespaces, tracing, and memory that belongs
to no process.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tirxlab.checkout import ROOT
from tirxlab.sandbox.limits import Limits

LEVELS = ("bubblewrap", "namespaces", "user", "landlock", "limits")
SHUT_IN = LEVELS[:-1]  # good enough for others' code
PUBLIC = (
    "packages/tirxlab/src",
    "packages/ptxsim/src",
    "utils.py",
)  # what a student's file may import: no tests, nothing of the instructor's
CONFINE = Path(__file__).with_name("confine.py")
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/alternatives")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_INSIDE = "/lab"
_FIRST_UID = 200_000  # a child gets one of the next 50 000 user ids, which no machine uses


def environment(folder: str) -> dict[str, str]:
    """The whole environment of a child."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "TVM_NUM_THREADS"), "1")
    plain = {"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8"}
    return plain | threads | {"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "2"}


@functools.cache
def strongest() -> str:
    """The best level that works here, found by starting a process with each."""
    return next((level for level in SHUT_IN if works(level)), "limits")


@functools.cache
def works(level: str) -> bool:
    """Whether a process can be started with a level here."""
    if level == "bubblewrap" and not shutil.which("bwrap"):
        return False
    with tempfile.TemporaryDirectory(prefix="lab-") as folder:
        command = launcher(["-c", "print('inside')"], level, Limits(), Path(folder))
        done = subprocess.run(command, capture_output=True, text=True, env={}, stdin=subprocess.DEVNULL)
    return done.stdout.strip() == "inside" and done.returncode == 0


def likely() -> str:
    """The level to try first: on Linux the best, which is likely to work; the child's first answer tells."""
    if sys.platform != "linux" or strongest.cache_info().currsize:
        return strongest()
    return "bubblewrap" if shutil.which("bwrap") else "namespaces"


def launcher(arguments: list[str], level: str, limits: Limits, folder: Path) -> list[str]:
    """The command that runs Python with these arguments confined; `folder` is an empty folder for its use.

    LAB/ at the start of an argument becomes the folder that holds the public part of the lab.
    """
    inside = level in ("bubblewrap", "namespaces")
    lab = _INSIDE if inside else str(folder / "lab")
    home = "/tmp" if inside else str(folder / "home")
    if not inside:
        _copy_public(folder)
    arguments = [lab + a[3:] if a.startswith("LAB/") else a for a in arguments]
    spec = asdict(limits) | {
        "level": level,
        "uid": _other_user(level),
        "root": str(folder),
        "binds": _binds() if inside else [],
        "hide": [str(ROOT)] if inside and _visible(ROOT) else [],
        "read": [*_SYSTEM, *_python(), lab],
        "write": [home, *_DEVICES],
        "argv": [sys.executable, "-I", "-B", "-Wignore", *arguments],
        "env": environment(home),
        "cwd": home,
    }
    if spec["uid"] is not None and not inside:
        os.chown(home, spec["uid"], spec["uid"])
    if level == "bubblewrap":
        spec = _in_bubblewrap(spec)
    return [sys.executable, "-I", "-S", str(CONFINE), json.dumps(spec)]


def _other_user(level: str) -> int | None:
    """A user id for the child that no other process has, if this process may choose one; else None."""
    if level in ("bubblewrap", "landlock", "limits") or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    return _FIRST_UID + int.from_bytes(os.urandom(3), "big") % 50_000


def _in_bubblewrap(spec: dict) -> dict:
    """The SPEC that starts bwrap, inside which confine.py runs again and installs the system call filter."""
    size = ["--size", str(spec["disk"])]
    view = [word for outside, inside in spec["binds"] for word in ("--ro-bind-try", outside, inside)]
    for path in ("/lib", "/lib64", "/bin", "/sbin"):
        if os.path.islink(path):
            view += ["--symlink", os.readlink(path), path]
    made = [*size, "--tmpfs", "/tmp", "--proc", "/proc", "--dir", "/dev"]  # before binds that lie below /tmp
    made += [word for path in _DEVICES for word in ("--dev-bind", path, path)]
    hidden = [word for path in spec["hide"] for word in ("--tmpfs", path, "--remount-ro", path)]
    uid = str(_FIRST_UID)
    inner = {"inside": True, "binds": [], "read": [], "write": []}
    script = f"{_INSIDE}/{CONFINE.relative_to(ROOT)}"
    start = [sys.executable, "-I", "-S", script, json.dumps(spec | inner)]
    flags = f"--unshare-all --unshare-user --die-with-parent --cap-drop ALL --uid {uid} --gid {uid}".split()
    last = ["--remount-ro", "/", "--chdir", "/tmp", "--"]
    argv = [shutil.which("bwrap") or "bwrap", *flags, *made, *view, *hidden, *last, *start]
    return spec | {"argv": argv, "cwd": "/"}


def _binds() -> list[tuple[str, str]]:
    """(path outside, path inside) of what is visible: system, this Python and its packages, public lab."""
    system = [p for p in _SYSTEM if not os.path.islink(p)]
    seen = dict.fromkeys(p for p in [*system, *_python()] if not p.startswith("/usr/"))
    outside_usr = [(p, p) for p in seen]
    return outside_usr + [(str(ROOT / name), f"{_INSIDE}/{name}") for name in PUBLIC]


def _python() -> list[str]:
    """Folders of this Python and its packages."""
    prefixes = sys.base_prefix, sys.prefix
    return [path for prefix in prefixes for path in (prefix, os.path.realpath(prefix))]


def _visible(path: Path) -> bool:
    """Whether the binds would show the lab's own folder."""
    return any(path.is_relative_to(outside) for outside, _ in _binds() if Path(outside) != path)


def _copy_public(folder: Path) -> None:
    """Makes a copy of the public part only for this child, which may change it without affecting others."""
    ignore = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in PUBLIC:
        source, target = ROOT / name, folder / "lab" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignore)
        else:
            shutil.copyfile(source, target)
    (folder / "home").mkdir(exist_ok=True)
    for path in (folder, *folder.rglob("*")):  # even if the lab is private, its public part may be read
        path.chmod(0o755 if path.is_dir() else 0o644)
