"""Is a step fast enough? Measured on a Blackwell GPU alone, at the published sizes, once it is right there.

The simulator has already seen the kernel: it reads no clock, keeps nothing between launches and does its work
again when D holds the product (judge.py). Not tried on a B200 yet; the tests use a stand-in for the device.
"""

from __future__ import annotations

from collections.abc import Callable

import utils
from instructor.autograder.plan import Hidden, secret_seed
from tirxlab.artifact import Artifact
from tirxlab.devices import DeviceError
from tirxlab.rubric import load_rubric
from tirxlab.steps import size_text
from tirxlab.worker.limits import printable

Size = tuple[int, int, int]


def too_slow(
    step: int, build: Callable[[int, Size], object], device: str, hidden: Hidden, digest: str
) -> str:
    """ "" if the step reaches its bound at every published size, else a hint. `build` gives a Built."""
    for size in load_rubric().reference_ms[step]:
        built = build(step, size)
        if built.artifact is None:
            return f"at {size_text(size)} it does not build: {printable(built.message, 1)}"
        seed = secret_seed(hidden, digest, step, size, "speed")
        try:
            _right(built.artifact, size, device, seed)
        except AssertionError as error:
            return f"wrong on the GPU: {printable(str(error), 2)}"
        try:
            utils.check_timing(built.artifact, step, *size, device=device)
        except (AssertionError, DeviceError) as error:
            return printable(str(error), 2)
    return ""


def _right(artifact: Artifact, size: Size, device: str, seed: int) -> None:
    """AssertionError if the GPU's result is wrong: speed counts for a product alone."""
    A, B, C = utils.prepare_data(*size, seed=seed, device=device)
    result = utils.compile_and_run(artifact, A, B, C, device=device)
    A, B, _ = utils.prepare_data(*size, seed=seed, device=device)
    utils.verify(result, A, B)
