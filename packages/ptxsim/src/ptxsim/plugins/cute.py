"""`with ptxsim.cute():` runs CuTe DSL kernels on the simulator, on torch tensors of the CPU, and checks them.

CuTe DSL compiles for the chip as usual; the intermediate PTX is what runs here, and no GPU is needed. The
compiled host code calls the simulator instead of the CUDA runtime, and device="cuda" means the CPU.
Nothing is timed: cutlass.testing.benchmark runs nothing and returns NaN.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ptxsim.driver.telling import Teller, announce_compilation
from ptxsim.plugins import bindings, torch_on_cpu
from ptxsim.plugins.redirected import redirected
from ptxsim.plugins.session import Session, chip_named, inside, not_run

_KEPT = re.compile(r"dump-ptx-path='?([^\s'}]+)")
_TARGETS = {80: "sm_80", 90: "sm_90a", 100: "sm_100a"}


@contextlib.contextmanager
def cute(
    chip: str = "h200", order: str | int = "program", checks: bool = True, quiet: bool = False
) -> Iterator[Session]:
    """Runs CuTe DSL kernels on the simulator inside the block; the Session keeps a Record for each launch.

    chip: a100, h200 or b200. order, checks: as in LoadedModule.launch. quiet: print no line per launch.
    Functions must be compiled inside the block. A fault that a chip would report (out of bounds, a deadlock)
    raises the DSL's DSLCudaRuntimeError at the call; other findings are printed and kept. Raises ImportError
    without nvidia-cutlass-dsl (4.8 or newer) or torch, and ValueError for an unknown chip.
    """
    session = Session(chip_named(chip), order, checks, Teller(quiet))
    try:
        import torch
        from cutlass.base_dsl.compiler import Compiler
        from cutlass.cute.runtime import _Tensor
        from cutlass.cutlass_dsl import CuTeDSL

        from ptxsim.plugins.cute_runtime import Runtime
    except ImportError as error:
        raise ImportError(f"{error}: `pip install nvidia-cutlass-dsl torch` (4.8 or newer)") from None
    announce_compilation()
    library, exported = _library()
    runtime = Runtime(session, exported)
    patches = [
        *_settings(CuTeDSL, _TARGETS[session.chip.capability]),
        *_compiler(Compiler, runtime),
        *_tensors(_Tensor),
        *_questions(session.chip),
        *torch_on_cpu.everything(torch, session.chip),
        redirected(library, runtime.functions),
    ]
    with inside(session, [*patches, torch_on_cpu.device_mode(torch)]):
        yield session


def _settings(dsl_class, target: str) -> list:
    """Settings of the DSL: the chip, Python source lines in the PTX, and no cache, because kernels compiled
    here run only here.
    """
    dsls = type(dsl_class)._instances.values()
    wanted = {"arch": target, "lineinfo": True, "no_cache": True}
    return [mock.patch.object(dsl.envar, name, value) for dsl in dsls for name, value in wanted.items()]


def _compiler(compiler, runtime) -> list:
    """Hands the PTX of each compilation to the runtime; the compiler's option dump-ptx-path writes it."""
    before = compiler.compile

    def keeping_ptx(self, module, pipeline, *args, **kwargs):
        with tempfile.TemporaryDirectory() as folder:
            path, asked = Path(folder) / "kernels", _KEPT.search(pipeline)
            if asked:  # by the program, too
                path = Path(asked[1])
            else:
                pipeline = pipeline.replace("cubin-format=bin", f"cubin-format=bin dump-ptx-path={path}")
            compiled = before(self, module, pipeline, *args, **kwargs)
            for file in path.parent.glob(f"{path.name}*.ptx"):
                runtime.compiled(compiled, file.read_text())
        return compiled

    return [mock.patch.object(compiler, "compile", keeping_ptx)]


def _tensors(tensor) -> list:
    """Makes from_dlpack treat the arrays it is given as global memory of the chip."""
    from ptxsim.plugins.cute_runtime import say_on_gpu

    before = tensor.__init__

    def init(self, *args, **kwargs) -> None:
        before(self, *args, **kwargs)
        say_on_gpu(self._dlpack_data, getattr(self, "_tvm_ffi_tensor", None))

    return [mock.patch.object(tensor, "__init__", init), *_tvm_ffi()]


def _tvm_ffi() -> list:
    """Makes functions compiled with --enable-tvm-ffi treat tensors as GPU tensors."""
    try:
        from cutlass.base_dsl.tvm_ffi_builder.tvm_ffi_builder import TVMFFIBuilder
        from tvm_ffi import DLDeviceType
    except ImportError:
        return []
    on_gpu = DLDeviceType.kDLCUDA
    return [mock.patch.object(TVMFFIBuilder, "load_dltensor_device_type", lambda self, _: self.i32(on_gpu))]


def _library() -> tuple[ctypes.CDLL, list[str]]:
    """The runtime library that compiled host code calls, and the names that it exports."""
    from cutlass.base_dsl.env_manager import get_prefix_dsl_libs

    paths = (get_prefix_dsl_libs("CUTE_DSL") or "").split(os.pathsep)
    path = next((path for path in paths if "cute_dsl_runtime" in path), None)
    if path is None:
        raise ImportError("CuTe DSL has no libcute_dsl_runtime.so")
    with open(path, "rb") as file:
        tables = [s for s in ELFFile(file).iter_sections() if isinstance(s, SymbolTableSection)]
        names = [symbol.name for table in tables for symbol in table.iter_symbols()]
    return ctypes.CDLL(path), names


def _questions(chip) -> list:
    """Answers what programs ask about the chip to choose a kernel, and replaces the functions that time."""
    from cutlass import testing
    from cutlass.cute import testing as older
    from cutlass.utils import HardwareInfo

    def _most_clusters(_, cluster_size, stream=None):
        return chip.sms // cluster_size

    return [
        *bindings.patches(chip),
        mock.patch.object(HardwareInfo, "get_max_active_clusters", _most_clusters),
        *(mock.patch.object(m, "benchmark", partial(not_run, "benchmark")) for m in (testing, older)),
    ]
