"""Speed points: measured only on a GPU; here on a stand-in for it with a clock of its own."""

import copy
import dataclasses
import types

import numpy as np
import pytest
from kernel_variants import solved
from test_judging import TILE, edited

import utils
from instructor.autograder import speed, timeable
from instructor.autograder.grading import Options, grade
from instructor.autograder.plan import load_hidden, speed_seed
from instructor.autograder.ptx_rules import outlives_a_flush
from instructor.autograder.submission import Submission
from tirxlab.devices import DeviceError, cuda, driver, get_device
from tirxlab.rubric import load_rubric
from tirxlab.sandbox.builder import Builder, Built

SIZE, REFERENCE_MS = next(iter(load_rubric().reference_ms[1].items()))


SUBMISSION, ON_CHIP = Submission("gemm_kernels.py", solved(1)), Options(steps=(1,), device="cuda")


@pytest.fixture(scope="module")
def judged():
    """(step 1 of the reference, graded but not timed; its launches that would be timed)"""
    (step,) = grade(SUBMISSION, Options(steps=(1,))).steps
    with Builder(SUBMISSION.text) as builder:
        work = timeable.timeable(1, builder.build, speed_seed(load_hidden(), SUBMISSION.digest, 1))
    return step, work


def with_clock(monkeypatch, clock, run=None, last=None, other=None):
    """The device "cuda" becomes the simulator with `clock` as its clock.

    `last`: what the last timed launch does; `other`: what the one before it does.
    """
    sim = get_device("sim")

    def prove(artifact, arrays, pools, **more):
        at = dict(zip(pools, (3, 64), strict=True))
        windows = [
            pool[at[name] :][: array.size].reshape(array.shape)
            for (name, pool), array in zip(pools.items(), arrays[:2], strict=True)
        ]
        D = np.zeros_like(arrays[2])
        (other or sim.run)(artifact, [*windows, D])
        (last or sim.run)(artifact, arrays)
        return clock(artifact, arrays, **more), [cuda.Seen(at, "D", [0, 5], D[[0, 5]])]

    chip = types.SimpleNamespace(NAME="chip", run=run or sim.run, prove=prove)
    monkeypatch.setattr(utils, "get_device", lambda name=None: chip if name == "cuda" else sim)


def timed(monkeypatch, judged, clock, **how):
    """Step 1 of the reference, timed with `clock`."""
    with_clock(monkeypatch, clock, **how)
    step = copy.deepcopy(judged[0])
    step.timed(*speed.time_step(1, judged[1], "cuda"))
    step.settle()
    return step


def test_a_grade_on_a_gpu_has_speed_points(monkeypatch):
    with_clock(monkeypatch, lambda *a, **k: 1.29 * REFERENCE_MS)
    made = grade(SUBMISSION, ON_CHIP)
    (step,) = made.steps
    assert (step.speed, step.earned, step.possible, made.device) == ("passed", 5.0, 5.0, "cuda")


@pytest.mark.parametrize("factor, points", [(0.9, 5.0), (1.29, 5.0), (1.31, 4.25)])
def test_a_step_earns_its_speed_within_the_bound(monkeypatch, judged, factor, points):
    step = timed(monkeypatch, judged, lambda *a, **k: factor * REFERENCE_MS)
    assert (step.earned, step.possible) == (points, 5.0)
    assert step.speed == ("passed" if points == 5 else "too slow") and len(step.hints) == (points < 5)
    assert "TFLOP/s" in step.hints[0] if step.hints else True


def test_a_kernel_that_is_wrong_or_hangs_on_the_gpu_is_not_fast(monkeypatch, judged):
    def hangs(*_, **__):
        raise DeviceError("the kernel did not finish within 20 s and its process was killed")

    step = timed(monkeypatch, judged, hangs)
    assert step.speed == "too slow" and "did not finish" in step.hints[0]

    def zeros(artifact, arrays, **more):
        done = get_device("sim").run(artifact, arrays, **more)
        done.outputs["D"][:] = 0
        return done

    step = timed(monkeypatch, judged, lambda *a, **k: 0.0001, run=zeros)
    assert step.speed == "too slow" and step.hints[0].startswith("wrong on the GPU")


def test_what_was_timed_has_to_have_made_d(monkeypatch, judged):
    """A kernel that is right once and lazy when it is timed, although D was overwritten before."""
    clock = lambda *a, **k: 0.9 * REFERENCE_MS  # noqa: E731
    step = timed(monkeypatch, judged, clock, last=lambda artifact, arrays: None)
    assert step.speed == "too slow" and "wrong after it was timed" in step.hints[0]


