"""Whether a step is fast enough: measured on a Blackwell GPU alone, at the published sizes, if right there.

Before anything is timed, each artifact has run on the simulator at the size of its timing (timeable.py). On
the GPU the inputs come from a secret seed; before each launch the output is overwritten and L2 flushed. Each
launch multiplies other numbers and its D is compared: the timed launch must have computed it, and nothing
that an earlier launch left can help. A time below what the chip can do does not count (`floor`). Only
artifacts are timed, so the machine with the GPU runs no Python of a student. Not tried on a B200 yet; the
tests use a stand-in for the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

import utils
from tirxlab.artifact import Artifact
from tirxlab.devices import DeviceError
from tirxlab.rubric import load_rubric
from tirxlab.sandbox.builder import Built
from tirxlab.sandbox.limits import printable
from tirxlab.steps import size_text

Size = tuple[int, int, int]
PEAK_TFLOPS = 2382  # 148 SMs at 8192 FLOP of dense FP16 a cycle and 1.965 GHz, the highest clock of a B200
HBM_BYTES = 8.0e9  # per millisecond, from a B200's data sheet: with L2 flushed, A and B come from HBM
SPARE = 1 << 18  # extra numbers after A and after B: the inputs of a launch begin at any offset up to this
COLUMNS = 512  # of D, at most, that are compared for each launch
PART = 0.5  # of the predicted time is possible; predictions are off by 12 to 15 %, docs/timing.md


@dataclass(frozen=True)
class Timed:
    """One launch that is to be timed."""

    size: Size  # (M, N, K)
    seed: int  # of the inputs
    artifact: bytes  # of the step at this size
    floor_ms: float = 0.0  # no launch can be faster than this


@dataclass(frozen=True)
class Measured:
    """The measurements of one submission on a GPU."""

    hints: dict[int, str]  # by step; "" for one that is fast enough
    seconds: float  # that measuring took
    ms: dict[int, dict[str, float]] = field(default_factory=dict)  # step -> size -> milliseconds


class NotBuilt(ValueError):
    """The step cannot be timed at a published size; the message is the hint.

    It holds no text of the step's own: this kernel is built after hidden sizes, and its code could report,
    from the clock, how long those took.
    """

    def __init__(self, step: int, size: Size, problem: str):
        at = size_text(size)
        super().__init__(f"at {at}, where it would be timed, {problem}: try ./lab check {step} --size {at}")


def launches(
    step: int,
    build: Callable[[int, Size], Built],
    seed_of: Callable[[Size], int],
    look: Callable[[int, Timed, Artifact], str],
) -> list[Timed]:
    """The step's launches at its published sizes. `look` says why a launch must not be timed, "" if it may.

    Raises NotBuilt if a size has no artifact or is not right on the simulator.
    """
    made = []
    for size in load_rubric().reference_ms[step]:
        built = build(step, size)
        if built.artifact is None:
            raise NotBuilt(step, size, "it does not build")
        one = Timed(size, seed_of(size), built.artifact.to_bytes(), floor(size))
        if problem := look(step, one, built.artifact):
            raise NotBuilt(step, size, problem)
        made.append(one)
    return made


def floor(size: Size, predicted_ms: float = 0.0) -> float:
    """Milliseconds that a B200 needs at least: to multiply, to read A and B, or half of the prediction."""
    M, N, K = size
    return max(2e-9 * M * N * K / PEAK_TFLOPS, 2 * K * (M + N) / HBM_BYTES, PART * predicted_ms)


def time_steps(steps: dict[int, list[Timed]], device: str) -> Measured:
    """Times all launches of one submission. Raises DeviceError if the GPU cannot be used."""
    start, hints, ms = time.perf_counter(), {}, {}
    for step, timed in steps.items():
        hints[step], ms[step] = time_step(step, timed, device)
    return Measured(hints, time.perf_counter() - start, ms)


def time_step(step: int, timed: Iterable[Timed], device: str) -> tuple[str, dict[str, float]]:
    """Times one step: (a hint, "" if every launch is right and fast enough; milliseconds by size)."""
    found: dict[str, float] = {}
    for one in timed:
        artifact = Artifact.from_bytes(one.artifact)
        try:
            _right(artifact, one, device)
        except AssertionError as error:
            return f"wrong on the GPU: {printable(str(error), 2)}", found
        try:
            ms = _measured(artifact, one, device)
            _possible(step, one, ms)
            found[size_text(one.size)] = ms  # after _possible: a time that cannot be must not lead the board
            _fast_enough(step, one, ms)
        except (AssertionError, DeviceError) as error:
            return printable(str(error), 2), found
    return "", found


def _right(artifact: Artifact, one: Timed, device: str) -> None:
    """Raises AssertionError if the GPU's result is wrong, DeviceError if there is no GPU."""
    A, B, C = utils.prepare_data(*one.size, seed=one.seed, device=device)
    result = utils.compile_and_run(artifact, A, B, C, device=device)
    _compare(result, one, device)


