"""Devices: which one is chosen, which arrays fit, and the errors of a GPU that
hangs, faults or is missing.
"""

import sys
import textwrap
import time
import types

import numpy as np
import pytest

import ptxsim
from tirxlab import devices
from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam, TensorMapParam
from tirxlab.devices import DeviceError, cuda, driver, sim

# Thread i copies in[i] to out[i] and adds the scalar.
ADD = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 d, .param .u32 n)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [d];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r3, [%rd4];
    add.s32 %r4, %r3, %r1;
    st.global.u32 [%rd5], %r4;
    ret;
}
"""


def adder(ptx=ADD, **changes):
    plain = {
        "arch": "sm_100a",
        "entry": "add",
        "cuda": "",
        "ptx": ptx,
        "cubin": b"",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "cluster": (1, 1, 1),
        "shared_bytes": 0,
        "params": (BufferParam("A"), BufferParam("D"), ScalarParam("n", "uint32", 7)),
        "buffers": (BufferInfo("A", (4, 8), "int32", "in"), BufferInfo("D", (32,), "int32", "out")),
    }
    return Artifact(**{**plain, **changes})


def arrays():
    return [np.arange(32, dtype=np.int32).reshape(4, 8), np.zeros(32, np.int32)]


def test_choice_of_device(monkeypatch):
    monkeypatch.setattr(devices, "default_device", lambda: "cuda")
    monkeypatch.delenv("LAB_DEVICE", raising=False)
    assert devices.get_device().NAME == "cuda"
    monkeypatch.setenv("LAB_DEVICE", "sim")
    assert devices.get_device().NAME == "sim"
    assert devices.get_device("cuda").NAME == "cuda"
    with pytest.raises(DeviceError, match="unknown device 'tpu': use one of sim, cuda"):
        devices.get_device("tpu")


@pytest.mark.parametrize(
    ("gpus", "torch", "chosen"),
    [
        ([], True, "sim"),
        ([(10, 0)], True, "cuda"),
        ([(10, 3)], True, "cuda"),
        ([(9, 0), (10, 0)], True, "cuda"),
        ([(12, 0)], True, "sim"),
        ([(9, 0)], True, "sim"),
        ([(10, 0)], False, "sim"),
    ],
)
def test_default_device(monkeypatch, gpus, torch, chosen):
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: torch or name != "torch" or None)
    monkeypatch.setattr(driver, "capabilities", lambda: gpus)
    assert devices.default_device() == chosen


def test_sim_runs_and_writes_in_place():
    A, D = arrays()
    run = sim.run(adder(), [A, D])
    assert run.outputs["D"] is D and (D == np.arange(32) + 7).all()
    assert run.verdict == "clean" and run.ran and run.not_checked == [] and run.stats["ctas"] == 1
    assert sim.measure(adder(), [A, D]) is None


def test_sim_says_when_nothing_was_checked():
    run = sim.run(adder(), arrays(), checks=False)
    assert run.verdict == "not checked" and run.not_checked


def test_sim_refuses_what_is_not_modelled():
    run = sim.run(adder(ADD.replace("add.s32 %r4", "frobnicate.s32 %r4")), arrays())
    assert run.verdict == "incomplete" and not run.ran and not run.outputs
    assert run.findings[0].kind == "unsupported" and "frobnicate" in run.findings[0].message


def test_a_tensor_map_reaches_ptxsim(monkeypatch):
    seen = {}

    class Module:
        def reset(self):
            pass

        def launch(self, entry, **options):
            seen.update(options, entry=entry)
            return ptxsim.Result("clean", [], {})

    monkeypatch.setattr(sim, "_load", lambda ptx: Module())
    param = TensorMapParam("A", 16, "int32", (8, 3), (32,), (4, 2), (1, 1), 0, 0, 2, "nan")
    A, D = arrays()
    sim.run(adder(params=(param, BufferParam("D"), ScalarParam("n", "uint32", 7))), [A, D], order=5)
    tensor_map, pointer, scalar = seen["args"]
    assert pointer is D and scalar == 7 and scalar.dtype == np.uint32 and seen["order"] == 5
    assert tensor_map.array is A and tensor_map.byte_offset == 16 and tensor_map.fill == "nan"
    assert (tensor_map.dims, tensor_map.strides, tensor_map.box) == ((8, 3), (32,), (4, 2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, d: [a], r"takes 2 arrays \(A, D\), got 1"),
        (lambda a, d: {"A": a}, "no array given for D"),
        (lambda a, d: [a.tolist(), d], "A must be a numpy array or a torch tensor, not list"),
        (lambda a, d: [a[:2], d], r"A has shape \(2, 8\), the kernel was built for \(4, 8\)"),
        (lambda a, d: [a, d.astype(np.int64)], "D is int64, the kernel was built for int32"),
        (lambda a, d: [np.asfortranarray(a), d], "A is not contiguous"),
    ],
)
def test_arrays_that_do_not_fit(change, words):
    with pytest.raises(DeviceError, match=words) as caught:
        sim.run(adder(), change(*arrays()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arch", "gpu", "image"),
    [
        ("sm_100a", (10, 0), "cubin"),
        ("sm_100a", (10, 3), None),
        ("sm_100a", (12, 0), None),
        ("sm_100a", (9, 0), None),
        ("sm_100f", (10, 3), "cubin"),
        ("sm_100f", (12, 0), None),
        ("sm_90a", (9, 0), "cubin"),
        ("sm_90a", (10, 0), None),
        ("sm_80", (8, 0), "cubin"),
        ("sm_80", (8, 9), "cubin"),
        ("sm_80", (9, 0), "ptx"),
        ("sm_80", (7, 5), None),
        ("sm_86", (8, 0), None),
    ],
)
def test_which_chip_runs_what(arch, gpu, image):
    if image:
        assert driver.image_for(arch, *gpu, "GPU") == image
        return
    with pytest.raises(DeviceError, match=f"built for {arch}; this GPU is sm_{gpu[0]}{gpu[1]}") as caught:
        driver.image_for(arch, *gpu, "GPU")
    assert "\n" not in str(caught.value)


# --- the watched child process, with stand-ins for the worker: these tests need no GPU ---

ECHO = """
import os, sys, time
from tirxlab.devices import worker
out = os.fdopen(os.dup(1), "wb")
while (message := worker.receive(sys.stdin.buffer)) is not None:
    head, blobs = message
    {before}
    worker.send(out, {{"event": "launched"}})
    {after}
    launches = 1 + head["warmup"] + head["repeat"] + {more}
    done = {{"event": "done", "seconds": 0.5, "stdout": "hi", "ms": 1.25, "launches": launches}}
    worker.send(out, done, [blobs[1]])
