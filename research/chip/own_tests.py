"""The launches of the simulator's own tests as a set for a GPU: does the chip leave the same bytes?

    python -m research.chip.own_tests SET [TESTS ..]    runs tests, keeps what they launch
    python -m research.chip.run SET                     on a GPU: compares bytes

Kept is each launch of PTX text that ends clean and whose arguments are arrays, tiled tensor maps and scalars.
At most 40 of a test function are kept, of 1 MB each, and none that uses module variables. PTX for a later
chip becomes sm_90a's; the driver refuses what sm_90a does not have.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import ptxsim
from ptxsim.launch import LoadedModule
from ptxsim.launch_config import extents
from research import store
from research.chip.case import save_set
from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam, TensorMapParam

MOST_BYTES = 1 << 20  # of a launch's arrays
ALIKE = 40  # launches kept of one test function
SCALARS = {"int32", "uint32", "int64", "uint64", "float32", "float64"}
PLAIN = {"grid", "block", "cluster", "shared_bytes", "args", "order", "jobs"}  # what a launch may be given


@dataclass
class Case:
    """One launch, as save_set takes it."""

    name: str
    arrays: dict[str, np.ndarray]
    made: Artifact
    compare: str = "bits"
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.arrays)

    def artifact(self) -> Artifact:
        return self.made


class Recorder:
    """A pytest plugin that keeps the launches of the tests."""

    def __init__(self):
        self.cases: list[tuple[Case, dict[str, np.ndarray]]] = []
        self.test, self.alike = "", Counter()

    def pytest_runtest_setup(self, item) -> None:
        self.test = item.nodeid

    def pytest_configure(self) -> None:
        launch = LoadedModule.launch

        def launched(module, name, **given):
            case = self.case_of(module, name, given)
            result = launch(module, name, **given)
            if case is not None and result.verdict == "clean":
                after = [array.copy() for array in _arrays(given["args"])]
                self.cases.append((case, dict(zip(case.arrays, after, strict=True))))
            return result

        LoadedModule.launch = launched

    def case_of(self, module, name: str, given: dict) -> Case | None:
        """What is to be launched; None if it cannot be handed to a driver as it is."""
        text, args, function = module.module.text, given.get("args"), self.test.partition("[")[0]
        if not isinstance(args, (list, tuple)):
            return None
        params = _params(args)
        arrays = {f"a{n}": array.copy() for n, array in enumerate(_arrays(args))}
        room = sum(array.nbytes for array in arrays.values())
        keeps = module.variables.addresses  # values from launch to launch
        if given.keys() - PLAIN or params is None or keeps or not 0 < room <= MOST_BYTES:
            return None
        self.alike[function] += 1
        if self.alike[function] > ALIKE:
            return None
        grid, block, cluster = (extents(given.get(key, 1)) for key in ("grid", "block", "cluster"))
        buffers = (BufferInfo(n, array.shape, str(array.dtype), "inout") for n, array in arrays.items())
        text = re.sub(r"\.target\s+sm_1\w+", ".target sm_90a", text)
        where = re.sub(r"\W+", "-", function.rpartition("/")[2])
        made = Artifact(
            arch="sm_90a", entry=name, cuda="", ptx=text, cubin=b"", grid=grid, block=block, cluster=cluster,
            shared_bytes=given.get("shared_bytes", 0), params=params, buffers=tuple(buffers),
        )  # fmt: skip
        return Case(f"{len(self.cases):05}-{where}", arrays, made)


def _arrays(args) -> list[np.ndarray]:
    """The arrays behind the arguments, each once."""
    arrays = [getattr(value, "array", value) for value in args]
    return list({id(a): a for a in arrays if isinstance(a, np.ndarray) and a.ndim}.values())


def _params(args) -> tuple | None:
    names = {id(array): f"a{n}" for n, array in enumerate(_arrays(args))}
    params = [_param(value, names.get(id(getattr(value, "array", value)), "")) for value in args]
    return None if None in params else tuple(params)


def _param(value, buffer: str) -> TensorMapParam | BufferParam | ScalarParam | None:
    if isinstance(value, ptxsim.TensorMap):
        if value.packed != 1 or value.padded or isinstance(value.swizzle, str):
            return None
        names = ("byte_offset", "dims", "strides", "box", "element_strides", "swizzle", "fill")
        given = {name: getattr(value, name) for name in names}
        return TensorMapParam(buffer=buffer, dtype=value.dtype.name, **given)
    if buffer:
        return BufferParam(buffer) if value.flags.c_contiguous else None
    if isinstance(value, np.generic) and value.dtype.name in SCALARS:
        return ScalarParam("scalar", value.dtype.name, value.item())
    return None  # of unknown width


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("tests", nargs="*", default=["packages/ptxsim/tests"])
    given = parser.parse_args()
    if wrong := store.wrong_name(given.set):
        parser.error(wrong)
    recorder = Recorder()
    pytest.main(["-q", "-n0", "-p", "no:cacheprovider", *given.tests], plugins=[recorder])
    save_set(given.set, recorder.cases, {"uncovered": [], "rows": 0})
    print(f"{len(recorder.cases)} launches")


if __name__ == "__main__":
    main()
