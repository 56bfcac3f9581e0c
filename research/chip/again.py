"""Kernels that harvest.py caught, on a chip once more: `python -m research.chip.again ARCHIVE OUT NAME..`

Each is launched with inputs of few bits, which take a tenth of the room and show a wrong index as well:
every float or int8 that it only reads is one of four values. What it writes holds 0xFF before. OUT is ARCHIVE
with these kernels' arrays anew. Needs a GPU that runs the PTX, and cuda-bindings.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np

from research import store
from tirxlab.devices import driver

VALUES = np.array([-1.0, -0.5, 0.5, 2.0])
SCALES = {"int8": 2}  # of VALUES, where halves are no numbers
POISON = 0xFF


def few_bits(dtype: str, size: int, random: np.random.RandomState) -> np.ndarray:
    """`size` bytes of numbers of a dtype, drawn from VALUES."""
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    numbers = random.choice(VALUES * SCALES.get(dtype, 1), size // kind.itemsize)
    return numbers.astype(kind).view(np.uint8)


def inputs(spec: dict, data, random: np.random.RandomState) -> list[np.ndarray]:
    """The bytes of each storage before the launch; numbers that index or scale stay."""
    pointers = {one["array"]: one["dtype"] for one in spec["args"] if "array" in one}
    made = []
    for number, dtype in sorted(pointers.items()):
        old = data[f"in{number}"]
        if f"out{number}" in data:
            made.append(np.full_like(old, POISON))
        elif old.size > 64 and (dtype in SCALES or dtype.startswith(("float", "bfloat"))):
            made.append(few_bits(dtype, old.size, random))
        else:
            made.append(old)
    return made


class Memory:
    """Bytes of an array on the GPU."""

    def __init__(self, api, data: np.ndarray):
        self.api, self.data = api, np.ascontiguousarray(data)
        self.pointer = driver.call(api.cuMemAlloc, max(data.nbytes, 1))
        driver.call(api.cuMemcpyHtoD, self.pointer, self.data.ctypes.data, data.nbytes)

    def read(self) -> np.ndarray:
        back = np.empty_like(self.data)
        driver.call(self.api.cuMemcpyDtoH, back.ctypes.data, self.pointer, back.nbytes)
        return back


def launch(api, spec: dict, ptx: str, before: list[np.ndarray]) -> list[np.ndarray]:
    """The storages as the chip leaves them. Every argument is a pointer, Triton's own at the end, too."""
    module = driver.call(api.cuModuleLoadData, ptx.encode() + b"\0")
    function = driver.call(api.cuModuleGetFunction, module, spec["entry"].encode())
    shared = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.call(api.cuFuncSetAttribute, function, shared, spec["shared"])
    memory = [Memory(api, data) for data in before]
    own = re.findall(rf"\.param \.u64 .*{re.escape(spec['entry'])}_param_\d+", ptx)[len(spec["args"]) :]
    scratch = Memory(api, np.zeros(spec.get("scratch", 0) * int(np.prod(spec["grid"])), np.uint8))
    pointers = [int(memory[one["array"]].pointer) for one in spec["args"]]
    pointers += [int(scratch.pointer), *[0] * len(own)][: len(own)]
    given = tuple(pointers), (ctypes.c_void_p,) * len(pointers)
    driver.call(api.cuLaunchKernel, function, *spec["grid"], *spec["block"], spec["shared"], 0, given, 0)
    driver.call(api.cuCtxSynchronize)
    return [one.read() for one in memory]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    api, gpu = driver.api(), driver.use_device()
    files = store.load(given.archive)
    kernels = json.loads(files["index.json"])["kernels"]
    for seed, name in enumerate(given.names):
        spec, data = kernels[name], np.load(io.BytesIO(files[f"{name}.npz"]))
        before = inputs(spec, data, np.random.RandomState(seed))
        after = launch(api, spec, files[f"{name}.ptx"].decode(), before)
        arrays = {f"in{n}": array for n, array in enumerate(before)}
        arrays |= {f"out{n}": array for n, array in enumerate(after) if f"out{n}" in data}
        made = io.BytesIO()
        np.savez(made, **arrays)
        files[f"{name}.npz"] = made.getvalue()
        print(f"{name} on {gpu}")
    store.save(given.out, files)


if __name__ == "__main__":
    main()
