"""Runs the kernels that harvest.py saved, and compares: `python -m research.chip.replay CAUGHT.. [--only
NAME]`.

A kernel passes if its verdict is not an error and all bytes that it left agree with the chip's: integers bit
for bit, floats within what another summation order can change. Exit code 1 if one does not pass. `--keep
OUT.tar.xz` writes the few that the tests run.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import ptxsim
from research import store
from research.chip.compact import blocks_that_differ, drawn, numpy_type, sampled

TOLERANCE = {"float64": 1e-9, "float32": 2e-4, "float16": 4e-3, "bfloat16": 3e-2}  # relative
SCALARS = {"i1": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u64": "uint64"}
SCALARS |= {"fp32": "float32", "fp64": "float64"}
BLACKWELL = "sm_100a"
ORDERS = ("program", "adverse")
WORKSPACE = "ws_ptr"  # what CTAs exchange there depends on which came first
KEPT = Path(__file__).with_name("torch.tar.xz")  # what the tests run
SMALL = 4_000  # bytes of compressed data, up to which --keep takes every kernel
LARGE = 50_000  # bytes, above which only these are kept
LARGE_KEPT = (
    "triton_tem_fused_flex_attention_0-1",
    "triton_mm_persistent_tma-3",
    "triton_tem_fused__scaled_mm_0-1",
    "triton_tem_fused__int_mm_0-1",
)
INSTRUCTION = re.compile(rb"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]+)\s", re.MULTILINE)


@dataclass(frozen=True)
class Caught:
    """One launch on the chip. An argument of `spec` is a scalar or the index of a storage; do not modify."""

    name: str
    spec: dict
    ptx: str
    before: tuple[np.ndarray, ...]  # bytes of each storage
    after: tuple[np.ndarray, ...]  # bytes that the chip left, all or sampled, or checksums (uint32)

    @property
    def pointers(self) -> list[dict]:
        return [one for one in self.spec["args"] if "array" in one]

    def dtype_of(self, number: int) -> np.dtype:
        """The type of a storage, as the first pointer to it has it."""
        return numpy_type(next(one["dtype"] for one in self.pointers if one["array"] == number))

    def launch(self, order: str | int) -> tuple[ptxsim.Result, list[np.ndarray]]:
        """Runs the launch on ptxsim; returns the result, and the storages that it left."""
        left = [data.view(self.dtype_of(number)).copy() for number, data in enumerate(self.before)]
        module = ptxsim.load(self.ptx)
        args = [self._argument(one, left) for one in self.spec["args"]]
        scratch = len(module.module.functions[self.spec["entry"]].params) - len(args)
        result = module.launch(
            self.spec["entry"],
            **{shape: tuple(self.spec[shape]) for shape in ("grid", "block", "cluster")},
            shared_bytes=self.spec["shared"],
            args=args + self._own(scratch),
            arg_names=[one["name"] for one in self.spec["args"]],
            order=order,
            jobs=1,
        )
        return result, left

    def _own(self, count: int) -> list:
        """Triton's own pointers at the end: to memory for each CTA if the kernel needs some, else null."""
        ctas = math.prod(self.spec["grid"])
        needed = self.spec.get("scratch", 0) * ctas
        first = np.zeros(needed, np.uint8) if needed else np.uint64(0)
        return [first, *[np.uint64(0)] * (count - 1)][:count]

    def _argument(self, one: dict, storages: list[np.ndarray]):
        if "scalar" in one:
            return np.dtype(SCALARS[one["type"]]).type(one["scalar"])
        if one["offset"]:
            raise ValueError(f"{one['name']} points into the middle of a storage: not modelled here")
        return storages[one["array"]]

    def check(self, order: str | int = "program") -> str:
        """What is wrong; "" if nothing is."""
        result, left = self.launch(order)
        found = [f"{f.severity} {f.kind}: {f.message}" for f in result.findings if f.severity == "error"]
        found += ["incomplete"] * (result.verdict == "incomplete")
        spared = {one["array"] for one in self.pointers if one["name"].startswith(WORKSPACE)}
        for number, data in enumerate(left):
            if number not in spared:
                found.append(self.differs(number, data))
        return "; ".join(filter(None, found))

    def differs(self, number: int, ours: np.ndarray) -> str:
        """How ptxsim's bytes of a storage differ from the chip's; "" if they do not."""
        chip = self.after[number]
        if chip.dtype == np.uint32:
            return blocks_that_differ(chip, ours)
        return differs(chip.view(ours.dtype), ours if chip.nbytes == ours.nbytes else sampled(ours))


