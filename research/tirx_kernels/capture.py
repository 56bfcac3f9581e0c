"""Splits TVM's build without a GPU: device code becomes PTX, host code runs and its calls are intercepted.

`patch_tvm()` replaces the last step of `tvm.compile`. It keeps a module's CUDA text, which NVRTC turns into
PTX (cached in a folder by the hash of the text), and the host functions, which LLVM compiles. A host function
finds its kernels in TVM's table of global functions: `Program.bind` puts a Python function there, which
receives every launch with the values that a driver would get.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PTX_FOLDER = Path(os.environ.get("TIRX_PTX", "/tmp/tirx-ptx"))


@dataclass(frozen=True)
class Kernel:
    """One device function, and how the host calls it."""

    name: str
    ptx: Path
    launch: tuple[str, ...]  # meaning of the values after its arguments: blockIdx.x, threadIdx.x ..
    digest: str  # SHA-256 of the PTX


@dataclass(eq=False)
class Program:
    """The result of one `tvm.compile`."""

    kernels: dict[str, Kernel]
    host: object  # the compiled host module
    cuda: Path
    bound: bool = field(default=False)

    def bind(self, run: Callable) -> None:
        """Makes this program's launches call `run(kernel, arguments)`."""
        import tvm_ffi

        for kernel in self.kernels.values():
            call = _launcher(kernel, run)
            tvm_ffi.register_global_func(kernel.name, call, override=True)
        self.bound = True


def _launcher(kernel: Kernel, run: Callable) -> Callable:
    def call(*values):
        run(kernel, values)

    return call


@dataclass
class Kept:
    """All programs built since `patch_tvm`, in order."""

    programs: list[Program] = field(default_factory=list)
    on_build: Callable[[Program], None] | None = None


def patch_tvm(kept: Kept, arch: str) -> None:
    """Makes `tvm.compile` for CUDA work without a GPU and its driver, and add its programs to `kept`."""
    import tvm  # noqa: F401

    builder = sys.modules["tvm.tirx.build"]
    usual = builder.tir_to_runtime

    def tir_to_runtime(host_mod, device_mods, target_host):
        device = {t: m for t, m in device_mods.items() if len(m.functions)}
        if not device or any(t.kind.name != "cuda" for t in device):
            return usual(host_mod, device_mods, target_host)
        program = _program(builder, host_mod, device, target_host, arch)
        kept.programs.append(program)
        if kept.on_build:
            kept.on_build(program)
        return program.host

    builder.tir_to_runtime = tir_to_runtime


def _program(builder, host_mod, device: dict, target_host, arch: str) -> Program:
    kernels, cuda = {}, None
    for target, module in device.items():
        source = _cuda_text(builder, module, target)
        cuda = keep_cuda(source)
        named = str(target.attrs.get("arch", ""))
        path, digest = to_ptx(source, named if named.startswith("sm_1") else arch)
        for name, function in module.functions.items():
            symbol = str(function.attrs.get("global_symbol", name.name_hint))
            launch = tuple(str(x) for x in function.attrs.get("tirx.kernel_launch_params", ()))
            kernels[symbol] = Kernel(symbol, path, launch, digest)
    import tvm

    everything = tvm.IRModule({}, attrs=host_mod.attrs)
    everything.update(host_mod)
    return Program(kernels, builder.codegen_build(everything, target_host), cuda)


def _cuda_text(builder, module, target) -> str:
    """The CUDA text that TVM generates; its own compiler gets an empty answer."""
    import tvm

    before = os.environ.get("TVM_COMPILE_FORCE_FALLBACK")
    os.environ["TVM_COMPILE_FORCE_FALLBACK"] = "1"
    callback = tvm.get_global_func("tvm_callback_cuda_compile")
    tvm.register_global_func("tvm_callback_cuda_compile", lambda code: b"", override=True)
    try:
        return builder.codegen_build(module, target).inspect_source("cuda")
    finally:
        tvm.register_global_func("tvm_callback_cuda_compile", callback, override=True)
        if before is None:
            del os.environ["TVM_COMPILE_FORCE_FALLBACK"]


def keep_cuda(source: str) -> Path:
    path = PTX_FOLDER / f"{hashlib.sha256(source.encode()).hexdigest()[:20]}.cu"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def to_ptx(source: str, arch: str) -> tuple[Path, str]:
    """(file, SHA-256) of the PTX of a CUDA text; NVRTC runs once per text and architecture."""
    from tirxlab.toolchain.nvrtc import compile_ptx

    key = hashlib.sha256(f"{arch}\n{source}".encode()).hexdigest()[:20]
    path = PTX_FOLDER / f"{key}.ptx"
    if not path.exists():
        text = source.replace("#include <nvshmemx.h>", "#include <nvshmemx.h>\n#undef exit")  # its own macro
        path.write_text(compile_ptx(text, arch, "--device-int128", *_nvshmem()))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def _nvshmem() -> list[str]:
    """The include path of NVSHMEM, if its wheel is installed."""
    import importlib.util

    found = importlib.util.find_spec("nvidia.nvshmem")
    paths = list(found.submodule_search_locations or []) if found else []
    return [f"-I{path}/include" for path in paths]
