"""The ten reference kernels are clean and right in whatever order asynchronous work completes."""

from __future__ import annotations

import pytest
from corpus import Bug, build_bug, run_bug, wrong_result

TWO_TILES = (256, 256, 192)  # steps 6-8 with two CTAs: two tiles each
SIZES = {
    1: (128, 128, 64), 2: (128, 128, 192), 3: (256, 128, 192), 4: (256, 128, 192), 5: (128, 128, 320),
    6: TWO_TILES, 7: TWO_TILES, 8: TWO_TILES, 9: (512, 256, 192), 10: (1024, 256, 192),
}  # fmt: skip
PERSISTENT = 6  # the first step with a scheduler
QUICK, SEEDS = 2, 20


def _reference(step: int) -> Bug:
    """The correct kernel of a step as a bug without edits."""
    ctas = 2 if step >= PERSISTENT else None
    return Bug(f"seeds-{step}", step, SIZES[step], (), "", "", "", ctas=ctas)


def _check(step: int, seeds: range) -> None:
    kernel = _reference(step)
    artifact = build_bug(kernel, mutated=False)
    for seed in seeds:
        run = run_bug(kernel, artifact, order=seed)
        assert run.verdict == "clean", (seed, [str(f) for f in run.findings])
        assert not wrong_result(kernel, run), seed


@pytest.mark.parametrize("step", SIZES)
def test_reference_is_clean_under_two_seeds(step):
    _check(step, range(1, QUICK + 1))


@pytest.mark.slow
@pytest.mark.parametrize("step", SIZES)
def test_reference_is_clean_under_all_seeds(step):
    _check(step, range(QUICK + 1, SEEDS + 1))
