"""Runs the launches of a TVM host function on ptxsim, in the host memory of its tensors.

Simulated addresses are host addresses, so pointers in structs and in tensors are valid. The memory of a
launch is every torch storage that the program was given or has taken the address of.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes  # noqa: F401  (teaches numpy "bfloat16" and the 8-bit floats)
import numpy as np
from recorded import save

import ptxsim
from ptxsim.launch import Launch
from ptxsim.launch_config import LaunchConfig, RunConfig
from ptxsim.units.tensormap import encoded

SWIZZLES = {0: 0, 1: 32, 2: 64, 3: 128, 4: "128_atom32", 6: "128_atom64"}  # by CUtensorMapSwizzle
PLAIN_TYPES = range(14)  # of CUtensorMapDataType; 13 is two 4-bit elements a byte
_NAMES = "uint8 uint16 uint32 int32 uint64 int64 float16 float32 float64 bfloat16 float32 float32 float32"
TYPES = [*_NAMES.split(), "float4_e2m1fn"]  # by CUtensorMapDataType
PACKED = {"float4_e2m1fn": 2, "float4_e2m1fnx2": 1}  # elements in a byte of the type that TVM names


class Kept(Exception):
    """Raised when the launch was recorded instead of run."""


@dataclass
class Run:
    """One launch."""

    kernel: str
    grid: tuple
    block: tuple
    cluster: tuple
    verdict: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of this process and of its child processes
    instructions: int = 0
    findings: list[dict] = field(default_factory=list)
    problem: str = ""


@dataclass
class Simulator:
    """The target of TVM's hooks. `runs` grows by one with each launch."""

    checks: bool = True
    dry: bool = False  # run nothing
    order: str | int = "program"
    record: Path | None = None  # folder into which the first launch is recorded (recorded.py) instead of run
    waiting: list[tuple] | None = None  # if it is a list, (kernel, launch) is appended to it instead of run
    runs: list[Run] = field(default_factory=list)
    after: Callable[[], None] | None = None  # called when a launch has ended
    storages: dict[int, tuple[np.ndarray, str]] = field(default_factory=dict)
    maps: dict[int, ptxsim.TensorMap] = field(default_factory=dict)
    modules: dict[str, object] = field(default_factory=dict)

    def note(self, tensor, name: str = "") -> None:
        """Makes the storage of a torch tensor part of global memory."""
        storage = tensor.untyped_storage()
        host, size = storage.data_ptr(), storage.nbytes()
        if not size:
            return
        known = self.storages.get(host)
        if known is not None and known[0].nbytes >= size:
            return
        view = np.frombuffer((ctypes.c_uint8 * size).from_address(host), np.uint8)
        label = name or f"tensor {len(self.storages)} {tuple(tensor.shape)} {str(tensor.dtype)[6:]}"
        self.storages[host] = (view, label)
        self._alive = [*getattr(self, "_alive", []), storage]

    # ---- hooks ----

    def encode_tiled(self, *values) -> None:
        """cuTensorMapEncodeTiled: (map, type, rank, base, dims, strides, box, element strides, ..)."""
        if self.dry:
            return
        where, kind, rank, base, *rest = values
        self.maps[_address(where)] = self._tiled(str(kind), rank, _address(base), [int(x) for x in rest])

    def opaque(self, kind: int, rank: int, base: int, rest: list[int]) -> list[int]:
        """The same from the values of the driver's call: the 16 words of the map."""
        if self.dry:
            return [0] * 16
        made = self._tiled(TYPES[kind], rank, base, rest)
        return np.frombuffer(encoded(made, base - made.byte_offset), np.uint64).tolist()

    def _tiled(self, kind: str, rank: int, base: int, rest: list[int]) -> ptxsim.TensorMap:
        dims, rest = rest[:rank], rest[rank:]
        strides, rest = rest[: rank - 1], rest[rank - 1 :]
        box, steps, rest = rest[:rank], rest[rank : 2 * rank], rest[2 * rank :]
        interleave, swizzle, _, fill, *form = rest
        if form and form[0] not in PLAIN_TYPES:
            raise ValueError(f"tensor maps of type {form[0]} (padded 4- or 6-bit elements) are not modelled")
        if interleave:
            raise ValueError("interleaved tensor maps are not modelled")
        per = PACKED.get(kind)
        if per == 2:
            dims[0], box[0] = dims[0] // 2, box[0] // 2
        host, (array, name) = self._holder(base)
        return ptxsim.TensorMap(
            array,
            box=tuple(box),
            swizzle=SWIZZLES[swizzle],
            dims=tuple(dims),
            strides=tuple(strides),
            element_strides=tuple(steps),
            fill="nan" if fill else "zero",
            byte_offset=base - host,
            dtype=np.dtype("uint8" if per else kind),
            packed=per or 1,
            name=name,
        )

    def _holder(self, address: int) -> tuple[int, tuple[np.ndarray, str]]:
        for host, entry in self.storages.items():
            if host <= address < host + entry[0].nbytes:
                return host, entry
        raise ValueError(f"address 0x{address:x} lies in no tensor that the program was given")

    def launch(self, kernel, values: tuple) -> None:
        """A kernel launch: its arguments, then the values that `kernel.launch` names."""
        names = [n for n in kernel.launch if not n.startswith("tirx.use_") or "dyn_shared" in n]
        count = len(values) - len(names)
        shape = dict(zip(names, (int(v) for v in values[count:]), strict=True))
        grid, block, cluster = (
            tuple(shape.get(f"{word}.{axis}", 1) for axis in "xyz")
            for word in ("blockIdx", "threadIdx", "clusterCtaIdx")
        )
        shared = shape.get("tirx.use_dyn_shared_memory", 0)
        if self.dry:
            return
        if self.waiting is not None:
            prepared = self._prepared(kernel, values[:count], grid, block, cluster, shared)
            self.waiting.append((kernel, prepared))
            return
        run = Run(kernel.name, grid, block, cluster)
        self.runs.append(run)
        start, cpu = time.perf_counter(), _cpu()
        try:
            result = self._simulate(kernel, values[:count], grid, block, cluster, shared)
        except Exception as error:
            run.problem = f"{type(error).__name__}: {error}"[:500]
            raise
        run.seconds = round(time.perf_counter() - start, 2)
        run.cpu_seconds = round(_cpu() - cpu, 2)
        run.verdict, run.instructions = result.verdict, result.stats.get("warp_instructions", 0)
        run.findings = [
            {"kind": f.kind, "severity": f.severity, "message": f.message, "count": getattr(f, "count", 1)}
            for f in result.findings
        ]
        if self.after:
            self.after()

    def _simulate(self, *launch):
        prepared = self._prepared(*launch)
        return prepared.run(RunConfig(self.checks, self.order))

    def _prepared(self, kernel, values, grid, block, cluster, shared: int) -> Launch:
        module = self.modules.get(kernel.digest)
        if module is None:
            module = self.modules[kernel.digest] = ptxsim.load(kernel.ptx.read_text())
        program = module.programs[kernel.name]
        args = [self._argument(v, p) for v, p in zip(values, program.function.params, strict=True)]
        if self.record is not None:
            shape = {"grid": grid, "block": block, "cluster": cluster, "shared": shared}
            raise Kept(str(save(self.record, kernel, args, shape, self.storages)))
        launch = Launch(module, program, LaunchConfig.of(grid, block, cluster, shared))
        launch.bind(args, {host: array for host, (array, _) in self.storages.items()})
        for row, (host, _, _, _) in enumerate(launch.memory.rows):
            if host in self.storages:
                launch.memory.names[row] = self.storages[host][1]
        return launch

    def _argument(self, value, param):
        if param.size >= 128:
            known = self.maps.get(_address(value))  # otherwise the 128 bytes that the driver's call encoded
            return known or [(0, ctypes.string_at(_address(value), param.size))]
        if isinstance(value, float):
            return value
        return _address(value)


def _cpu() -> float:
    """CPU seconds so far, with those of child processes that have ended."""
    return sum(os.times()[:4])


def _address(value) -> int:
    if isinstance(value, bool | int):
        return int(value)
    return int(getattr(value, "value", value) or 0)