def differs(chip: np.ndarray, ours: np.ndarray) -> str:
    """How two arrays of one type differ; "" if they do not."""
    kind = f"u{chip.itemsize}"
    wrong, name = chip.view(kind) != ours.view(kind), chip.dtype.name
    if wrong.any() and name in TOLERANCE:
        one, other, part = chip.astype("f8"), ours.astype("f8"), TOLERANCE[name]
        usual = np.median(np.abs(one[np.isfinite(one)])) if np.isfinite(one).any() else 0
        wrong = ~np.isclose(other, one, part, part * max(usual, 1e-6), equal_nan=True)
    if not wrong.any():
        return ""
    at = int(np.argmax(wrong))
    return f"{int(wrong.sum())} of {wrong.size} {name} differ, at {at}: {ours[at]}, chip {chip[at]}"


def load_caught(archive: Path, only: str = "") -> list[Caught]:
    """All launches of an archive whose name contains `only`."""
    made = []
    files = files_of(archive)
    for name, spec in json.loads(files["index.json"])["kernels"].items():
        if only in name:
            data = dict(np.load(io.BytesIO(files[f"{name}.npz"])))
            data |= {key: drawn(name, int(key[2:]), *rule) for key, rule in spec.get("drawn", {}).items()}
            before = tuple(data[f"in{n}"] for n in range(sum(key.startswith("in") for key in data)))
            after = tuple(data.get(f"sums{n}", data.get(f"out{n}", old)) for n, old in enumerate(before))
            for array in (*before, *after):
                array.flags.writeable = False
            made.append(Caught(name, spec, files[f"{name}.ptx"].decode(), before, after))
            if other := spec.get("blackwell"):
                ptx = files[f"{name}.{BLACKWELL}.ptx"].decode()
                made.append(Caught(f"{name}.{BLACKWELL}", spec | other, ptx, before, after))
    return made


def keep(archives: list[Path], out: Path) -> int:
    """Writes into one archive the small kernels of all archives and, smallest first, those with an
    instruction that no smaller one has; returns their number.
    """
    index: dict = {"kernels": {}}
    new: dict[str, bytes] = {}
    known: set[bytes] = set()
    for size, name, files, note in sorted(_caught(archives), key=lambda one: one[:2]):
        instructions = {
            one for part in files if part.endswith(".ptx") for one in INSTRUCTION.findall(files[part])
        }
        some_new = size <= LARGE and bool(instructions - known)
        if size <= SMALL or some_new or name in LARGE_KEPT:
            known |= instructions
            index["versions"] = note["versions"]
            index["kernels"][name] = note["kernels"][name]
            new |= _blank(files, note["kernels"][name])
    store.save(out, new | {"index.json": json.dumps(index).encode()})
    return len(index["kernels"])


def _blank(files: dict[str, bytes], spec: dict) -> dict[str, bytes]:
    """The files of a kernel, with zeros for the initial contents of its workspace."""
    blank = {f"in{one['array']}" for one in spec["args"] if one["name"].startswith(WORKSPACE)}
    if not blank:
        return files
    data = np.load(io.BytesIO(files[f"{spec['name']}.npz"]))
    made = io.BytesIO()
    np.savez(made, **{key: np.zeros_like(data[key]) if key in blank else data[key] for key in data})
    return files | {f"{spec['name']}.npz": made.getvalue()}


def _caught(archives: list[Path]) -> Iterator[tuple[int, str, dict[str, bytes], dict]]:
    """Data size, name, files and index of each kernel; a name in several archives is taken from the first."""
    seen: set[str] = set()
    for archive in archives:
        old = files_of(archive)
        note = json.loads(old["index.json"])
        for name, spec in note["kernels"].items():
            if name not in seen:
                seen.add(name)
                more = (f"{name}.{BLACKWELL}.ptx",) if spec.get("blackwell") else ()
                files = {part: old[part] for part in (f"{name}.npz", f"{name}.ptx", *more)}
                yield len(zlib.compress(files[f"{name}.npz"])), name, files, note


def files_of(archive: Path) -> dict[str, bytes]:
    """The files of a zip written by harvest.py, or of a store."""
    if archive.suffix != ".zip":
        return store.load(archive)
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def checked(one: Caught, order: str) -> str:
    """`check`, with a simulator fault reported as the kernel's result."""
    try:
        return one.check(order)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archives", type=Path, nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.keep:
        print(f"{keep(given.archives, given.keep)} kernels in {given.keep}")
        return 0
    wrong, work = 0, [one for archive in given.archives for one in load_caught(archive, given.only)]
    with ProcessPoolExecutor(given.jobs) as pool:
        futures = {pool.submit(partial(checked, one, order)): one for one in work for order in ORDERS}
        for future in as_completed(futures):
            if text := future.result():
                wrong += 1
                print(f"{futures[future].name} ({futures[future].spec['workload']}): {text}", flush=True)
    print(f"{2 * len(work) - wrong} of {2 * len(work)} runs of {len(work)} kernels are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
