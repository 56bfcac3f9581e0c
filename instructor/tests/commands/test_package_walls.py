"""A graded package run as a container's root: a kernels file reads all files that it can and finds no secret.

The container is a chroot with what Docker leaves to root: no rights to mount, so children are another user.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from instructor.autograder import warm
from instructor.commands import package
from tirxlab.checkout import ROOT

SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
INTO_ROOT = r"""
set -e
r=$1; shift
for path in /usr /lib /lib64 /bin /sbin /etc "$PYTHON" "$LAB_VENV"; do
    if [ -L "$path" ]; then ln -sfn "$(readlink "$path")" "$r$path"
    elif [ -d "$path" ]; then mkdir -p "$r$path"; mount --rbind -o ro "$path" "$r$path"; fi
done
mkdir -p "$r/tmp" "$r/dev/shm" "$r/proc"
chmod 1777 "$r/tmp" "$r/dev/shm"
for node in null zero urandom random; do touch "$r/dev/$node"; mount --bind /dev/$node "$r/dev/$node"; done
mount -t proc none "$r/proc"
exec setpriv --bounding-set -sys_admin,-sys_ptrace,-dac_read_search,-sys_module,-sys_rawio chroot "$r" "$@"
"""
# The search terms are written backwards, since the attack reads its own text too.
SEARCH = r"""
import io, os, zipfile
WANTED = [text[::-1].encode() for text in {backwards}]
found, read = [], 0
for folder, names, files in os.walk('/'):
    names[:] = [] if folder in ('/proc', '/sys', '/usr', '/dev', {venv!r}, {python!r}) else names
    for name in files:
        path = os.path.join(folder, name)
        if path == '/proc/kmsg':  # who reads it waits for the kernel's next message
            continue
        try:
            with open(path, 'rb') as file:
                data = file.read(1 << 24)
        except OSError:
            continue
        read += 1
        found += [(path, n) for n, text in enumerate(WANTED) if text in data]
        if data[:2] == b'PK' and zipfile.is_zipfile(io.BytesIO(data)):
            found += [(path, 'artifact')] * ('artifact.json' in zipfile.ZipFile(io.BytesIO(data)).namelist())
"""


def secrets() -> list[str]:
    """Texts none of which may be found."""
    solution = (ROOT / "instructor/solutions/gemm_kernels.py").read_text()
    lines = [line.strip() for line in solution.split("TODO[begin]")[4].splitlines()]
    hidden = (ROOT / "instructor/hidden.toml").read_text()
    size = re.search(r"^10 = \[\[(\d+, \d+)", hidden, re.M)[1]
    return ["change this text every term", size, max(lines, key=len)]


def in_container(folder, command: list[str], **more) -> subprocess.CompletedProcess:
    python = os.path.realpath(sys.base_prefix)
    env = {"PATH": "/usr/bin:/bin:/usr/sbin", "LAB_VENV": sys.prefix, "PYTHON": python, **more}
    shut = [
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "sh",
        "-c",
        INTO_ROOT,
        "sh",
        str(folder),
        *command,
    ]
    return subprocess.run(shut, env=env, capture_output=True, text=True, timeout=900)


def works(folder) -> bool:
    tools = shutil.which("unshare") and shutil.which("setpriv")
    return bool(os.geteuid() == 0 and tools and in_container(folder, ["/bin/true"]).returncode == 0)


def unpacked(service: str, root) -> dict:
    """The package in its place, with the simulator already compiled; returns the paths inside."""
    where = root / "autograder"
    source = where / "source" if service == "gradescope" else where
    for name in ("source", "submission", "results"):
        (where / name).mkdir(parents=True)
    if service == "gradescope":
        with zipfile.ZipFile(io.BytesIO(package.gradescope())) as archive:
            archive.extractall(source)
    else:
        with tarfile.open(fileobj=io.BytesIO(package.autolab())) as tar:
            tar.extractall(where, **SAFELY)
    warm.compiled()  # once, not in each container
    cache = os.environ.get("LAB_CACHE") or os.path.expanduser("~/.cache/tirx-lab")
    shutil.copytree(cache, where / "cache", ignore=shutil.ignore_patterns("artifacts"))
    return {"where": where, "source": source}


def without_install(lab) -> None:
    """`lab` without its check of the installed packages: a container has installed them."""
    lab.write_text(
        '#!/bin/sh\nexec "$LAB_VENV/bin/python" packages/tirxlab/src/tirxlab/cli/__main__.py "$@"\n'
    )
    lab.chmod(0o755)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("landlock", [True, False])
@pytest.mark.parametrize("service", ["gradescope", "autolab"])
def test_no_file_that_a_kernels_file_can_read_holds_a_secret(tmp_path, service, landlock):
    (tmp_path / "probe").mkdir()
    if not works(tmp_path / "probe"):
        pytest.skip("needs root, mount namespaces and setpriv to make a container's root")
    root = tmp_path / "root"
    made = unpacked(service, root)
    names = {"backwards": [text[::-1] for text in secrets()], "venv": sys.prefix, "python": sys.base_prefix}
    search = SEARCH.format(**names)
    attack = "def hgemm_v1(M, N, K):\n" + "".join(f"    {line}\n" for line in search.splitlines())
    attack += "    raise KeyError('read', read, 'found', found[:9])\n"
    options = "--steps 1 --confine user"
    if service == "gradescope":
        without_install(made["source"] / "lab")
        if not landlock:
            blind(made["source"])
        (made["where"] / "submission" / "gemm_kernels.py").write_text(attack)
        more = {"AUTOGRADER": "/autograder", "LAB_WARM_UP": options, "LAB_GRADE_OPTIONS": options}
        done = in_container(root, ["/bin/bash", "/autograder/source/setup.sh"], **more)
        assert done.returncode == 0, done.stdout + done.stderr
        done = in_container(root, ["/bin/bash", "/autograder/source/run_autograder"], **more)
        said = json.loads((made["where"] / "results" / "results.json").read_text())["output"]
    else:
        with tarfile.open(made["where"] / "autograde.tar") as tar:
            tar.extractall(made["where"] / "x", **SAFELY)
        if not landlock:
            blind(made["where"] / "x" / "autograde")
        with tarfile.open(made["where"] / "autograde.tar", "w") as tar:
            tar.add(made["where"] / "x" / "autograde", "autograde")
        shutil.rmtree(made["where"] / "x")
        with tarfile.open(made["where"] / "handin.tar", "w") as tar:
            info = tarfile.TarInfo("gemm_kernels.py")
            info.size = len(attack.encode())
            tar.addfile(info, io.BytesIO(attack.encode()))
        command = ["make", "-C", "/autograder", f"LAB_VENV={sys.prefix}", f"LAB_GRADE_OPTIONS={options}"]
        done = in_container(root, ["/usr/bin/env", *command])
        said = done.stdout
    assert "'read'" in said and "'found', []" in said, said + done.stdout + done.stderr
    naive = in_container(root, [f"{sys.prefix}/bin/python", "-c", search + "\nprint({n for _, n in found})"])
    assert {"0", "1", "2"} <= set(naive.stdout), naive.stdout + naive.stderr  # root itself finds them


def blind(source) -> None:
    """The same attack on a kernel without Landlock."""
    walls = source / "packages/tirxlab/src/tirxlab/sandbox/walls.py"
    walls.write_text(walls.read_text().replace("    return max(0, LIBC", "    return 0 * max(0, LIBC"))
