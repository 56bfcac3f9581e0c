"""The speed of a class: built here, timed on a stand-in for the GPU with a clock of its own."""

import json
import types
import zipfile
from pathlib import Path

import pytest
from kernel_variants import solved

import utils
from instructor.autograder import batch
from instructor.autograder.class_speed import Measured, is_waiting, measure_class, parcel
from instructor.autograder.grading import Options
from instructor.autograder.speed import time_steps
from instructor.commands import grade_all
from instructor.commands.grade_all import measured_by
from instructor.formats import from_plain, plain
from tirxlab.cli.common import UserError
from tirxlab.devices import DeviceError, get_device
from tirxlab.rubric import load_rubric
from tirxlab.steps import read_skeleton

(REFERENCE_MS,) = load_rubric().reference_ms[1].values()
TEXTS = {
    "right": solved(1),
    "same": solved(1) + "\n",
    "wrong": solved(1).replace("accum=False", "accum=True"),
    "empty": read_skeleton(),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Four submissions and a file that is not one, graded without a GPU: (class, rows)."""
    folder = tmp_path_factory.mktemp("speed") / "class"
    for name, text in TEXTS.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "gemm_kernels.py").write_text(text)
    (folder / "none").mkdir()
    made = batch.Class(folder, folder.with_name("grades"), Options(steps=(1,), keep=True))
    return made, batch.grade_class(made, lambda work: batch.local(work, made.options, 2, 300))


def clocked(ms: float):
    """`measure` on a stand-in: it launches, and its clock shows the given time."""

    def prove(artifact, arrays, pools, **_):
        get_device("sim").run(artifact, arrays)
        return ms, []

    return prove


@pytest.fixture
def chip(monkeypatch):
    """The device "cuda": the simulator, whose clock shows the published time of step 1."""
    sim = get_device("sim")

    stand_in = types.SimpleNamespace(NAME="chip", run=sim.run, prove=clocked(REFERENCE_MS))
    monkeypatch.setattr(utils, "get_device", lambda name=None: stand_in if name == "cuda" else sim)
    return stand_in


def on_the_chip(parcels):
    for one in parcels:
        yield one, time_steps(one.launches, "cuda")


def earned(rows) -> dict[str, tuple[float, float]]:
    return {row["name"]: (row["earned"], row["possible"]) for row in rows}


def test_a_grade_is_the_same_after_it_was_written_and_read(graded):
    _, rows = graded
    for row in rows:
        again = plain(from_plain(row))
        assert json.loads(json.dumps(again)) == {name: row[name] for name in again}


@pytest.mark.timeout(300)
def test_speed_is_entered_once_and_what_failed_is_tried_again(graded, chip):
    made, rows = graded
    assert earned(rows)["right"] == (4.25, 4.25)

    def cloud_that_loses_one(parcels):
        for one, found in on_the_chip(parcels):
            yield one, TimeoutError("gone") if one.key == "same" else found

    rows, failed, _ = measure_class(made, rows, cloud_that_loses_one)
    assert list(failed) == ["same"] and earned(rows)["same"] == (4.25, 4.25)
    assert earned(rows) | {"same": ()} == {
        "right": (5.0, 5.0),
        "same": (),
        "wrong": (0.0, 5.0),
        "empty": (0.0, 5.0),
        "none": (0.0, 4.25),  # it was not graded
    }
    rows = batch.grade_class(made, lambda work: pytest.fail(f"graded twice: {sorted(work)}"))
    asked = []
    rows, failed, _ = measure_class(made, rows, on_the_chip, asked.append)
    assert not failed and earned(rows)["same"] == (5.0, 5.0) and set(asked) == {*TEXTS, "none"}
    assert [row["name"] for row in rows if is_waiting(row)] == []
    assert "5" in (made.out / "right" / "feedback.txt").read_text()
    with zipfile.ZipFile(made.out / "right" / "bundle.zip") as archive:
        sizes = {name.partition("-")[2] for name in archive.namelist() if name.startswith("artifacts/")}
    assert "128x128x64.lab" in sizes
    assert not json.loads((made.out / "right" / "grade.json").read_text())["regraded"]


def test_what_is_slow_on_the_gpu_loses_its_speed_points_alone(graded, chip):
    made, rows = graded
    row = next(row for row in rows if row["name"] == "right")
    chip.prove = clocked(2 * REFERENCE_MS)
    (row,), _, _ = measure_class(made, [row | {"steps": not_timed(row)}], on_the_chip)
    assert row["earned"] == 4.25 and row["possible"] == 5.0 and "TFLOP/s" in row["steps"][0]["hints"][0]


def not_timed(row: dict) -> list[dict]:
    return [step | {"speed": "not measured"} for step in row["steps"]]


def test_only_artifacts_travel(graded):
    made, rows = graded
    one = parcel(made, "right", next(row for row in rows if row["name"] == "right"))
    (timed,) = one.launches[1]
    assert timed.size == (128, 128, 64) and timed.artifact[:2] == b"PK"
    assert parcel(made, "wrong", next(row for row in rows if row["name"] == "wrong")).launches == {}


@pytest.mark.filterwarnings("ignore:.*executing locally")
def test_results_of_the_cloud_find_their_parcels(graded, chip):
    cloud = pytest.importorskip("instructor.cloud", reason="Modal is not installed")
    made, rows = graded
    parcels = [parcel(made, row["name"], row) for row in rows if row["name"] in ("empty", "right", "same")]

    def call(work):
        for number, steps in enumerate(work):
            yield ValueError("lost") if number else cloud.time_submission.local(steps, device="cuda")

    found = {one.key: result for one, result in cloud.mapped(parcels, call)}
    assert found["right"].hints == {1: ""} and isinstance(found["same"], ValueError)
    assert found["empty"] == Measured({}, 0.0)
    assert all((Path(cloud.run_modal.ROOT) / name).is_file() for name in cloud.SHIPPED)


@pytest.mark.parametrize("where, at_once, message", [("cloud", 1, "write here"), ("modal", 0, "1 or more")])
def test_a_place_that_is_none_is_refused(where, at_once, message):
    with pytest.raises(UserError, match=message):
        measured_by(where, at_once)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(grade_all, "blackwell", raising(DeviceError("no GPU: use --device sim")))
    with pytest.raises(UserError, match="^--speed here: no GPU; --speed modal rents a B200$"):
        measured_by("here", 4)


def raising(error: Exception):
    def fail(*_):
        raise error

    return fail


def test_modal_without_an_account_is_refused_before_anything_is_graded(monkeypatch):
    cloud = pytest.importorskip("instructor.cloud", reason="Modal is not installed")
    monkeypatch.setattr(cloud, "checked_account", lambda: "Token missing")
    with pytest.raises(UserError, match="--speed modal: Token missing"):
        measured_by("modal", 4)
