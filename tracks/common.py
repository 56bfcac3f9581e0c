"""Shared by the two tracks: runs a kernel at several sizes in several frameworks and says whether D is right.

    python tracks/ampere/run.py                          on the simulator, in the frameworks installed
    python tracks/hopper/run.py --device cuda --time     on a GPU, all sizes; TFLOP/s beside the library's
    python tracks/ampere/run.py --save DIR               build only: one artifact per size
    python tracks/ampere/run.py --artifacts DIR --device cuda     run saved ones, where TVM is not installed

One line per size and framework; the exit code is 1 if a line says FAIL.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tirxlab.artifact import Artifact
from tirxlab.devices import sim
from tirxlab.functions import Function
from tirxlab.steps import load_kernels, parse_size, read_text, size_text

SIZES = [(64, 64, 64), (64, 64, 256), *((n, n, n) for n in (128, 256, 512, 1024, 2048, 4096))]
SIM_LIMIT = 256**3  # M * N * K up to which a size runs on the simulator unless it is asked for
TOLERANCE = 1e-2  # absolute and relative
FRAMEWORKS = ("numpy", "torch", "jax")


@dataclass(frozen=True)
class Rung:
    """One kernel of a track's ladder."""

    number: int
    builder: str  # function of the kernels file
    title: str
    b_transposed: bool = True  # the second operand is (N, K), not (K, N)
    variants: tuple[dict, ...] = ({},)  # keyword arguments of the builder: the types it comes in
    cases: tuple[tuple[tuple[int, int, int], dict], ...] = ()  # (size, keyword arguments) that `check` runs


@dataclass(frozen=True)
class Track:
    """A ladder of kernels; the first is the walkthrough's, which `run.py` runs."""

    name: str  # "ampere"
    title: str  # "Ampere"
    kernels: Path  # the student's file
    capability: tuple[int, int]  # of the GPUs that run it: exactly this for sm_90a, at least this for sm_80
    reference: Callable  # gemm_ref, of the first kernel
    rungs: tuple[Rung, ...]

    @property
    def builder(self) -> str:
        return self.rungs[0].builder

    @property
    def b_transposed(self) -> bool:
        return self.rungs[0].b_transposed


def inputs(
    track: Track, size: tuple[int, int, int], rung: Rung | None = None, dtype: str = "bfloat16"
) -> tuple[np.ndarray, np.ndarray]:
    """A and B, normal with deviation 0.1, of the first kernel or of a rung; the same for every framework."""
    import ml_dtypes  # noqa: F401  (teaches numpy "bfloat16")

    m, n, k = size
    rng = np.random.default_rng(m * 7919 + n * 31 + k)
    transposed = (rung or track.rungs[0]).b_transposed
    shapes = (m, k), (n, k) if transposed else (k, n)
    A, B = ((rng.standard_normal(s, np.float32) * 0.1).astype(dtype) for s in shapes)
    return A, B


def written(path: Path, rung: Rung) -> bool:
    """Whether the kernels file defines the rung, and its first TODO is filled in."""
    todo = rf'^ +raise NotImplementedError\("{rung.builder} is not implemented yet"\)'
    text = read_text(path)
    return f"def {rung.builder}(" in text and not re.search(todo, text, re.MULTILINE)


def product(rung: Rung, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What a rung must compute, in float32."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    return a @ (b.T if rung.b_transposed else b)


def tolerance(dtype) -> float:
    """How far an element of D may be off, absolute and relative."""
    return TOLERANCE if dtype == np.float32 else 2 * TOLERANCE


def function(track: Track, size, kernels: Path, artifacts: Path | None) -> Function:
    """The kernel of one size, built from the kernels file or loaded from a folder of artifacts."""
    if artifacts is not None:
        return Function(Artifact.load(artifacts / artifact_name(track, size)))
    return getattr(load_kernels(kernels), track.builder)(*size)


def artifact_name(track: Track, size) -> str:
    return f"{track.name}_{size_text(size)}.lab"


# ---- one run per framework: (D, reference) as numpy ----


def run_numpy(call: Function, track: Track, a, b, device: str):
    return call(a, b), track.reference(a, b)


def run_torch(call: Function, track: Track, a, b, device: str):
    import torch

    place = "cuda" if device == "cuda" else "cpu"
    a, b = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).to(place) for x in (a, b))
    return call(a, b).cpu().numpy(), track.reference(a, b).cpu().numpy()


def run_jax(call: Function, track: Track, a, b, device: str):
    import jax

    with jax.default_device(jax.devices("cuda" if device == "cuda" else "cpu")[0]):
        a, b = jax.numpy.asarray(a), jax.numpy.asarray(b)
        return np.asarray(jax.jit(call)(a, b)), np.asarray(jax.jit(track.reference)(a, b))


RUN = {"numpy": run_numpy, "torch": run_torch, "jax": run_jax}


