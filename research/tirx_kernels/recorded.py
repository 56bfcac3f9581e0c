"""A recorded launch of a library kernel: PTX, shape, arguments and memory as they were before it.

`save(folder, ..)` writes NAME.ptx, NAME.json and NAME.npz; `Recorded.load` needs neither TVM nor the library.
`run_one.py` records the first launch of a program into the folder that TIRX_RECORD names, instead of running
it. Addresses in arguments, tensor maps and structs stay valid: arrays are placed at their old addresses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes  # noqa: F401  (teaches numpy "bfloat16" and the 8-bit floats)
import numpy as np

import ptxsim

_FIELDS = ("box", "swizzle", "dims", "strides", "element_strides", "fill", "byte_offset", "packed")


def save(folder: Path, kernel, args: list, shape: dict, storages: dict) -> Path:
    """Saves a launch; storages: address -> (bytes, name). Returns the JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob(f"{kernel.name}-*.json")))
    path = folder / f"{kernel.name}-{number}.json"
    spec = {"kernel": kernel.name, **shape, "args": [_plain(arg, storages) for arg in args]}
    spec["memory"] = [{"at": host, "name": name} for host, (_, name) in storages.items()]
    path.with_suffix(".ptx").write_text(kernel.ptx.read_text())
    np.savez_compressed(path.with_suffix(".npz"), *[array for array, _ in storages.values()])
    path.write_text(json.dumps(spec, indent=1))
    return path


def _plain(arg, storages: dict):
    if not isinstance(arg, ptxsim.TensorMap):
        return arg
    hosts = {array.ctypes.data: host for host, (array, _) in storages.items()}
    values = {name: getattr(arg, name) for name in _FIELDS}
    values["base"] = hosts[arg.array.ctypes.data]
    return values | {"dtype": str(np.dtype(arg.dtype)), "name": arg.name}


@dataclass
class Recorded:
    name: str
    ptx: str
    spec: dict
    arrays: list[np.ndarray]  # bytes of each storage

    @classmethod
    def load(cls, path: Path) -> Recorded:
        """The launch saved in a JSON file."""
        with np.load(path.with_suffix(".npz")) as kept:
            arrays = [kept[f"arr_{i}"] for i in range(len(kept.files))]
        return cls(path.stem, path.with_suffix(".ptx").read_text(), json.loads(path.read_text()), arrays)

    def run(self, ptx: str | None = None, **options) -> tuple[ptxsim.Result, list[np.ndarray]]:
        """Runs the launch, or other PTX in its place; returns the result and
        the final bytes of each storage.
        """
        arrays = [array.copy() for array in self.arrays]
        memory = {entry["at"]: array for entry, array in zip(self.spec["memory"], arrays, strict=True)}
        result = ptxsim.load(self.ptx if ptx is None else ptx).launch(
            self.spec["kernel"],
            **{key: tuple(self.spec[key]) for key in ("grid", "block", "cluster")},
            shared_bytes=self.spec["shared"],
            args=[self._argument(arg, memory) for arg in self.spec["args"]],
            memory=memory,
            **options,
        )
        return result, arrays

    @staticmethod
    def _argument(arg, memory: dict):
        if not isinstance(arg, dict):
            return arg
        lists = {key: tuple(arg[key]) for key in ("box", "dims", "strides", "element_strides")}
        alone = {key: arg[key] for key in ("swizzle", "fill", "byte_offset", "packed", "name")}
        return ptxsim.TensorMap(memory[arg["base"]], **lists, **alone, dtype=np.dtype(arg["dtype"]))
