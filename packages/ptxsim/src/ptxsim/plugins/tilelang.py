"""`with ptxsim.tilelang():` runs TileLang kernels on the simulator, on torch tensors of the CPU, and checks
them.

TileLang compiles with its own NVRTC backend (execution_backend="nvrtc"), to PTX instead of machine code. Its
host code calls the simulator instead of the CUDA driver, and device="cuda" means the CPU. Nothing is timed:
do_bench runs nothing and returns NaN.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from ptxsim.driver.device import INVALID_CONFIGURATION
from ptxsim.driver.telling import Teller, announce_compilation
from ptxsim.plugins import bindings, torch_on_cpu
from ptxsim.plugins.session import Session, chip_named, inside, not_run

_SETTINGS = {"TILELANG_EXECUTION_BACKEND": "nvrtc", "TILELANG_DISABLE_CACHE": "1"}


@contextlib.contextmanager
def tilelang(
    chip: str = "h200", order: str | int = "program", checks: bool = True, quiet: bool = False
) -> Iterator[Session]:
    """Runs TileLang kernels on the simulator inside the block; the Session keeps a Record for each launch.

    chip: a100, h200 or b200. order, checks: as in LoadedModule.launch. quiet: print no line per launch.
    Kernels must be compiled inside the block. A fault that a chip would report (out of bounds, a deadlock)
    raises TileLang's RuntimeError at the call; other findings are printed and kept. Raises ImportError
    without tilelang (0.1.15 or newer), torch or cuda-bindings, and ValueError for an unknown chip.
    """
    session = Session(chip_named(chip), order, checks, Teller(quiet))
    try:
        import torch
        from tilelang import profiler  # pyright: ignore[reportAttributeAccessIssue]  # it may read this file
        from tilelang.jit import JITImpl
        from tilelang.jit.adapter.nvrtc import libgen

        from ptxsim.plugins.kernels import Kernels
    except ImportError as error:
        raise ImportError(f"{error}: `pip install tilelang torch cuda-bindings nvidia-cuda-nvcc`") from None
    announce_compilation()
    patches = [
        mock.patch.dict(os.environ, _SETTINGS),
        *_own_kernels(JITImpl),
        *_to_ptx(libgen, session.chip.capability),
        *_no_speed(profiler),
        *bindings.patches(session.chip, **_driver(Kernels(session))),
        *torch_on_cpu.everything(torch, session.chip),
    ]
    with inside(session, [*patches, torch_on_cpu.device_mode(torch)]):
        yield session


def _own_kernels(jitted) -> list:
    """Makes functions that were compiled outside of the block compile again, to kernels of the simulator."""
    before = jitted.__call__
    kernels: dict[int, tuple] = {}

    def call(self, *args, **kwargs):
        _, cache = kernels.setdefault(id(self), (self, {}))
        with mock.patch.object(self, "_kernel_cache", cache):
            return before(self, *args, **kwargs)

    return [
        mock.patch.object(jitted, "__call__", call),
        mock.patch.object(jitted, "_can_use_call_form_cache", lambda *_: False),
    ]


def _to_ptx(libgen, capability: int) -> list:
    compile_ = libgen.compile_cuda

    def to_ptx(code, target_format="ptx", arch=None, options=(), **more) -> bytes:
        return compile_(code, "ptx", arch or capability, [*options, "-lineinfo"], **more)

    return [mock.patch.object(libgen, "compile_cuda", to_ptx)]


def _no_speed(profiler) -> list:
    places = (profiler, "do_bench"), (profiler.Profiler, "do_bench")
    return [mock.patch.object(owner, name, partial(not_run, "do_bench")) for owner, name in places]


def _driver(kernels) -> dict:
    """The functions of cuda.bindings.driver that TileLang's host code calls."""
    from cuda.bindings import driver

    from ptxsim.plugins.driver_maps import tiled

    fine = driver.CUresult.CUDA_SUCCESS
    cluster = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION

    def load(path: bytes, *_) -> tuple:
        return fine, Library(kernels.load(Path(path.decode()).read_bytes()))

    def launch(config, kernel: int, values: tuple, _) -> tuple:
        size = next((a.value.clusterDim for a in config.attrs or () if a.id == cluster), None)
        shape = (
            (config.gridDimX, config.gridDimY, config.gridDimZ),
            (config.blockDimX, config.blockDimY, config.blockDimZ),
            (size.x, size.y, size.z) if size else (1, 1, 1),
        )
        several = values if isinstance(values[0], tuple) else [(each,) for each in values]  # or one argument
        data = [_bytes(kind, value) for value, kind in zip(*several, strict=True)]
        done = kernels.launch(kernel, shape, config.sharedMemBytes, lambda *_: data)
        return (driver.CUresult(1 if done == INVALID_CONFIGURATION else done),)  # the driver's own code

    def made(kind, rank, address, dims, strides, box, steps, interleave, swizzle, _, fill) -> tuple:
        dims, strides, box, steps = ([int(n) for n in list_] for list_ in (dims, strides, box, steps))
        modes = int(interleave), int(swizzle), int(fill)
        data = tiled(kernels.memory(), int(kind), int(address), dims, strides, box, steps, *modes)
        out = driver.CUtensorMap()
        ctypes.memmove(out.getPtr(), data, len(data))
        return fine, out

    return {
        "cuCtxGetApiVersion": lambda _: (fine, 13000),
        "cuLibraryLoadFromFile": load,
        "cuLibraryGetKernel": lambda library, name: (fine, kernels.kernel(library, name.decode())),
        "CUdevice": lambda number: number or 0,  # None for a tensor on the CPU
        "cuKernelSetAttribute": lambda *_: (fine,),
        "cuLaunchKernelEx": launch,
        "cuTensorMapEncodeTiled": made,
    }


class Library(int):
    """A handle whose truth value is False: TileLang unloads handles that are true, even after the block."""

    def __bool__(self) -> bool:
        return False


def _bytes(kind, value) -> bytes:
    """The bytes of one argument: a value of the ctypes type `kind`, or a tensor map if `kind` is None."""
    return bytes(kind(value)) if kind else ctypes.string_at(value.getPtr(), 128)
