"""Digests of what runs leave: memory, findings, verdict. `python -m digests GROUP=COUNT..` prints them.

test_same_results.py compares what processes print whose environments differ in all that must not matter.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator

import numpy as np

from research.chip.replay import KEPT, load_caught
from research.foreign.cases import load_cases
from research.truth.generate import correct_program, program_of
from research.truth.kernels import kernel_of
from research.truth.paths import of_kernel, of_program

ORDERS = ("program", "adverse", 3)
LARGEST = 4096  # bytes of the text of a kernel of PyTorch's that is run here


def digest(result, arrays: list[np.ndarray]) -> str:
    """Of all that a user can see of a run but the seconds."""
    stats = {name: value for name, value in result.stats.items() if name != "seconds"}
    seen = (result.verdict, result.findings, stats, result.printed, result.notes)
    whole = hashlib.sha256(repr(seen).encode())
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:16]


def programs(count: int) -> Iterator[tuple[str, str]]:
    """Synchronisation programs, right ones and such with mistakes; every mistake has findings."""
    for make in (correct_program, program_of):
        for seed in range(count):
            yield from _paths(f"{make.__name__} {seed}", of_program(make(seed).number()))


def kernels(count: int) -> Iterator[tuple[str, str]]:
    """Random kernels with divergence, loops, copies."""
    for seed in range(count):
        yield from _paths(f"kernel_of {seed}", of_kernel(kernel_of(seed)), jobs=(1, 2))


def _paths(name: str, made, jobs: tuple[int, ...] = (1,)) -> Iterator[tuple[str, str]]:
    module, shape, arrays, maps = made
    for order in ORDERS:
        for processes in jobs:
            given = list(arrays())
            args = [*given, *maps(given[0])]
            result = module.launch("k", **shape, args=args, order=order, jobs=processes)
            yield f"{name} {order} {processes}", digest(result, given)


def torch(count: int) -> Iterator[tuple[str, str]]:
    """What PyTorch's compiler wrote: short kernels."""
    small = [one for one in load_caught(KEPT) if len(one.ptx) < LARGEST]
    for one in small[:count]:
        yield f"torch {one.name}", digest(*one.launch("adverse"))


def foreign(count: int) -> Iterator[tuple[str, str]]:
    """What other compilers wrote, the short ones first."""
    for case in sorted(load_cases(), key=lambda case: len(case.ptx))[:count]:
        result = case.run("adverse")
        yield f"foreign {case.name}", digest(result, [v for v in case.values.values() if np.ndim(v)])


GROUPS = {group.__name__: group for group in (programs, kernels, torch, foreign)}


def main(asked: list[str]) -> None:
    """asked: `programs=40` and the like."""
    for group, _, count in (one.partition("=") for one in asked):
        for name, value in GROUPS[group](int(count)):
            print(f"{name}: {value}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
