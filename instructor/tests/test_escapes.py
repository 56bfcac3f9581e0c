"""Every escape succeeds without confinement, in the same test that shows that no level lets it succeed."""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from instructor.exploits.escapes import ALLOWED, ESCAPES, STAY, USE_UP
from tirxlab.sandbox import Limits
from tirxlab.sandbox.levels import ROOT, SHUT_IN, launcher, works

LIMITS = Limits(memory=ALLOWED, disk=ALLOWED, file_size=64 << 20, processes=32)
VICTIM = "import signal\nsignal.signal(10, lambda *_: None)\nwhile 1: signal.pause()"
USABLE = [level for level in SHUT_IN if works(level)]
QUICK = {"read-another-submission", "connect-to-this-machine", "kill-another-process", "files-without-end"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="levels of confinement are Linux's")


@pytest.fixture
def place():
    """A machine that grades: its files, listening sockets and processes."""
    folder = Path(tempfile.mkdtemp(prefix="class-", dir="/tmp"))
    (folder / "class").mkdir(mode=0o777)
    (folder / "class").chmod(0o777)
    folder.chmod(0o777)
    other, cache, shm = folder / "class" / "other.py", folder / "cache.lab", Path(f"/dev/shm/{folder.name}")
    for path in (other, cache, shm):
        path.write_text("SECRET")
        path.chmod(0o666)
    libc, key = ctypes.CDLL(None), 0x51000000 + os.getpid() * 16
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(key, 64, 0o1666)
    ctypes.memmove(libc.shmat(segment, None, 0), b"SECRET", 6)
    listeners = [socket.create_server(("127.0.0.1", 0))]
    for name in ("\0" + folder.name, str(folder / "socket")):
        listeners.append(socket.socket(socket.AF_UNIX))
        listeners[-1].bind(name)
        listeners[-1].listen()
    with open(other) as file:
        victim = subprocess.Popen(
            [sys.executable, "-S", "-c", VICTIM, "SECRET"],
            env={"TOKEN": "SECRET"}, stdin=file, cwd=folder / "class",
        )  # fmt: skip
    threading.Thread(target=victim.wait, daemon=True).start()
    time.sleep(0.1)
    yield {
        "class": str(folder / "class"), "other": str(other), "cache": str(cache), "shm": str(shm),
        "left": str(folder / "left"), "left-shm": f"{shm}.left", "victim": victim.pid, "key": key,
        "port": listeners[0].getsockname()[1], "abstract": folder.name, "socket": str(folder / "socket"),
    }  # fmt: skip
    victim.kill()
    for one in listeners:
        one.close()
    for number in (segment, libc.shmget(key + 1, 0, 0)):
        libc.shmctl(number, 0, None)
    libc.msgctl(libc.msgget(key + 2, 0), 0, None)
    shutil.rmtree(folder, ignore_errors=True)
    for path in Path("/dev/shm").glob(folder.name + "*"):
        path.unlink()


def run(escape, place: dict, level: str | None) -> str:
    """What the escape prints when it runs in a folder of its own, which is deleted afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="lab-"))
    if level is None:
        shutil.copy(ROOT / "utils.py", folder)
    inside = level in ("bubblewrap", "namespaces")
    place = place | {"lab": "/lab" if inside else str(folder / "lab") if level else str(folder)}
    code = f"import json\nplace = json.loads({json.dumps(json.dumps(place))})\n{escape.body}"
    command = launcher(["-c", code], level, LIMITS, folder) if level else [sys.executable, "-c", code]
    more = {"cwd": folder, "text": True, "env": {}, "stdin": subprocess.DEVNULL}
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, timeout=60, **more).stdout
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode()
    finally:
        subprocess.run(["rm", "-rf", "--", folder], check=False)


def worked(escape, place: dict, printed: str) -> bool:
    if escape.gain == USE_UP:
        return "KEPT" in printed
    if escape.gain == STAY and escape.name != "change-the-lab":
        time.sleep(2.5 if escape.name == "leave-a-process" else 0)
        libc = ctypes.CDLL(None)
        left = [os.path.exists(place["left"]), os.path.exists(place["left-shm"])]
        left += [libc.shmget(place["key"] + 1, 0, 0) >= 0, libc.msgget(place["key"] + 2, 0) >= 0]
        return any(left)
    return "GOT" in printed


def usually(escape):
    return () if escape.name in QUICK else pytest.mark.slow


@pytest.mark.parametrize("escape", [pytest.param(e, id=e.name, marks=usually(e)) for e in ESCAPES])
@pytest.mark.timeout(300)
def test_an_escape_gets_nothing_at_any_level(escape, place):
    for level in USABLE:
        printed = run(escape, place, level)
        assert not worked(escape, place, printed), f"{level}: {printed}"
    assert os.path.exists(place["other"]) and os.path.exists(f"/proc/{place['victim']}")
    if not escape.root or os.geteuid() == 0:
        assert worked(escape, place, run(escape, place, None)), (
            "it does not even work where nothing confines it"
        )


def test_every_escape_has_a_name_of_its_own():
    assert len({escape.name for escape in ESCAPES}) == len(ESCAPES) >= 50