def check(framework: str, call: Function, track: Track, size, device: str) -> bool:
    """Runs one size and prints its line."""
    m, n, k = size
    try:
        d, expected = RUN[framework](call, track, *inputs(track, size), device)
    except Exception as error:  # from any framework; the next size is run all the same
        reason = str(error).strip().split("\n")[0]
        print(f"[{framework:5} FAIL] M={m:5} N={n:5} K={k:5} {type(error).__name__}: {reason}", flush=True)
        return False
    good = bool(np.allclose(d, expected, rtol=TOLERANCE, atol=TOLERANCE))
    worst = float(np.abs(d - expected).max())
    print(
        f"[{framework:5} {'OK  ' if good else 'FAIL'}] M={m:5} N={n:5} K={k:5} max_abs={worst:.3e}",
        flush=True,
    )
    return good


def run_checked(
    track: Track, size, order="program", kernels: Path | None = None, rung: Rung | None = None, **options
) -> list[str]:
    """Runs a rung (by default the first) of the kernels file on the simulator under an order; returns what is
    wrong, one line each. `options` go to the builder.
    """
    rung = rung or track.rungs[0]
    call = getattr(load_kernels(kernels or track.kernels), rung.builder)(*size, **options)
    out = call.outputs[0].dtype
    a, b = inputs(track, size, rung, call.inputs[0].dtype)
    d = np.full((size[0], size[1]), np.nan, np.float32).astype(out)
    run = sim.run(call.artifact, [a, b, d], order=order)
    wrong = [str(f) for f in run.findings if f.severity != "review" or rung is not track.rungs[0]]
    limit = tolerance(d.dtype)
    bad = ~np.isclose(d.astype(np.float32), product(rung, a, b), rtol=limit, atol=limit)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        wrong.append(f"{bad.sum()} of {bad.size} elements are wrong, the first at D[{row}, {column}]")
    return wrong


def measure(call: Function, track: Track, size) -> None:
    """Prints TFLOP/s of the kernel and of torch.matmul: medians, timed by events over rotated inputs."""
    import torch

    m, n, k = size
    a, b = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).cuda() for x in inputs(track, size))
    sets = [(a.clone(), b.clone()) for _ in range(max(1, min(8, (256 << 20) // (a.nbytes + b.nbytes))))]
    mine = milliseconds(lambda i: call(*sets[i % len(sets)]))
    pairs = [(x, y.T if track.b_transposed else y) for x, y in sets]
    library = milliseconds(lambda i: torch.matmul(*pairs[i % len(pairs)]))
    flops = 2 * m * n * k * 1e-9
    print(
        f"[time     ] M={m:5} N={n:5} K={k:5} {mine:.4f} ms, {flops / mine:.1f} TFLOP/s; "
        f"torch.matmul (bfloat16 result) {library:.4f} ms, {flops / library:.1f} TFLOP/s",
        flush=True,
    )


def milliseconds(action, warmup: int = 10, repeat: int = 50) -> float:
    import torch

    for i in range(warmup):
        action(i)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeat + 1)]
    events[0].record()
    for i in range(repeat):
        action(i)
        events[i + 1].record()
    torch.cuda.synchronize()
    return float(np.median([x.elapsed_time(y) for x, y in zip(events[:-1], events[1:], strict=True)]))


# ---- command line ----


def main(track: Track, arguments: list[str] | None = None) -> int:
    options = _parse(track, arguments)
    sizes = options.sizes or [s for s in SIZES if options.device == "cuda" or s[0] * s[1] * s[2] <= SIM_LIMIT]
    good = True
    for size in sizes:
        call = function(track, size, options.kernels, options.artifacts)
        if options.save:
            options.save.mkdir(parents=True, exist_ok=True)
            call.artifact.save(options.save / artifact_name(track, size))
            print(f"saved {options.save / artifact_name(track, size)}")
            continue
        for framework in options.frameworks:
            good &= check(framework, call, track, size, options.device)
        if options.time:
            measure(call, track, size)
    return 0 if good else 1


def _parse(track: Track, arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"The {track.name} track: {track.builder}.")
    parser.add_argument("--device", choices=("sim", "cuda"), default="sim")
    parser.add_argument("--sizes", nargs="+", type=parse_size, metavar="SIZE", help="1024 or MxNxK")
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, help="default: those installed")
    parser.add_argument("--kernels", type=Path, default=track.kernels, help="the kernels file")
    parser.add_argument("--artifacts", type=Path, help="run artifacts saved in this folder, build nothing")
    parser.add_argument("--save", type=Path, help="save one artifact per size here, run nothing")
    parser.add_argument("--time", action="store_true", help="speed, on cuda")
    options = parser.parse_args(arguments)
    if options.time and options.device != "cuda":
        parser.error("--time needs --device cuda: the simulator measures no speed")
    if options.save and not options.sizes:
        options.sizes = SIZES
    if not options.frameworks:
        known = [f for f in FRAMEWORKS[1:] if importlib.util.find_spec(f) is not None]
        options.frameworks = known or ["numpy"]
    if options.device == "cuda" and "numpy" in options.frameworks:
        parser.error("numpy arrays run on the simulator: --frameworks torch jax")
    return options


def run_script(track: Track) -> None:
    try:
        sys.exit(main(track))
    except (ValueError, NotImplementedError) as error:  # BuildError, DeviceError, StepError
        print(error, file=sys.stderr)
        sys.exit(2)