def test_a_launch_that_hands_out_the_d_of_another_is_wrong(monkeypatch, judged):
    """Wherever that D was kept: no two launches have the same inputs. The last launch is honest."""
    sim, kept = get_device("sim"), []

    def first(artifact, arrays, **more):
        done = sim.run(artifact, arrays, **more)
        kept.append(done.outputs["D"].copy())
        return done

    def replays(artifact, arrays):
        arrays[2][:] = kept[0]

    clock = lambda *a, **k: 0.9 * REFERENCE_MS  # noqa: E731
    assert timed(monkeypatch, judged, clock).speed == "passed"
    step = timed(monkeypatch, judged, clock, run=first, other=replays)
    assert kept and step.speed == "too slow" and "wrong after it was timed" in step.hints[0] and step.ms == {}


def test_a_launch_that_does_nothing_now_and_then_is_wrong(monkeypatch, judged):
    """A kernel may decide that by how often it had to poll; its last launch is right."""
    step = timed(monkeypatch, judged, lambda *a, **k: 0.9 * REFERENCE_MS, other=lambda *a: None)
    assert step.speed == "too slow" and "wrong after it was timed" in step.hints[0]


def test_what_is_faster_than_a_chip_can_be_is_no_time(monkeypatch, judged):
    step = timed(monkeypatch, judged, lambda *a, **k: 1e-6)
    assert step.speed == "too slow" and "somebody has to look" in step.hints[0] and step.speed_points == 0
    assert step.ms == {}  # the board is sorted by it


def test_what_would_be_timed_is_looked_at_on_the_simulator_first(monkeypatch):
    """Right at the graded sizes, but another kernel at the timed one."""
    monkeypatch.setattr(timeable, "look", lambda *launch: "it is not right")
    with_clock(monkeypatch, lambda *a, **k: 0.9 * REFERENCE_MS)
    (step,) = grade(SUBMISSION, ON_CHIP).steps
    assert (
        step.speed == "too slow" and "it is not right: try ./lab check 1" in step.hints[0] and step.ms == {}
    )


def test_what_is_built_for_the_timing_says_nothing_of_its_own():
    """It is built after the hidden sizes, and could learn from the clock how long those took."""
    late = Built(1, (128, 128, 64), kind="raised", message="RuntimeError: it is 12:34:56")
    with pytest.raises(speed.NotBuilt) as caught:
        speed.launches(1, lambda *_: late, lambda _: 3, lambda *_: "")
    assert "12:34" not in str(caught.value) and "./lab check 1 --size 128x128x64" in str(caught.value)


def test_a_look_is_a_run_with_the_data_of_the_timing():
    one = speed.Timed(TILE, 3, b"")
    assert timeable.look(2, one, edited("")) == ""
    assert timeable.look(2, one, edited("if (clock64() < 0) return;")) == "it is not right"
    assert timeable.look(2, one, edited("return;")) == "it is not right"


# Static variables of 1,024 B, which move the tiles behind them by as much: they stay where TMA wants them.
KEPT = 'if (was == 7) printf("%d", was); was = 7;'
IN_TENSOR_MEMORY = """if (threadIdx.x < 32) {
  __shared__ unsigned at[256]; int was;
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"
    :: "r"((unsigned)__cvta_generic_to_shared(at)) : "memory");
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1]; tcgen05.wait::ld.sync.aligned;"
    : "=r"(was) : "r"(at[0]) : "memory");
  if (was == 7) printf("%d", was);
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(at[0])); }"""


@pytest.mark.parametrize(
    "text, words",
    [
        (f"volatile __shared__ int kept[256]; int was = kept[0]; {KEPT} kept[0] = was;", "uninitialized"),
        (f"volatile int kept[64]; int was = kept[threadIdx.x % 64]; {KEPT} kept[threadIdx.x % 64] = was;",
         "uninitialized"),
        (IN_TENSOR_MEMORY, "not right"),
        (f'int was; asm volatile("{{ .reg .b32 old; mov.b32 %0, old; }}" : "=r"(was)); {KEPT}', "register"),
        (f'int was; asm volatile("{{ .reg .b32 old; .reg .pred p; setp.ne.u32 p, %1, %1; @p mov.b32 old, 0; '
         f'mov.b32 %0, old; }}" : "=r"(was) : "r"(threadIdx.x)); {KEPT}', "register"),
    ],
    ids=["shared", "local", "tensor", "register", "guarded-register"],
)  # fmt: skip
def test_what_could_have_kept_d_for_the_next_launch_gets_no_time(text, words):
    """It would be right whatever it finds there; on the simulator it finds nothing."""
    found = timeable.look(2, speed.Timed(TILE, 3, b""), edited(text))
    assert words in found


