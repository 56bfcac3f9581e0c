"""Sustained speed of kernels on a GPU, side by side in one process. Needs torch and a driver, not TVM.

Each kernel becomes a CUDA graph of launches over rotated inputs, random normal. A sample is a warm-up and a
window of replays timed by events; the samples of all kernels come in shuffled rounds, so that a drift of the
chip affects all of them. Also measured: the true clock of the SMs over the window (clock64 over globaltimer
of two probe kernels, one before and one after it), and the board's power by NVML.
"""

from __future__ import annotations

import ctypes
import math
import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tirxlab.artifact import Artifact
from tirxlab.devices import cuda, driver

WARMUP, WINDOW = 0.3, 0.5  # seconds
GRAPH = 0.01  # seconds of launches in one graph, about
L2_BYTES = 128 << 20  # inputs rotate over at least this much, so that no launch finds its inputs in L2
BURST_LAUNCHES, BURST_REST = 10, 2.0  # launches, seconds of rest before them

PROBE = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry probe(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %smid;
    mul.wide.u32 %rd2, %r1, 16;
    add.s64 %rd1, %rd1, %rd2;
    mov.u64 %rd3, %clock64;
    mov.u64 %rd4, %globaltimer;
    st.global.v2.b64 [%rd1], {%rd3, %rd4};
    ret;
}
\0"""


@dataclass
class Sample:
    """One window of one kernel."""

    tflops: float
    ms: float  # of one launch
    clock_mhz: float  # true, mean over the SMs
    watts: float | None  # mean over the window; None without NVML


@dataclass
class Contender:
    """A kernel at one size: `launch(i)` enqueues one launch on the i-th set of inputs."""

    name: str
    launch: Callable[[int], None]
    sets: int
    flops: float
    samples: list[Sample] = field(default_factory=list)
    burst_ms: list[float] = field(default_factory=list)
    graph: Any = None
    launches: int = 0  # in the graph
    seconds: float = 0.0  # of a replay, estimated
    results: list = field(default_factory=list)  # the outputs of each set

    def error(self, pair: tuple) -> float:
        """Relative error of the first set's result, ||D - A B^T|| / ||A B^T||, for (A, B) with B (N, K)."""
        a, b = pair
        self.results[0].fill_(float("nan"))
        self.launch(0)
        expected = a.float() @ b.float().T
        return float((self.results[0].float() - expected).norm() / expected.norm())

    def median(self, what: str = "tflops") -> float:
        """The median of a value over the samples; NaN if none has it."""
        values = [getattr(s, what) for s in self.samples if getattr(s, what) is not None]
        return statistics.median(values) if values else math.nan

    def spread(self) -> float:
        """(highest - lowest) / median of the rates."""
        rates = [s.tflops for s in self.samples]
        return (max(rates) - min(rates)) / statistics.median(rates)


# ---- inputs ----


