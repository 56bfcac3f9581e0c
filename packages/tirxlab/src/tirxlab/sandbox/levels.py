"""How well a child is shut in on this machine, and the SPEC for confine.py.

"namespaces"  its own file system (system libraries, Python, its packages and the public part of the lab, all
              read-only, and an empty /tmp), process table and network: on Linux that allows unshare(2), as
              root or with user namespaces.
"user"        another user: reads what everyone may read, writes nothing of yours; root without namespaces.
"limits"      the same user in a process group of its own: time, memory, processes and files are limited, but
              it reads and writes what you can. Good enough for your own code, not for a class.
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

LEVELS = ("namespaces", "user", "limits")
PUBLIC = (
    "packages/tirxlab/src",
    "packages/ptxsim/src",
    "utils.py",
)  # what a student's file may import; no tests, no instructor
CONFINE = Path(__file__).with_name("confine.py")
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/alternatives")
_INSIDE = "/lab"
_FIRST_UID = 200_000  # users that no machine has; a child is one of the next 50 000


def environment(folder: str) -> dict[str, str]:
    """All that a child finds in its environment."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "TVM_NUM_THREADS"), "1")
    plain = {"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8"}
    return plain | threads | {"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "2"}


@functools.cache
def strongest() -> str:
    """The best level that works here, found by starting something with each."""
    for level in LEVELS[:-1]:
        with tempfile.TemporaryDirectory(prefix="lab-") as folder:
            command = launcher(["-c", "print('inside')"], level, Limits(), Path(folder))
            done = subprocess.run(command, capture_output=True, text=True, env={}, stdin=subprocess.DEVNULL)
            if done.stdout.strip() == "inside" and done.returncode == 0:
                return level
    return "limits"


def likely() -> str:
    """The level to try first: the best where Linux may allow it, which its child's first answer shows."""
    return LEVELS[0] if sys.platform == "linux" and not strongest.cache_info().currsize else strongest()


def launcher(arguments: list[str], level: str, limits: Limits, folder: Path) -> list[str]:
    """The command that runs Python with these arguments inside; `folder` is an empty folder for its use.

    LAB/ at the head of an argument becomes the folder that holds the public part of the lab.
    """
    inside = level == "namespaces"
    lab = _INSIDE if inside else str(folder / "lab")
    home = "/tmp" if inside else str(folder / "home")
    if not inside:
        _copy_public(folder)
    root = os.geteuid() == 0 if hasattr(os, "geteuid") else False
    uid = _FIRST_UID + int.from_bytes(os.urandom(3), "big") % 50_000 if root and level != "limits" else None
    if uid is not None and not inside:
        os.chown(home, uid, uid)
    spec = asdict(limits) | {
        "level": level,
        "uid": uid,
        "root": str(folder),
        "binds": _binds() if inside else [],
        "hide": [str(ROOT)] if inside and _visible(ROOT) else [],
        "argv": [
            sys.executable,
            "-I",
            "-B",
            "-Wignore",
            *(lab + a[3:] if a.startswith("LAB/") else a for a in arguments),
        ],
        "env": environment(home),
        "cwd": home,
    }
    return [sys.executable, "-I", "-S", str(CONFINE), json.dumps(spec)]


def _binds() -> list[tuple[str, str]]:
    """What of the disk is to be seen, and where: the system, this Python, its packages, the public lab."""
    system = [p for p in _SYSTEM if not os.path.islink(p)]
    python = [sys.base_prefix, os.path.realpath(sys.base_prefix), sys.prefix, os.path.realpath(sys.prefix)]
    seen = dict.fromkeys(p for p in [*system, *python] if not p.startswith("/usr/"))
    outside_usr = [(p, p) for p in seen]
    return outside_usr + [(str(ROOT / name), f"{_INSIDE}/{name}") for name in PUBLIC]


def _visible(path: Path) -> bool:
    """Whether the binds would show the lab's own folder."""
    return any(path.is_relative_to(outside) for outside, _ in _binds() if Path(outside) != path)


def _copy_public(folder: Path) -> None:
    """A copy for this child alone: it may change it, others do not see that."""
    ignore = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in PUBLIC:
        source, target = ROOT / name, folder / "lab" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignore)
        else:
            shutil.copyfile(source, target)
    (folder / "home").mkdir(exist_ok=True)
    folder.chmod(0o755)
