"""The `lab` script: which Python it accepts, what it says when it cannot continue, and when it installs
again.

pip is kept off the network here; every first run does the full installation.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in_venv import stand_in_venv

from tirxlab.cli.common import REFERENCE, ROOT
from tirxlab.cli.requirements import PACKAGES, editable, requirements

CLI = "packages/tirxlab/src/tirxlab/cli"
FILES = (
    "lab",
    "packages/ptxsim/pyproject.toml",
    "packages/tirxlab/pyproject.toml",
    f"{CLI}/requirements.py",
)


@pytest.fixture
def copy(tmp_path):
    """A folder with only what the script needs; its name contains a space."""
    folder = tmp_path / "my lab"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def run_lab(folder: Path, *arguments: str, **environment: str):
    env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "LAB_PYTHON": sys.executable}
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "LAB_VENV"):
        env.pop(name, None)
    command = ["sh", str(folder / "lab"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env | environment, timeout=120)


def fake_python(folder: Path, body: str) -> str:
    path = folder / "fake-python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_an_old_python_is_named(copy, tmp_path):
    python = fake_python(tmp_path, '[ "$1" = -V ] && echo Python 3.9.2 && exit 0; exit 1')
    done = run_lab(copy, "doctor", LAB_PYTHON=python)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "needs Python 3.10 to 3.13, found: Python 3.9.2" in done.stderr


def test_no_python_is_said(copy):
    done = run_lab(copy, "doctor", LAB_PYTHON="/nowhere/python3")
    assert done.returncode == 2 and "found: no working /nowhere/python3" in done.stderr


def test_a_missing_venv_module_is_named_with_its_remedy(copy, tmp_path):
    body = f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"'
    done = run_lab(copy, "doctor", LAB_PYTHON=fake_python(tmp_path, body))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "has no venv module" in done.stderr and "apt-get install python3-venv" in done.stderr


def test_without_a_network_the_first_run_ends_with_one_clear_line(copy):
    done = run_lab(copy, "doctor")
    *progress, last = done.stderr.splitlines()
    assert done.returncode == 2
    assert all(line.startswith("lab: making") or line.startswith("lab: installing") for line in progress)
    assert last.startswith("lab: could not install the packages (no network?): ")
    assert "lab-install.log" in last and not (copy / ".venv" / "lab-installed").exists()


def test_an_installed_copy_goes_on_when_the_network_is_gone(copy):
    """Same requirements: nothing is installed. Changed ones: one line of warning, and the command runs."""
    venv = copy / ".venv"
    without_pip = ["--without-pip"] if sys.version_info >= (3, 11) else []  # otherwise its tomli is needed
    subprocess.run([sys.executable, "-m", "venv", *without_pip, venv], check=True)
    (copy / CLI / "__main__.py").write_text("import sys\nprint('ran', sys.argv[1:])\n")
    projects = [copy / "packages" / name / "pyproject.toml" for name in PACKAGES]
    (venv / "lab-installed").write_text("".join(project.read_text() for project in projects))
    (venv / "lab-requirements.txt").write_text("\n".join([*requirements(), *editable()]) + "\n")
    done = run_lab(copy, "check", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran ['check', 'a b']\n", "")

    project = projects[1]
    project.write_text(project.read_text() + "\n# a remark\n")
    assert run_lab(copy).stderr == ""

    project.write_text(project.read_text().replace("apache-tvm==0.26.0", "apache-tvm==0.26.1"))
    done = run_lab(copy)
    assert done.returncode == 0 and done.stdout == "ran []\n"
    assert "cannot be installed (no network?); going on with the old ones" in done.stderr


def test_an_interrupted_setup_is_done_again(copy, tmp_path):
    (copy / ".venv").mkdir()
    (copy / ".venv" / "pyvenv.cfg").write_text("")
    body = f'[ "$2" = venv ] && echo made >"$3" && exit 1; exec {sys.executable} "$@"'
    done = run_lab(copy, "doctor", LAB_PYTHON=fake_python(tmp_path, body))
    assert "lab: making" in done.stderr and "lab: could not make" in done.stderr
    assert (copy / ".venv").read_text() == "made\n"


def test_the_exit_status_is_that_of_the_command(tmp_path):
    environment = os.environ | {"LAB_VENV": str(stand_in_venv(tmp_path / "venv"))}
    for arguments, status in ((["check", "99"], 2), (["doctor", "--help"], 0)):
        command = [str(ROOT / "lab"), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == status


def test_requirements_are_pinned_and_extras_are_extra():
    core = requirements()
    assert "apache-tvm==0.26.0" in core and all(any(sign in line for sign in "=<") for line in core)
    assert not any(line.startswith(("torch", "modal", "jax")) for line in core)
    assert any(line.startswith("torch") for line in requirements(("cuda",)))


NO_TOOLKIT = """
import sys
from pathlib import Path
from tirxlab.toolchain.build import build
from tirxlab.builders import builder
artifact = build(builder(Path(sys.argv[1]), 1)(128, 128, 64), use_cache=False)
from tirxlab.devices import sim
import numpy as np
A, B = np.ones((128, 64), "f2"), np.ones((128, 64), "f2")
D = np.zeros((128, 128), "f2")
sim.run(artifact, [A, B, D])
assert (D == 64).all()
maps = Path("/proc/self/maps").read_text().splitlines()
words = ("cuda", "nvrtc", "nvvm")
print("\\n".join({line.split()[-1] for line in maps if any(word in line.lower() for word in words)}))
"""


def test_build_and_run_use_nothing_of_an_installed_cuda_toolkit():
    """It works without PATH and CUDA variables, and all CUDA libraries it maps are in the environment."""
    env = {"HOME": os.environ.get("HOME", "/"), "PYTHONPATH": os.environ["PYTHONPATH"], "PATH": ""}
    command = [sys.executable, "-c", NO_TOOLKIT, str(REFERENCE)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=280)
    assert done.returncode == 0, done.stderr
    environment = Path(sys.prefix).resolve()
    assert done.stdout.strip() and all(Path(p).is_relative_to(environment) for p in done.stdout.split())


def test_a_foreign_environment_is_never_removed(copy, tmp_path):
    """LAB_VENV names a folder that ./lab did not make, and whose Python does not work: it is not changed."""
    foreign = tmp_path / "work"
    (foreign / "bin").mkdir(parents=True)
    (foreign / "pyvenv.cfg").write_text("home = /nowhere\n")
    (foreign / "notes.txt").write_text("mine")
    done = run_lab(copy, "doctor", LAB_VENV=str(foreign))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "is not an environment that ./lab made" in done.stderr
    assert (foreign / "notes.txt").read_text() == "mine" and (foreign / "pyvenv.cfg").exists()


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """Makes an environment that sees all of this one's packages except one; returns its Python."""
    folder = tmp_path_factory.mktemp("damaged")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    theirs = next(Path(path) for path in sys.path if Path(path).name == "site-packages")

    def make(missing: str) -> Path:
        for path in packages.iterdir():
            path.unlink() if path.is_symlink() else shutil.rmtree(path)
        for path in theirs.iterdir():
            if path.name not in (missing, "__pycache__"):
                (packages / path.name).symlink_to(path)
        return folder / "bin" / "python"

    return make


