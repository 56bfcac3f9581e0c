"""Results of fuzz.py: `python -m research.chip.fuzz_record COMMAND ..`

        keep DIR FILE.npz     the fixture of test_chip_fuzz.py: digests of results that must agree to the bit
        check DIR|FILE.npz    prints where ptxsim's results differ; needs no GPU

For a folder, `check` prints the chip's values too.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import numpy as np

import ptxsim
from research.chip import digests
from research.chip.fuzz import LANES, PER_KERNEL, kernels, operands, results_of, step_of
from research.chip.tolerance import agree, fault, tolerance


def recorded(folder: Path) -> dict[str, np.ndarray]:
    """Steps and results; `inputs` shows whether operands are still generated in the same way."""
    names = np.array((folder / "steps.txt").read_text().split("\n"))
    inputs = np.array(zlib.crc32(np.load(folder / "sources.npy").tobytes()))
    return {"names": names, "inputs": inputs, "results": np.load(folder / "results.npy")}


def keep(folder: Path, file: Path) -> None:
    """The fixture: digests instead of the results that must agree to the bit."""
    record = recorded(folder)
    exact, results = np.array(_exact(record["names"].tolist())), record.pop("results")
    np.savez_compressed(file, **record, results=results[~exact], digests=digests.of(results[exact]))


def _exact(names: list[str]) -> list[bool]:
    """For every row of results, whether it must agree to the bit."""
    return [not any(tolerance(name)) and not fault(name) for _, name, _ in results_of(names)]


def simulate(names: list[str], sources: np.ndarray) -> np.ndarray:
    """The results of these steps on ptxsim."""
    module, results = ptxsim.load(kernels(names)), np.zeros((len(results_of(names)), LANES), np.uint64)
    for i in range(-(-len(names) // PER_KERNEL)):
        module.launch(f"k{i}", block=LANES, args=[sources, results], checks=False, jobs=1)
    return results


def compare(record, start: int = 0, stop: int | None = None) -> list[str]:
    """The differences between ptxsim and the chip in steps start .. stop of a record, a line each."""
    names = record["names"].tolist()
    sources, rows = operands(names), [0, 0]
    for name in names[:start]:
        rows = [rows[0] + len(step_of(name).sources), rows[1] + len(step_of(name).results)]
    if zlib.crc32(sources.tobytes()) != int(record["inputs"]):
        return ["operands are made otherwise than for the recording: record again"]
    chosen = names[start:stop]
    ours, chip = simulate(chosen, sources[rows[0] :]), _of_chip(record)[rows[1] :]
    differing = (
        (name, kind, _difference(name, kind, chip[row], ours[row]))
        for row, (_, name, kind) in enumerate(results_of(chosen))
    )
    return [f"{name} ({kind}), {told}" for name, kind, told in differing if told]


def _of_chip(record) -> list[np.ndarray]:
    """Every row of the chip's results: values, or their digests (uint8)."""
    if "digests" not in record:
        return list(record["results"])
    values, kept = iter(record["results"]), iter(record["digests"])
    return [next(kept if exact else values) for exact in _exact(record["names"].tolist())]


def _difference(name: str, kind: str, chip: np.ndarray, ours: np.ndarray) -> str:
    if chip.dtype == np.uint8:
        return digests.difference(chip, ours)
    good = agree(name, kind, chip, ours)
    if good.all() or fault(name):
        return ""
    lane = int(np.flatnonzero(~good)[0])
    pair = f"chip {int(chip[lane]):#x}, ptxsim {int(ours[lane]):#x}"
    return f"{(~good).sum()} lanes, first {lane}: {pair}"


def check(path: Path) -> None:
    """Prints each step with a result that differs."""
    record = recorded(path) if path.is_dir() else np.load(path)
    found = compare(record)
    print("\n".join([*found, f"{len(record['names'])} steps, {len(found)} results differ"]))


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    {"keep": keep, "check": check}[command](*map(Path, paths))