"""


@pytest.fixture
def stand_in(monkeypatch):
    """Puts a script in the worker's place; returns the pool."""

    def install(before="pass", after="pass", more=0):
        code = textwrap.dedent(ECHO).format(before=before, after=after, more=more)
        pool = cuda._Pool([sys.executable, "-c", code])
        monkeypatch.setattr(cuda, "_pool", lambda: pool)
        pools.append(pool)
        return pool

    pools = []
    yield install
    for pool in pools:
        pool.drop()


def test_worker_gets_the_arrays_and_gives_the_outputs(stand_in):
    stand_in()
    A, D = arrays()
    run = cuda.run(adder(), [A, D])
    assert run.outputs["D"] is D and (D == A.ravel()).all()
    assert run.verdict == "not checked" and run.not_checked and run.stdout == "hi" and run.seconds == 0.5
    assert cuda.measure(adder(), [A, D]) == 1.25


@pytest.mark.parametrize("more", [-1, 1])
def test_a_time_of_another_number_of_launches_is_none(stand_in, more):
    stand_in(more=more)
    with pytest.raises(DeviceError, match="launches instead of 41"):
        cuda.measure(adder(), arrays())


def test_every_launch_is_counted():
    kernel = object.__new__(driver.Kernel)
    kernel.artifact, kernel.function, kernel.launches = adder(params=()), None, 0
    kernel.driver = types.SimpleNamespace(cuLaunchKernelEx=lambda *_: (types.SimpleNamespace(value=0), None))
    kernel._config = lambda stream: None
    kernel.launch({})
    kernel.launch({})
    assert kernel.launches == 2


def test_a_hanging_kernel_is_killed_and_the_next_one_runs(stand_in, monkeypatch):
    pool = stand_in(after="time.sleep(3600 if not blobs[1][0] else 0)")
    monkeypatch.setenv("LAB_TIMEOUT", "0.5")
    A, D = arrays()
    start = time.monotonic()
    run = cuda.run(adder(), [A, D])
    assert time.monotonic() - start < 30
    assert run.verdict == "error" and not run.ran and run.findings[0].kind == "deadlock"
    assert "did not finish within 0.5 s and its process was killed" in run.findings[0].message
    assert pool.worker is None
    A += 1
    assert cuda.run(adder(), [A, D]).ran


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_dying_worker_is_an_error(stand_in, moment):
    stand_in(**{moment: "sys.exit(3)"})
    run = cuda.run(adder(), arrays())
    assert run.verdict == "error" and "died" in run.findings[0].message


@pytest.mark.parametrize("kind", ["launch", "device"])
def test_errors_of_the_driver(stand_in, kind):
    message = f"{{'event': 'error', 'kind': {kind!r}, 'message': 'CUDA_ERROR_X in cuY'}}"
    stand_in(before=f"worker.send(out, {message}); continue")
    if kind == "device":
        with pytest.raises(DeviceError, match="CUDA_ERROR_X"):
            cuda.run(adder(), arrays())
        return
    run = cuda.run(adder(), arrays())
    assert run.verdict == "error" and "CUDA_ERROR_X in cuY" in run.findings[0].message


def test_a_bad_limit_is_one_line(monkeypatch):
    monkeypatch.setenv("LAB_TIMEOUT", "soon")
    with pytest.raises(DeviceError, match="LAB_TIMEOUT='soon' is not a number of seconds"):
        cuda.run(adder(), arrays())


@pytest.mark.skipif(bool(driver.capabilities()), reason="this machine has a GPU")
def test_no_gpu_is_one_line():
    with pytest.raises(DeviceError, match="use --device sim") as caught:
        cuda.run(adder(), arrays())
    assert "\n" not in str(caught.value)
