"""Kernels of other compilers: the PTX in kernels.tar.xz, each kernel's launch, and what it computes.

index.json of the archive: name -> {compiler, entry, grid, block, cluster, shared, args, computes}. An
argument is {"array": name, dtype, shape, fill}, a pointer to an array; {"map": name, dtype, shape, fill, box,
swizzle}, a tensor map of one; {"scalar": name, dtype, value}; or {"bytes": hex}, a raw parameter.
`computes` names a function of reference.py.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import ml_dtypes
import numpy as np

import ptxsim
from research import store
from research.foreign.reference import REFERENCES
from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam, TensorMapParam

ARCHIVE = Path(__file__).parent / "kernels.tar.xz"
NAME = 60  # characters of a kernel's name that an artifact keeps: Numba's have hundreds


@dataclass
class Case:
    name: str
    ptx: str
    launch: dict  # one value of index.json
    values: dict = field(default_factory=dict)  # arrays by name, as numpy arrays; scalars

    @cached_property
    def module(self) -> ptxsim.LoadedModule:
        return ptxsim.load(self.ptx)

    def run(self, order: str | int = "program", checks: bool = True) -> ptxsim.Result:
        """Runs on fresh inputs; `values` then holds the inputs and the kernel's outputs."""
        spec = self.launch
        self.values = {}
        args = [self._argument(argument) for argument in spec["args"]]
        return self.module.launch(
            spec["entry"],
            **{shape: tuple(spec[shape]) for shape in ("grid", "block", "cluster")},
            shared_bytes=spec["shared"],
            args=args,
            arg_names=[a.get("array") or a.get("map") or a.get("scalar") or "" for a in spec["args"]],
            order=order,
            checks=checks,
            jobs=1,
        )

    def as_artifact(self) -> tuple[Artifact, tuple[np.ndarray, ...]]:
        """(The kernel as the course saves one, its arrays); KeyError if a parameter is raw bytes."""
        params: list[TensorMapParam | BufferParam | ScalarParam] = []
        start: dict[str, np.ndarray] = {}
        for argument in self.launch["args"]:
            name = argument.get("array") or argument.get("map")
            if name is None:
                params.append(ScalarParam(argument["scalar"] or "-", argument["dtype"], argument["value"]))
                continue
            start.setdefault(name, _filled(argument))
            params.append(_map_param(argument, start[name]) if "map" in argument else BufferParam(name))
        buffers = [BufferInfo(name, array.shape, str(array.dtype), "inout") for name, array in start.items()]
        shape = {part: tuple(self.launch[part]) for part in ("grid", "block", "cluster")}
        (target,) = re.findall(r"^\.target (\w+)", self.ptx, re.MULTILINE)
        entry = self.launch["entry"][:NAME]
        made = Artifact(
            target,
            entry,
            "",
            self.ptx.replace(self.launch["entry"], entry),
            b"",
            **shape,
            shared_bytes=self.launch["shared"],
            params=tuple(params),
            buffers=tuple(buffers),
        )
        return made, tuple(start.values())

    def mismatch(self) -> str:
        """How the outputs of a run differ from numpy; "" if they do not."""
        fresh = {
            a["array" if "array" in a else "map"]: _filled(a) for a in self.launch["args"] if "shape" in a
        }
        scalars = {k: v for k, v in self.values.items() if not isinstance(v, np.ndarray)}
        for name, (expected, rtol, atol) in REFERENCES[self.launch["computes"]](fresh | scalars).items():
            got = self.values[name].astype(np.float64)
            expected = np.asarray(expected).reshape(got.shape).astype(np.float64)
            wrong = ~np.isclose(got, expected, rtol, atol)
            if wrong.any():
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                return f"{name}: {wrong.sum()} differ; {name}{list(at)} = {got[at]}, not {expected[at]}"
        return ""

    def _argument(self, argument: dict):
        if "bytes" in argument:
            return bytes.fromhex(argument["bytes"])
        if "scalar" in argument:
            value = np.dtype(argument["dtype"]).type(argument["value"])
            self.values[argument["scalar"]] = value
            return value
        data = _filled(argument)
        self.values[argument.get("array") or argument["map"]] = data
        if "array" in argument:
            return data
        return _map(argument, data)


def _filled(argument: dict) -> np.ndarray:
    """The array of an argument, the same every time: its name is the seed."""
    name, fill = argument.get("array") or argument["map"], argument["fill"]
    shape, dtype = tuple(argument["shape"]), _dtype(argument["dtype"])
    rng = np.random.default_rng(sum(name.encode()))
    if fill == "normal" and np.issubdtype(dtype, np.integer):
        return rng.integers(-8, 8, shape).astype(dtype)
    if fill == "normal":
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype)
    if fill.startswith("below "):
        return rng.integers(0, int(fill.split()[1]), shape).astype(dtype)
    return np.zeros(shape, dtype)


def _map(argument: dict, array: np.ndarray) -> ptxsim.TensorMap:
    return ptxsim.TensorMap(array, box=tuple(argument["box"]), swizzle=argument["swizzle"])


def _map_param(argument: dict, array: np.ndarray) -> TensorMapParam:
    made = _map(argument, array)
    shape = made.dims, made.strides, made.box, made.element_strides
    return TensorMapParam(argument["map"], 0, str(array.dtype), *shape, swizzle=argument["swizzle"])


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@functools.cache
def load_cases(source: Path = ARCHIVE) -> tuple[Case, ...]:
    """All cases of an archive, or of a folder with the same files."""
    if source.is_dir():
        index = json.loads((source / "index.json").read_text())
        texts = {name: (source / f"{name}.ptx").read_text() for name in index}
    else:
        files = store.load(source)
        index = json.loads(files["index.json"])
        texts = {name: files[f"{name}.ptx"].decode() for name in index}
    return tuple(Case(name, texts[name], launch) for name, launch in index.items())