@pytest.mark.parametrize("missing", ["numpy", "tvm", "typer"])
def test_a_damaged_environment_is_named_by_every_command(damaged, missing):
    python = damaged(missing)
    command = [str(python), str(ROOT / CLI / "__main__.py"), "check", "1", "--kernels", str(REFERENCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    said = done.stdout + done.stderr
    assert "is damaged: " in said and done.returncode, said
    assert "Traceback" not in said and "remove that folder and run ./lab again" in said


@pytest.mark.parametrize("missing", ["tvm", "nvidia"])
def test_a_damaged_environment_costs_nobody_points(damaged, missing, tmp_path):
    """Nor does a package that the confined child cannot see. The compiler is
    looked up once a kernel exists.
    """
    lab = [str(damaged(missing)), str(ROOT / CLI / "__main__.py")]
    command = [*lab, "grade", str(REFERENCE), "--steps", "1"]
    environment = os.environ | {"LAB_CACHE": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    said = done.stdout + done.stderr
    assert done.returncode and "not graded" in said and "not final" in said, said


@pytest.mark.parametrize("missing", ["numpy", "tvm"])
def test_doctor_imports_what_it_reports(damaged, missing):
    """The metadata of a package may be present while the package is not."""
    command = [str(damaged(missing)), str(ROOT / CLI / "__main__.py"), "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1 and f"No module named '{missing}'" in done.stdout
    assert "build kernels                       no" in done.stdout
