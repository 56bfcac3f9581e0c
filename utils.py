"""Helpers for tests and experiments: make data, run a kernel, compare with the reference, measure speed.

    kernel = hgemm_v4(1024, 1024, 1024)
    A, B, C = prepare_data(1024, 1024, 1024, seed=0)
    C_out = compile_and_run(kernel, A, B, C)
    verify(C_out, A, B)

D = A @ B.T: A (M, K), B (N, K), C and D (M, N), row-major. Arrays are numpy on the simulator and torch
tensors on a GPU. The device is the argument `device`, else $LAB_DEVICE, else "cuda" if a tcgen05-capable GPU
is present, else "sim".
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ptxsim import times_text
from tirxlab.artifact import Artifact
from tirxlab.devices import DeviceError, Run, get_device
from tirxlab.explain.blocks import TILE, wrong_tiles
from tirxlab.explain.callers import called_at
from tirxlab.explain.mismatch import Reason, reasons
from tirxlab.explain.mismatch_map import MismatchMap, mismatch_map
from tirxlab.rubric import load_rubric

DTYPES = {"fp16": "float16", "bf16": "bfloat16"}
ALSO = 5  # findings that are listed after the first error
# Outputs start as these NaNs, whose payload no arithmetic produces: an element with it was never written.
CANARY = {"float16": 0x7E5A, "bfloat16": 0x7FDA, "float32": 0x7FC05A5A}


class KernelError(AssertionError):
    """A run found an error or could not run the kernel; the text has the findings, most fundamental first."""

    def __init__(self, message: str, run: Run):
        super().__init__(message)
        self.run = run


class WrongResult(AssertionError):
    """D is not A @ B.T; the text says where, and what it holds instead, `map` shows it (MismatchMap)."""

    def __init__(self, said: str, holds: list[Reason], map: MismatchMap, wrong: np.ndarray):
        self.said, self.holds, self.map = said, holds, map
        self.wrong = wrong  # (M, N): which elements were written wrong
        super().__init__(self.text())

    def text(self, way: list[str] | None = None) -> str:
        """The message. `way`: how one of the wrong elements came about; it replaces the guesses."""
        lines = [line for reason in self.holds for line in reason.lines(way=bool(way))]
        return "\n".join([self.said, *(f"  {line}" for line in [*lines, *(way or [])])])


@dataclass(frozen=True)
class Timing:
    """What `check_timing` returns; unpacks to ms, tflops. status: "passed" or "not measured"."""

    status: str
    ms: float | None
    tflops: float | None
    reference_tflops: float

    def __iter__(self):
        """`ms, tflops = check_timing(...)`."""
        return iter((self.ms, self.tflops))


REFERENCE_TIMES = load_rubric().reference_ms  # step -> (M, N, K) -> published B200 milliseconds
TIMING_TOLERANCE = load_rubric().speed_factor  # a kernel passes at reference TFLOP/s / TIMING_TOLERANCE


def prepare_data(M: int, N: int, K: int, dtype: str = "fp16", seed: int | None = None, *, device=None):
    """Inputs A (M, K), B (N, K), standard normal, and C (M, N), the output, filled with canaries.

    dtype is "fp16" or "bf16". The same seed gives the same numbers on every device.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r} is not known: use {' or '.join(DTYPES)}")
    for name, size in (("M", M), ("N", N), ("K", K)):
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} must be a positive integer (got {size!r})")
    rng = np.random.default_rng(seed)
    kind = np.dtype(DTYPES[dtype])
    A, B = (rng.standard_normal(shape, dtype=np.float32).astype(kind) for shape in ((M, K), (N, K)))
    arrays = A, B, canaries((M, N), DTYPES[dtype])
    return tuple(map(_to_torch, arrays)) if get_device(device).NAME == "cuda" else arrays


