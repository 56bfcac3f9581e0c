"""Speed points: measured on a GPU alone, here on a stand-in for it, which has a clock of its own."""

import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kernel_variants import solved

import utils
from instructor.autograder import speed
from instructor.autograder.grading import Options, grade
from instructor.autograder.submission import Submission
from tirxlab.devices import DeviceError, get_device
from tirxlab.rubric import load_rubric

SIZE, REFERENCE_MS = next(iter(load_rubric().reference_ms[1].items()))


def graded_on(monkeypatch, measure, run=None):
    """Step 1 of the reference, where the device "cuda" is the simulator with `measure` for a clock."""
    sim = get_device("sim")
    chip = types.SimpleNamespace(NAME="chip", run=run or sim.run, measure=measure)
    monkeypatch.setattr(utils, "get_device", lambda name=None: chip if name == "cuda" else sim)
    made = grade(Submission("gemm_kernels.py", solved(1)), Options(steps=(1,), device="cuda"))
    return made, made.steps[0]


@pytest.mark.parametrize("factor, points", [(0.9, 5.0), (1.29, 5.0), (1.31, 4.25)])
def test_a_step_earns_its_speed_within_the_bound(monkeypatch, factor, points):
    made, step = graded_on(monkeypatch, lambda *a, **k: factor * REFERENCE_MS)
    assert (step.earned, step.possible, made.device) == (points, 5.0, "cuda")
    assert step.speed == ("passed" if points == 5 else "too slow") and len(step.hints) == (points < 5)
    assert "TFLOP/s" in step.hints[0] if step.hints else True


def test_a_kernel_that_is_wrong_or_hangs_on_the_gpu_is_not_fast(monkeypatch):
    def hangs(*_, **__):
        raise DeviceError("the kernel did not finish within 20 s and its process was killed")

    _, step = graded_on(monkeypatch, hangs)
    assert step.speed == "too slow" and "did not finish" in step.hints[0]

    def zeros(artifact, arrays, **more):
        done = get_device("sim").run(artifact, arrays, **more)
        done.outputs["D"][:] = 0
        return done

    _, step = graded_on(monkeypatch, lambda *a, **k: 0.0001, zeros)
    assert step.speed == "too slow" and step.hints[0].startswith("wrong on the GPU")


def test_a_gpu_that_cannot_be_used_takes_no_points(monkeypatch):
    def lost(*_, **__):
        raise DeviceError("no GPU")

    with pytest.raises(DeviceError, match="no GPU"):
        graded_on(monkeypatch, lambda *a, **k: 1.0, lost)


def test_what_is_wrong_is_not_timed(monkeypatch):
    text = solved(1).replace("accum=False", "accum=True")
    monkeypatch.setattr(speed, "load_rubric", lambda: pytest.fail("timed"))
    step = grade(Submission("x.py", text), Options(steps=(1,), device="cuda")).steps[0]
    assert step.speed == "not reached" and step.earned == 0 and step.possible == 5