HINTED = "ld.global.L2::cache_hint.b32 %r1, [%rd1], %rd2;"


@pytest.mark.parametrize(
    "text, kept",
    [
        ("ld.global.L2::evict_last.b32 %r1, [%rd1];", True),
        ("createpolicy.fractional.L2::evict_last.b64 %rd1;", True),
        ("applypriority.global.L2::evict_normal [%rd1], 128;", True),
        ("ld.global.L2::evict_first.b32 %r1, [%rd1];", False),
        ("// .L2::evict_last", False),
        ("createpolicy.cvt.L2.b64 %rd2, %rd1;", True),
        (f"mov.b64 %rd2, {0x14F0 << 48}; {HINTED}", True),  # the number that cache_hint="evict_last" gives
        (f"mov.b64 %rd2, {0x12F0 << 48}; {HINTED}", False),
        (f".reg .b64 %rd2; mov.u64 %rd2, 0x1000000000000000; {HINTED}", False),
        (f"mov.b64 %rd2, {0x12F0 << 48}; add.s64 %rd2, %rd2, %rd1; {HINTED}", True),
        (f"createpolicy.fractional.L2::evict_first.b64 %rd2, 1.0; {HINTED}", False),
    ],
)
def test_what_outlives_the_flush_is_not_timed(text, kept):
    assert bool(outlives_a_flush(text)) == kept


def test_outputs_are_overwritten_and_l2_is_flushed_before_each_timed_launch():
    calls = []

    class Fake:
        def __getattr__(self, name):
            def function(*args):
                calls.append((name, *args[:3]))
                return types.SimpleNamespace(value=0), 1024

            return function

    kernel = object.__new__(driver.Kernel)
    kernel.driver, kernel._l2_bytes = Fake(), lambda: 64
    kernel.launch = lambda pointers, stream: calls.append(("launch",))
    around = {name: lambda left, name=name: calls.append((name, left)) for name in ("before", "after")}
    kernel.timed({}, warmup=2, repeat=3, poison=[(4096, 256)], **around)
    names = [call[0] for call in calls]
    assert names.count("launch") == 5
    for left, at in zip((2, 1, 0), [n for n, name in enumerate(names) if name == "launch"][2:], strict=True):
        first, *before = calls[at - 4 : at]
        assert first == ("before", left)
        assert calls[at + 1][0] == "cuEventRecord" and names.index("after", at) > names.index(
            "cuEventElapsedTime", at
        )
        assert [call[0] for call in before] == ["cuMemsetD8Async", "cuMemsetD8Async", "cuEventRecord"]
        assert before[0][1:3] == (4096, driver.POISON) and before[1][3] == 128


def test_inputs_are_made_from_the_secret_and_times_are_kept(monkeypatch, judged):
    step = timed(monkeypatch, judged, lambda *a, **k: 0.9 * REFERENCE_MS)
    assert list(step.ms.values()) == [0.9 * REFERENCE_MS]
    one, other = (dataclasses.replace(load_hidden(), salt=salt) for salt in ("a", "b"))
    assert speed_seed(one, "d" * 64, 1)(SIZE) != speed_seed(other, "d" * 64, 1)(SIZE)


@pytest.mark.parametrize("size", [(1024,) * 3, (4096,) * 3, (16384, 128, 128)])
def test_no_published_time_is_below_the_floor(size):
    assert speed.floor(size) > 0 and speed.floor(size, 10.0) == 5.0
    for times in load_rubric().reference_ms.values():
        assert all(ms > speed.floor(published) for published, ms in times.items())


def test_a_gpu_that_cannot_be_used_takes_no_points(monkeypatch, judged):
    def lost(*_, **__):
        raise DeviceError("no GPU")

    with pytest.raises(DeviceError, match="no GPU"):
        timed(monkeypatch, judged, lambda *a, **k: 1.0, run=lost)


def test_what_is_wrong_is_not_timed(monkeypatch):
    text = solved(1).replace("accum=False", "accum=True")
    monkeypatch.setattr(speed, "load_rubric", lambda: pytest.fail("timed"))
    step = grade(Submission("x.py", text), Options(steps=(1,), device="cuda")).steps[0]
    assert step.speed == "not reached" and step.earned == 0 and step.possible == 5