def canaries(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array that holds nothing but the canary of its dtype."""
    kind = np.dtype(dtype)
    return np.full(shape, CANARY[dtype], f"u{kind.itemsize}").view(kind)


def launch(
    kernel, A, B, C, *, device=None, order: str | int = "program", checks=True, trace=False, arch="sm_100a"
):
    """Builds the kernel (unless it is an Artifact) and runs it once, without judging it: (Run, Artifact).

    C is not changed: the output is a new array, filled with canaries (with C if the kernel reads it, too).
    """
    artifact = kernel if isinstance(kernel, Artifact) else _build(kernel, arch)
    if len(artifact.buffers) != 3:
        raise ValueError(f"the kernel takes {len(artifact.buffers)} arrays, not A, B and C")
    a, b, d = artifact.buffers
    arrays = {a.name: A, b.name: B, d.name: _output(d, C)}
    run = get_device(device).run(artifact, arrays, order=order, checks=checks, trace=trace)
    if run.ran:  # a D that the kernel never wrote is an output, too
        run.outputs[d.name] = arrays[d.name]
    return run, artifact


def compile_and_run(kernel, A, B, C, *, device=None, order="program", checks=True):
    """Builds the kernel, runs it once, returns its output C_out (M, N) as a new array.

    `order` is the simulator's order of completion: "program", "adverse" or a seed. Raises KernelError if the
    run found an error or could not run the kernel; prints findings that only ask for a review.
    """
    __tracebackhide__ = True
    run, artifact = launch(kernel, A, B, C, device=device, order=order, checks=checks)
    if run.verdict == "error" or not run.ran:
        said = "" if run.verdict == "error" else f"{run.verdict}:\n"  # a summary shows the first line alone
        raise KernelError(said + report(run, artifact), run)
    if run.findings:
        print(report(run, artifact), file=sys.stderr)
    if run.stdout:
        print(run.stdout)
    return run.outputs[artifact.buffers[2].name]


def report(run: Run, artifact: Artifact) -> str:
    """The findings of a run with the student's lines; after an error, one line for each further finding."""
    lines = artifact.source.get("text", "").splitlines()
    told = run.findings[:1] if run.verdict == "error" else run.findings
    parts = []
    for finding in told:
        times = times_text(finding.kind, finding.count)
        sentence, *more = finding.message.split("\n", 1)
        parts += [f"{finding.severity}: {finding.kind}: {sentence}{times}", *more]
        number = finding.where.get("line")
        if number:
            text = lines[number - 1].strip() if number <= len(lines) else ""
            text += called_at("\n".join(lines), artifact.ptx, number)
            parts.append(f"  at {artifact.source.get('file', 'kernel')}:{number}: {text}")
        if finding.hint:
            parts.append(f"  hint: {finding.hint}")
    parts += _also(run.findings[len(told) :])
    return "\n".join(parts) or f"{run.verdict}: no findings"


def _also(findings: list) -> list[str]:
    """A line for each further finding, which may be a consequence of the first."""
    lines = []
    for finding in findings[:ALSO]:
        number = finding.where.get("line")
        head = finding.message.split("\n")[0]
        lines.append(f"also: {finding.kind}: {head}" + (f" [line {number}]" if number else ""))
    more = len(findings) - len(lines)
    return lines + ([f"and {more} more: --json shows all"] if more > 0 else [])


def verify(C_out, A, B, rtol: float = 1e-3, atol: float = 1e-2) -> None:
    """Compares with A @ B.T; WrongResult says how many elements are wrong, where, and what they hold.

    An element is right if |D - R| <= atol + rtol * |R|, with R from cuBLAS on a GPU, else numpy's in float32.
    """
    __tracebackhide__ = True
    compare(C_out, reference(A, B), A, B, rtol, atol)


def compare(C_out, expected, A, B, rtol: float = 1e-3, atol: float = 1e-2) -> None:
    """`verify` with a product that is given: `expected` (M, N), A @ B.T in the dtype that C_out must have."""
    __tracebackhide__ = True
    expected, actual = _numpy(expected), _numpy(C_out)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise AssertionError(
            f"the output is {actual.dtype}{actual.shape}, expected {expected.dtype}{expected.shape}"
        )
    wrong = np.concatenate(
        [
            _wrong(actual[i : i + 1024], expected[i : i + 1024], rtol, atol)
            for i in range(0, len(actual), 1024)
        ]
    )
    if wrong.any():
        said = _describe(wrong, actual, expected, rtol, atol)
        written = _written(wrong, actual)
        holds = reasons(actual, expected, _numpy(A), _numpy(B), written, rtol, atol)
        raise WrongResult(said, holds, mismatch_map(wrong, wrong & ~written), written)


def reference(A, B):
    """A @ B.T, accumulated in float32 and rounded once to the inputs' dtype."""
    if isinstance(A, np.ndarray):
        with np.errstate(over="ignore"):  # a product beyond the dtype's range is its infinity
            return (A.astype(np.float32) @ B.astype(np.float32).T).astype(A.dtype)
    import torch

    return torch.matmul(A, B.T)


def benchmark(kernel, M, N, K, dtype="fp16", warmup=10, repeat=30, *, device=None):
    """(median milliseconds, TFLOP/s) of one launch; on the simulator (None, None), and prints why."""
    target = get_device(device)
    if target.NAME == "sim":
        print("speed not measured: the simulator has no clock, run on a GPU")
        return None, None
    artifact = kernel if isinstance(kernel, Artifact) else _build(kernel, "sm_100a")
    ms = target.measure(
        artifact, prepare_data(M, N, K, dtype, 0, device=device), warmup=warmup, repeat=repeat
    )
    return ms, tflops(M, N, K, ms)


def benchmark_flops(kernel, M, N, K, dtype="fp16", warmup=10, repeat=30, *, device=None):
    """TFLOP/s of the kernel, None on the simulator."""
    return benchmark(kernel, M, N, K, dtype, warmup, repeat, device=device)[1]


def tflops(M: int, N: int, K: int, ms: float) -> float:
    """2 * M * N * K operations in `ms` milliseconds, as 10^12 a second."""
    return 2 * M * N * K / (ms * 1e-3) / 1e12


def check_timing(kernel, step, M, N, K, dtype="fp16", warmup=10, repeat=30, *, device=None) -> Timing:
    """Compares with the published B200 time of the step at this size; raises AssertionError if too slow.

    Passes at >= reference TFLOP/s / 1.30. On the simulator the status is "not measured". Raises ValueError if
    there is no published time for the size.
    """
    __tracebackhide__ = True
    rubric = load_rubric()
    reference_ms = rubric.reference_ms.get(step, {}).get((M, N, K))
    if reference_ms is None:
        raise ValueError(f"there is no reference time for step {step} at {M}x{N}x{K}")
    published = tflops(M, N, K, reference_ms)
    ms, rate = benchmark(kernel, M, N, K, dtype, warmup, repeat, device=device)
    if ms is None or rate is None:
        return Timing("not measured", None, None, published)
    least = published / rubric.speed_factor
    if rate < least:
        raise AssertionError(
            f"step {step} at {M}x{N}x{K} takes {ms:.3f} ms, {rate:.1f} TFLOP/s: too slow, {least:.1f} "
            f"are needed (reference {published:.1f} / {rubric.speed_factor})"
        )
    return Timing("passed", ms, rate, published)


def _build(kernel, arch: str) -> Artifact:
    from tirxlab.toolchain.build import build  # TVM is needed for this alone

    return build(kernel, arch)


def _output(info, given):
    """A fresh array for one output, of the kind (numpy, torch) of `given`."""
    if info.role == "inout":
        return given.copy() if isinstance(given, np.ndarray) else given.clone()
    fresh = canaries(info.shape, info.dtype)
    return fresh if isinstance(given, np.ndarray) else _to_torch(fresh)


def _to_torch(array: np.ndarray):
    try:
        import torch
    except ImportError:
        raise DeviceError(
            "the cuda device needs torch: pip install 'torch>=2.9', or use --device sim"
        ) from None
    bits = torch.from_numpy(array.view(f"i{array.itemsize}"))
    return bits.view(getattr(torch, array.dtype.name)).cuda()


def _numpy(array) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    import torch

    kind = {torch.float16: "f2", torch.float32: "f4", torch.bfloat16: ml_dtypes.bfloat16}[array.dtype]
    bits = {2: torch.int16, 4: torch.int32}[array.element_size()]
    return array.detach().view(bits).cpu().numpy().view(kind)


def _wrong(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    a, e = actual.astype(np.float32), expected.astype(np.float32)
    with np.errstate(invalid="ignore"):
        near = np.isfinite(e) & (np.abs(a - e) <= atol + rtol * np.abs(e))
    return ~(near | (a == e))


def _written(wrong: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """The wrong elements that the kernel did write."""
    return wrong & (actual.view(f"u{actual.itemsize}") != CANARY[actual.dtype.name])


def _describe(wrong, actual, expected, rtol: float, atol: float) -> str:
    """Says which elements are wrong, for a person who has to find out why."""
    rows, columns = np.nonzero(wrong)
    i, j = int(rows[0]), int(columns[0])
    got, want = float(actual[i, j]), float(expected[i, j])
    bits = actual.view(f"u{actual.itemsize}")
    unwritten = int((bits == CANARY[actual.dtype.name]).sum())
    tiles = wrong_tiles(wrong)
    total = -(-wrong.shape[0] // TILE) * -(-wrong.shape[1] // TILE)
    shown = ", ".join(f"({r}, {c})" for r, c in tiles[:8].tolist()) + (", ..." if len(tiles) > 8 else "")
    allowed = atol + rtol * abs(want)
    first = f"D[{i}, {j}] = {got:g}, expected {want:g} (off by {abs(got - want):g}, allowed {allowed:g})"
    if bits[i, j] == CANARY[actual.dtype.name]:
        first = f"D[{i}, {j}] was never written, expected {want:g}"
    return "\n".join(
        [
            f"{len(rows)} of {wrong.size} elements are wrong ({100 * len(rows) / wrong.size:.3g} %); "
            + (f"{unwritten} of them were never written" if unwritten else "all were written"),
            f"  first: {first}",
            f"  {TILE}x{TILE} tiles with wrong elements: {len(tiles)} of {total}: {shown}",
            f"  rows: {_ranges(np.flatnonzero(wrong.any(1)))}",
            f"  columns: {_ranges(np.flatnonzero(wrong.any(0)))}",
        ]
    )


def _ranges(numbers: np.ndarray, most: int = 8) -> str:
    """Sorted numbers as ranges: 0-31, 64, 96-127."""
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    first = numbers[np.concatenate([[0], breaks + 1])]
    last = numbers[np.concatenate([breaks, [len(numbers) - 1]])]
    parts = [f"{a}" if a == b else f"{a}-{b}" for a, b in zip(first[:most], last[:most], strict=True)]
    return ", ".join(parts) + (f", ... ({len(numbers)} in all)" if len(first) > most else "")
