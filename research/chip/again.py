"""Runs kernels that harvest.py caught on a chip again: `python -m research.chip.again ARCHIVE OUT [NAME..]`

Each is launched with inputs that compact.py draws. A large array, or one that threads add to in no fixed
order, gets few distinct values, which still show a wrong index. An array that is only written holds 0xA5
before, or zeros if the kernel adds to it. OUT is ARCHIVE with new arrays for these kernels. Needs a GPU that
runs the PTX, and cuda-bindings.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import re
from pathlib import Path

import numpy as np

from research import store
from research.chip.compact import SCALES, drawn, numpy_type
from tirxlab.devices import driver

POISON = 0xA5
SMALL, LARGE = 64, 16_384  # bytes: up to SMALL, numbers scale and stay; above LARGE, they take few values
ADDS = re.compile(r"^\s*(?:@!?%\w+\s+)?(?:atom|red)\.", re.MULTILINE)


def kind_of(old: np.ndarray, summed: bool) -> str:
    """How replacement numbers are drawn; the order in which threads add numbers of few values changes
    nothing.
    """
    if summed or old.nbytes > LARGE:
        return "four values"
    numbers = old.astype("f8")
    if (numbers >= 0).all():
        return "positive"
    return "ascending" if (np.diff(numbers) >= 0).all() else "bell"


def inputs(spec: dict, ptx: str, data: dict) -> tuple[list[np.ndarray], dict[str, list]]:
    """The bytes of each storage before the launch, and which are drawn and how: {"in0": [dtype, bytes,
    kind]}. Integers that are used as indices keep their values.
    """
    made, rules, adds = [], {}, bool(ADDS.search(ptx))
    for number in range(sum(key.startswith("in") for key in data)):
        pointers = [one for one in spec["args"] if one.get("array") == number]
        old, dtype = data[f"in{number}"], pointers[0]["dtype"]
        written = f"out{number}" in data or all(one["name"].startswith("out_") for one in pointers)
        drawable = dtype in SCALES or dtype.startswith(("float", "bfloat"))
        if written and not any(one["name"].startswith(("in_", "ws_")) for one in pointers):
            old = np.full_like(old, 0 if adds else POISON)
        elif drawable and not written and old.size > SMALL:
            rules[f"in{number}"] = [dtype, old.size, kind_of(old.view(numpy_type(dtype)), adds)]
            old = drawn(spec["name"], number, *rules[f"in{number}"])
        made.append(old)
    return made, rules


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
    """The storages after the launch on the chip. Triton's own pointers follow the arguments."""
    module = driver.call(api.cuModuleLoadData, ptx.encode() + b"\0")
    function = driver.call(api.cuModuleGetFunction, module, spec["entry"].encode())
    shared = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.call(api.cuFuncSetAttribute, function, shared, spec["shared"])
    memory = [Memory(api, data) for data in before]
    own = re.findall(rf"\.param \.\w+ .*{re.escape(spec['entry'])}_param_\d+", ptx)[len(spec["args"]) :]
    scratch = Memory(api, np.zeros(spec.get("scratch", 0) * int(np.prod(spec["grid"])), np.uint8))
    values = [_value(one, memory) for one in spec["args"]] + [int(scratch.pointer), *[0] * len(own)][
        : len(own)
    ]
    kinds = [ctypes.c_int32 if one.get("type") == "i32" else ctypes.c_void_p for one in spec["args"]]
    given = tuple(values), tuple(kinds) + (ctypes.c_void_p,) * len(own)
    driver.call(api.cuLaunchKernel, function, *spec["grid"], *spec["block"], spec["shared"], 0, given, 0)
    driver.call(api.cuCtxSynchronize)
    return [one.read() for one in memory]


def _value(argument: dict, memory: list[Memory]) -> int:
    if argument.get("offset"):
        raise ValueError(f"{argument['name']} points into the middle of a storage: not modelled here")
    return argument["scalar"] if "scalar" in argument else int(memory[argument["array"]].pointer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="default: all")
    given = parser.parse_args()
    api, gpu = driver.api(), driver.use_device()
    files = store.load(given.archive)
    index = json.loads(files["index.json"])
    for name in given.names or index["kernels"]:
        spec, ptx = index["kernels"][name], files[f"{name}.ptx"].decode()
        data = dict(np.load(io.BytesIO(files[f"{name}.npz"])))
        before, rules = inputs(spec, ptx, data)
        after = launch(api, spec, ptx, before)
        arrays = {f"in{n}": array for n, array in enumerate(before) if f"in{n}" not in rules}
        arrays |= {f"out{n}": array for n, array in enumerate(after) if (array != before[n]).any()}
        made = io.BytesIO()
        np.savez(made, **arrays)
        files[f"{name}.npz"] = made.getvalue()
        spec["drawn"] = rules
        print(f"{name} on {gpu}")
    files["index.json"] = json.dumps(index).encode()
    store.save(given.out, files)


if __name__ == "__main__":
    main()