def input_sets(size, dtype: str) -> list[tuple]:
    """[(A, B)], random normal on the GPU, enough sets to fill L2 twice, at most 8."""
    import torch

    m, n, k = size
    random_normal = torch.Generator(device="cuda").manual_seed(m * 7919 + n * 31 + k)
    bytes_ = (m * k + n * k) * 2

    def one(*shape):
        made = torch.randn(*shape, device="cuda", generator=random_normal, dtype=torch.float32)
        return made.to(getattr(torch, dtype))

    count = max(1, min(8, -(-L2_BYTES // bytes_)))
    return [(one(m, k), one(n, k)) for _ in range(count)]


def of_artifact(name: str, artifact: Artifact, sets: list[tuple]) -> Contender:
    """A kernel of ours: its outputs are allocated here, one per set."""
    import torch

    (out,) = [b for b in artifact.buffers if b.role == "out"]
    m, n = out.shape
    results = [torch.empty(m, n, device="cuda", dtype=getattr(torch, out.dtype)) for _ in sets]
    launch = cuda.launcher(artifact)
    flops = 2.0 * m * n * sets[0][0].shape[1]
    return Contender(name, lambda i: launch(*sets[i], results[i]), len(sets), flops, results=results)


def of_cublas(sets: list[tuple]) -> Contender:
    """torch.matmul in the type of the inputs."""
    import torch

    pairs = [(a, b.T) for a, b in sets]
    results = [torch.matmul(a, b) for a, b in pairs]
    m, n = results[0].shape
    flops = 2.0 * m * n * sets[0][0].shape[1]
    return Contender(
        "cublas", lambda i: torch.matmul(*pairs[i], out=results[i]), len(sets), flops, results=results
    )


# ---- instruments ----


class Clock:
    """The true SM clock between two marks on the current stream."""

    def __init__(self):
        import torch

        driver.use_device(0)
        self.module = driver.call(driver.api().cuModuleLoadData, PROBE)
        self.probe = driver.call(driver.api().cuModuleGetFunction, self.module, b"probe")
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.marks = []

    def mark(self) -> None:
        import torch

        seen = torch.zeros(self.sms, 2, dtype=torch.int64, device="cuda")
        stream = torch.cuda.current_stream().cuda_stream
        pointer = ((seen.data_ptr(),), (ctypes.c_void_p,))
        shape = (self.sms, 1, 1, 32, 1, 1, 0)
        driver.call(driver.api().cuLaunchKernel, self.probe, *shape, stream, pointer, 0)
        self.marks.append(seen)

    def mhz(self) -> float:
        """Mean over the SMs that both of the last two marks saw, in MHz. Waits for the GPU."""
        first, last = (m.cpu() for m in self.marks[-2:])
        self.marks.clear()
        both = (first[:, 1] > 0) & (last[:, 1] > 0)
        cycles, nanoseconds = (last - first)[both].double().T
        return float((cycles / nanoseconds).mean() * 1000)


class Power:
    """Board power by NVML, sampled in a thread; `stop` returns the mean since `start`."""

    nvml: Any

    def __init__(self):
        try:
            import pynvml

            pynvml.nvmlInit()
            self.nvml, self.card = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception:  # not installed, or no driver: power is then not measured
            self.nvml = None

    def _watts(self) -> float:
        field_id = getattr(self.nvml, "NVML_FI_DEV_POWER_INSTANT", 186)
        (value,) = self.nvml.nvmlDeviceGetFieldValues(self.card, [field_id])
        return value.value.uiVal / 1000

    def start(self, delay: float) -> None:
        """Starts sampling `delay` seconds from now."""
        self.seen: list = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._sample, args=(delay,), daemon=True)
        if self.nvml:
            self.thread.start()

    def _sample(self, delay: float) -> None:
        if self.stopped.wait(delay):
            return
        while not self.stopped.wait(0.02):
            self.seen.append(self._watts())

    def stop(self) -> float | None:
        self.stopped.set()
        if self.nvml:
            self.thread.join()
        return statistics.mean(self.seen) if self.seen else None


# ---- measuring ----


def capture(contender: Contender) -> None:
    """Captures the contender's graph, long enough that the time to launch it does not matter."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for i in range(contender.sets):
        contender.launch(i)
    begin.record()
    for i in range(contender.sets):
        contender.launch(i)
    end.record()
    torch.cuda.synchronize()
    one = max(begin.elapsed_time(end) / 1000 / contender.sets, 1e-6)
    rounds = max(1, round(GRAPH / one / contender.sets))
    contender.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(contender.graph):
        for _ in range(rounds):
            for i in range(contender.sets):
                contender.launch(i)
    contender.launches = rounds * contender.sets
    contender.seconds = one * contender.launches


def sample(contender: Contender, clock: Clock, power: Power, warmup=WARMUP, window=WINDOW) -> None:
    """Adds one sample: a warm-up, then a window."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    replays = max(1, round(window / contender.seconds))
    power.start(warmup)
    for _ in range(max(1, round(warmup / contender.seconds))):
        contender.graph.replay()
    clock.mark()
    begin.record()
    for _ in range(replays):
        contender.graph.replay()
    end.record()
    clock.mark()
    end.synchronize()
    watts = power.stop()
    seconds = begin.elapsed_time(end) / 1000
    contender.seconds = seconds / replays
    ms = seconds * 1000 / (replays * contender.launches)
    contender.samples.append(Sample(contender.flops / ms * 1e-9, ms, clock.mhz(), watts))


def burst(contender: Contender) -> None:
    """A few launches after a rest: before the power limit acts. Not a sustained rate."""
    import torch

    time.sleep(BURST_REST)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for i in range(3):
        contender.launch(i % contender.sets)
    begin.record()
    for i in range(BURST_LAUNCHES):
        contender.launch(i % contender.sets)
    end.record()
    end.synchronize()
    contender.burst_ms.append(begin.elapsed_time(end) / BURST_LAUNCHES)


def measure(contenders: list[Contender], rounds: int, bursts: int = 0, seed: int = 0) -> None:
    """Adds `rounds` samples to each, and `bursts` bursts to the first and the last, in shuffled rounds."""
    clock, power, order = Clock(), Power(), random.Random(seed)
    for contender in contenders:
        capture(contender)
    ends = list({id(c): c for c in (contenders[0], contenders[-1])}.values())
    for what, some, times in (
        (lambda c: sample(c, clock, power), contenders, rounds),
        (burst, ends, bursts),
    ):
        for _ in range(times):
            for contender in order.sample(some, len(some)):
                what(contender)


def row(contender: Contender, against: Contender | None) -> dict:
    """The record of a contender: medians, spread, and the ratio to another one of the same run."""
    made = {
        "kernel": contender.name,
        "tflops": round(contender.median(), 1),
        "spread": round(contender.spread(), 4),
        "ms": round(contender.median("ms"), 5),
        "clock_mhz": round(contender.median("clock_mhz")),
        "watts": None if math.isnan(contender.median("watts")) else round(contender.median("watts")),
        "samples": len(contender.samples),
        "ratio": round(contender.median() / against.median(), 4) if against else None,
    }
    if contender.burst_ms:
        made["burst_tflops"] = round(contender.flops / statistics.median(contender.burst_ms) * 1e-9, 1)
    return made
