"""Is a step fast enough? Measured on a Blackwell GPU alone, at the published sizes, once it is right there.

The simulator has already seen the kernel: it reads no clock, keeps nothing between launches and does its work
again when D holds the product (judge.py). What is timed is an artifact, so that the machine with the GPU runs
no Python of a student. Not tried on a B200 yet; the tests use a stand-in for the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import utils
from tirxlab.artifact import Artifact
from tirxlab.devices import DeviceError
from tirxlab.rubric import load_rubric
from tirxlab.sandbox.limits import printable
from tirxlab.steps import size_text

Size = tuple[int, int, int]


@dataclass(frozen=True)
class Timed:
    """One launch that is to be timed."""

    size: Size  # (M, N, K)
    seed: int  # of the inputs
    artifact: bytes  # of the step at this size


@dataclass(frozen=True)
class Measured:
    """What a GPU found."""

    hints: dict[int, str]  # by step; "" for one that is fast enough
    seconds: float  # that it took


class NotBuilt(ValueError):
    """A published size that the step cannot be built for; the message is the hint."""


def launches(step: int, build: Callable[[int, Size], object], seed_of: Callable[[Size], int]) -> list[Timed]:
    """The step at its published sizes; `build` gives a Built. NotBuilt if one of them has no artifact."""
    made = []
    for size in load_rubric().reference_ms[step]:
        built = build(step, size)
        if built.artifact is None:
            raise NotBuilt(f"at {size_text(size)} it does not build: {printable(built.message, 1)}")
        made.append(Timed(size, seed_of(size), built.artifact.to_bytes()))
    return made


def time_steps(steps: dict[int, list[Timed]], device: str) -> Measured:
    """All launches of one submission. DeviceError if the GPU cannot be used."""
    start = time.perf_counter()
    hints = {step: too_slow(step, timed, device) for step, timed in steps.items()}
    return Measured(hints, time.perf_counter() - start)


def too_slow(step: int, timed: Iterable[Timed], device: str) -> str:
    """A hint, "" if every launch is right and reaches its bound. DeviceError if the GPU cannot be used."""
    for one in timed:
        artifact = Artifact.from_bytes(one.artifact)
        try:
            _right(artifact, one.size, device, one.seed)
        except AssertionError as error:
            return f"wrong on the GPU: {printable(str(error), 2)}"
        try:
            utils.check_timing(artifact, step, *one.size, device=device)
        except (AssertionError, DeviceError) as error:
            return printable(str(error), 2)
    return ""


def _right(artifact: Artifact, size: Size, device: str, seed: int) -> None:
    """AssertionError if the GPU's result is wrong: speed counts for a product alone."""
    A, B, C = utils.prepare_data(*size, seed=seed, device=device)
    result = utils.compile_and_run(artifact, A, B, C, device=device)
    A, B, _ = utils.prepare_data(*size, seed=seed, device=device)
    utils.verify(result, A, B)
