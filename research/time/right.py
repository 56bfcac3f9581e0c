"""Checks on ptxsim that saved kernels compute what they should: `python -m research.time.right SET ..`.

For sets made at small sizes (`python -m research.time.by_triton OUT small`, `public_set.py small OUT
PYTHON`): every kernel runs under both orders with all checks, and its results
are compared with numpy. The start of its name selects the reference. Exit code 1 if one is wrong, is not
modelled, or has an `error`. --out FILE keeps the correct ones in one set without cubins: small-4 and small-5
of kernels.tar.xz are those that the tests run.
"""

from __future__ import annotations

import argparse
import functools
import re
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np

from research.time import references, references_fifth
from research.time.run import SAVED, Saved, load, save
from tirxlab.artifact import Artifact, ScalarParam
from tirxlab.devices import sim

REFERENCES = references.REFERENCES | references_fifth.REFERENCES
ORDERS = ("program", "adverse")
CLOSE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-4}  # relative to the largest number of a result
CLOSE |= {"int8": 8e-3, "int32": 0}
CLOSE_TF32 = 4e-3


@functools.cache
def small(number: int) -> dict[str, Saved]:
    """The small kernels of a round that the tests run, by name; reading them takes a second."""
    return {saved.name: saved for saved in load(SAVED / f"small-{number}")}


def kind_of(name: str) -> str:
    """`split_k_1x640x896_64x128` -> `split_k`"""
    return re.match(r"([a-z_0-9]*?[a-z])_\d+(x|_|$)", name)[1]


def inputs(artifact: Artifact) -> dict[str, np.ndarray]:
    """The same arrays every time: normal numbers, small integers, zeros for arrays that are only written."""
    made = {}
    for b in artifact.buffers:
        random = np.random.default_rng(sum(b.name.encode()))
        dtype = np.dtype(getattr(ml_dtypes, b.dtype, None) or b.dtype)
        if b.role != "in":
            made[b.name] = np.zeros(b.shape, dtype)
        elif np.issubdtype(dtype, np.integer):
            made[b.name] = random.integers(-8, 8, b.shape).astype(dtype)
        else:
            made[b.name] = random.standard_normal(b.shape, dtype=np.float32).astype(dtype)
    return made


def wrong(saved: Saved, order: str) -> str:
    """What is wrong with a kernel's result; "" if nothing is."""
    arrays = inputs(saved.artifact)
    scalars = {p.name: p.value for p in saved.artifact.params if isinstance(p, ScalarParam)}
    known = {name: array.copy() for name, array in arrays.items()} | scalars
    run = sim.run(saved.artifact, arrays, order=order)
    for finding in run.findings:
        if finding.severity in ("error", "incomplete"):
            return f"{finding.kind}: {finding.message}"
    kind = kind_of(saved.name)
    for name, expected in REFERENCES[kind](known).items():
        got, expected = arrays[name].astype(np.float64), np.asarray(expected, np.float64)
        tf32 = kind == "scaled" and "float32" in saved.name
        limit = CLOSE_TF32 if tf32 else CLOSE[str(arrays[name].dtype)]
        off = np.abs(got - expected.reshape(got.shape))
        if not off.max() <= limit * np.abs(expected).max():
            return f"{name}: off by {off.max():.3g} where numbers go up to {np.abs(expected).max():.3g}"
    return ""


def keep(kernels: list[Saved], out: Path) -> None:
    """Saves a set of the kernels' PTX and launches."""
    save(out, [replace(saved, artifact=replace(saved.artifact, cubin=b"")) for saved in kernels])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    kernels = [saved for path in given.sets for saved in load(path)]
    right = []
    for saved in kernels:
        said = {order: wrong(saved, order) for order in ORDERS}
        right += [saved] * (not any(said.values()))
        print(f"{saved.name:60} {said if any(said.values()) else 'right'}", flush=True)
    if given.out:
        keep(right, given.out)
    return 0 if len(right) == len(kernels) else 1


if __name__ == "__main__":
    raise SystemExit(main())
