"""The autograder packages, run as the services run them: no HOME, nothing of the lab writable, no network."""

import inspect
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest
from stand_in_venv import stand_in_venv

from instructor.autograder import warm
from instructor.autograder.grading import Options
from instructor.commands import grade, package
from tirxlab.cli.common import REFERENCE, ROOT
from tirxlab.cli.handin import write_tar

SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.10.12 and 3.11.4 on


def closed(command: list[str], folder, writable: list, **more) -> subprocess.CompletedProcess:
    """Runs a command without HOME and network, with everything but a few folders read-only (root, Linux)."""
    binds = " && ".join(f"mount --bind {path} {path}" for path in writable)
    script = f'mount --bind {folder} {folder} && {binds} && mount -o remount,bind,ro {folder} && exec "$@"'
    env = {"PATH": "/usr/bin:/bin", **more}
    shut = ["unshare", "--mount", "--net", "sh", "-c", script, "sh", *command]
    return subprocess.run(shut, cwd=folder, env=env, capture_output=True, text=True, timeout=500)


def can_be_closed(tmp_path) -> bool:
    """Whether this machine allows a test to do that."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return closed(["true"], tmp_path, [tmp_path]).returncode == 0


def test_packages_hold_the_grader_and_no_exploits(tmp_path):
    with zipfile.ZipFile(io.BytesIO(package.gradescope())) as archive:
        names = set(archive.namelist())
        assert archive.getinfo("run_autograder").external_attr >> 16 == 0o755
    assert {
        "setup.sh",
        "run_autograder",
        "lab",
        "instructor/hidden.toml",
        "instructor/commands/grade.py",
    } <= names
    assert not [
        name for name in names if "exploits" in name or "__pycache__" in name or name.startswith("research/")
    ]
    with tarfile.open(fileobj=io.BytesIO(package.autolab())) as tar:
        assert tar.getnames() == ["Makefile", "autograde.tar"]


def test_a_package_holds_no_sizes_of_earlier_terms(tmp_path, monkeypatch):
    (tmp_path / "instructor").mkdir()
    for name in ("hidden.toml", "hidden.old1.toml", "hidden.old12.toml"):
        (tmp_path / "instructor" / name).touch()
    monkeypatch.setattr(package, "ROOT", tmp_path)
    assert set(package.files()) == {"instructor/hidden.toml"}


def test_another_service_is_refused(run):
    status, _, err = run("package", "canvas")
    assert status == 2 and "gradescope, autolab" in err


def cache() -> str:
    """The cache of compiled simulator code, complete: what setup.sh leaves in the image."""
    warm.compiled()
    return os.environ.get("LAB_CACHE") or os.path.expanduser("~/.cache/tirx-lab")


@pytest.mark.timeout(600)
def test_the_gradescope_package_grades_a_hand_in(tmp_path):
    if not can_be_closed(tmp_path):
        pytest.skip("needs root and mount namespaces to make a closed container")
    folder = tmp_path / "autograder"
    for name in ("source", "submission", "results", "scratch"):
        (folder / name).mkdir(parents=True)
    shutil.copytree(cache(), folder / "cache", ignore=shutil.ignore_patterns("artifacts"))
    with zipfile.ZipFile(io.BytesIO(package.gradescope())) as archive:
        archive.extractall(folder / "source")
    shutil.move(folder / "source" / "run_autograder", folder / "run_autograder")
    write_tar(folder / "submission" / "handin.tar", REFERENCE.read_text(encoding="utf-8"), "ab1")
    done = closed(
        ["bash", str(folder / "run_autograder")],
        folder,
        [folder / "results"],
        AUTOGRADER=str(folder),
        LAB_VENV=str(stand_in_venv(tmp_path / "venv")),
        LAB_GRADE_OPTIONS="--steps 1,2",
    )
    results = json.loads((folder / "results" / "results.json").read_text())
    assert results["score"] == 8.5, done.stdout + done.stderr
    assert [test["status"] for test in results["tests"]] == ["passed"] * 4
    assert {"name", "score", "max_score", "status", "output", "visibility"} <= set(results["tests"][0])
    assert results["leaderboard"][0] == {"name": "points", "value": 8.5}


@pytest.mark.parametrize("even, slept", [(None, []), ("0", []), ("1000000", ["1000000", "999999", "999998"])])
def test_grading_takes_even_time_where_that_is_asked_for(tmp_path, even, slept):
    """`sleep` and the lab are stand-ins here, which record their arguments."""
    for name in ("source", "results", "venv/bin", "bin"):
        (tmp_path / name).mkdir(parents=True)
    for tool, text in (("venv/bin/python", "exit 1"), ("bin/sleep", f'echo "$1" >{tmp_path}/slept')):
        (tmp_path / tool).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / tool).chmod(0o755)
    given = {"LAB_EVEN_SECONDS": even} if even else {}
    env = {
        "AUTOGRADER": str(tmp_path),
        "LAB_VENV": f"{tmp_path}/venv",
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
    }
    subprocess.run(["bash", str(package.SERVICES / "gradescope_run.sh")], env=env | given, check=True)
    asked = (tmp_path / "slept").read_text().split() if slept else []
    assert (not slept and not (tmp_path / "slept").exists()) or asked[0] in slept
    assert not (tmp_path / "results" / "results.json").exists()  # the lab failed: a zero would look final


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("make") is None, reason="Autolab calls make")
def test_the_autolab_package_ends_with_the_scores(tmp_path):
    with tarfile.open(fileobj=io.BytesIO(package.autolab())) as tar:
        tar.extractall(tmp_path, **SAFELY)
    shutil.copytree(cache(), tmp_path / "cache", ignore=shutil.ignore_patterns("artifacts"))
    write_tar(tmp_path / "handin.tar", REFERENCE.read_text(encoding="utf-8"))
    command = ["make", f"LAB_VENV={stand_in_venv(tmp_path / 'venv')}", "LAB_GRADE_OPTIONS=--steps 1"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=500
    )
    last = json.loads(done.stdout.strip().splitlines()[-1])
    assert last["scores"] == {"step1": 4.25}, done.stdout + done.stderr
    assert ROOT != tmp_path


@pytest.mark.parametrize("form", ["gradescope", "autolab"])
def test_a_hand_in_without_a_kernels_file_gets_its_reason_and_no_points(run, tmp_path, form):
    (tmp_path / "notes.txt").write_text("x")
    status, out, err = run("grade", str(tmp_path), "--format", form, "--output", str(tmp_path / "out"))
    shown = (tmp_path / "out").read_text()
    assert (
        status == 1 and "holds neither gemm_kernels.py nor handin.tar" in shown and str(tmp_path) not in shown
    )
    assert '"score": 0' in shown or '"step1": 0' in shown
    assert run("grade", str(tmp_path))[0] == 2


def test_one_submission_has_the_limits_of_a_class():
    assert inspect.signature(grade.run).parameters["limit"].default == Options.step_seconds