def _measured(artifact: Artifact, one: Timed, device: str) -> float:
    """Milliseconds of one launch; raises AssertionError if a timed launch did not compute D from its inputs.

    The last launch is compared as a whole, every other one in some rows.
    """
    arrays = utils.prepare_data(*one.size, seed=one.seed, device=device)
    pools = _pools(artifact, one)
    ms, seen = utils.get_device(device).prove(artifact, arrays, pools, warmup=10, repeat=30)
    try:
        _compare(arrays[2], one, device)
        for launch in seen:
            _compare_rows(launch, one, pools)
    except AssertionError as error:
        raise AssertionError(f"wrong after it was timed: {error}") from None
    return ms


def _pools(artifact: Artifact, one: Timed) -> dict[str, np.ndarray]:
    """A and B as flat arrays, each with SPARE random numbers added, from which launches draw other inputs."""
    A, B, _ = utils.prepare_data(*one.size, seed=one.seed, device="sim")
    more = np.random.default_rng([one.seed, 1]).standard_normal((2, SPARE), np.float32).astype(A.dtype)
    flat = [np.concatenate([array.ravel(), rest]) for array, rest in zip((A, B), more, strict=True)]
    return {buffer.name: pool for buffer, pool in zip(artifact.buffers, flat, strict=False)}


def _compare_rows(launch, one: Timed, pools: dict[str, np.ndarray]) -> None:
    """Compares some rows of one launch's D, in randomly drawn columns."""
    M, N, K = one.size
    A, B = (
        pool[launch.at[name] :][: count * K].reshape(count, K)
        for (name, pool), count in zip(pools.items(), (M, N), strict=True)
    )
    columns = np.sort(np.random.default_rng().choice(N, min(N, COLUMNS), replace=False))
    utils.verify(launch.values[:, columns], A[launch.rows], B[columns])


def _compare(result, one: Timed, device: str) -> None:
    A, B, _ = utils.prepare_data(*one.size, seed=one.seed, device=device)
    utils.verify(result, A, B)


def _possible(step: int, one: Timed, ms: float) -> None:
    if ms < one.floor_ms:
        raise AssertionError(
            f"{_took(step, one, ms)}: faster than a B200 can be ({one.floor_ms:.3g} ms); somebody has to look"
        )


def _fast_enough(step: int, one: Timed, ms: float) -> None:
    rubric = load_rubric()
    published = utils.tflops(*one.size, rubric.reference_ms[step][one.size])
    least = published / rubric.speed_factor
    if utils.tflops(*one.size, ms) < least:
        raise AssertionError(
            f"{_took(step, one, ms)}: too slow, {least:.1f} are needed "
            f"(published {published:.1f} / {rubric.speed_factor})"
        )


def _took(step: int, one: Timed, ms: float) -> str:
    rate = utils.tflops(*one.size, ms)
    return f"step {step} at {size_text(one.size)} takes {ms:.3g} ms, {rate:.1f} TFLOP/s"
