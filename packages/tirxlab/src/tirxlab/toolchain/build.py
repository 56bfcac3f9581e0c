"""`build(kernel, arch) -> Artifact`: TIRX -> CUDA (TVM) -> PTX and cubin (NVRTC), without a GPU.

Apart from `tirxlab.dialect` this is the only package that imports TVM.
"""

from __future__ import annotations

import math
from pathlib import Path

import tvm
from tvm import DataType
from tvm.target import Target
from tvm.tirx import PrimFunc, StringImm
from tvm.tirx.build import codegen_build, split_host_device_mods
from tvm.tirx.script.parser.entry import TIRInline
from tvm.tirx.stmt_functor import post_order_visit

from tirxlab.artifact import Artifact, BufferInfo, SharedName
from tirxlab.dialect import KernelError, KernelInfo, info_of
from tirxlab.dialect.errors import is_students
from tirxlab.toolchain import cache, nvrtc

from . import shared_maps  # noqa: F401  patches TVM
from .hostcode import HostCodeError, Launch, read_launch
from .markers import with_markers
from .messages import BuildError, compile_message, first_line_with, lowering_message

__all__ = ["ARCHES", "BuildError", "build", "draft"]

PLAIN_FUNCTION = "`{}` is no kernel, but a function: write @Tx.prim_func(tirx=True) on the line above its def"
ARCHES = ("sm_80", "sm_90a", "sm_100a")
_LOWERING = 2  # to be incremented whenever the lab's changes to TVM's lowering change the generated CUDA


def build(kernel: PrimFunc, arch: str = "sm_100a", *, use_cache: bool = True) -> Artifact:
    """Compile a kernel made with `@Tx.prim_func` for `arch`, or fetch it from the disk cache.

    Raises BuildError, whose message fits a screen and names the student's file and line.
    """
    info = _checked(kernel, arch)
    marked = with_markers(kernel, info.file)
    parts = {"flags": nvrtc.SETTINGS, "tools": _versions(), "lowering": _LOWERING}
    name = cache.key(tir=_script(marked), arch=arch, **parts)
    artifact = cache.get(name) if use_cache else None
    if artifact is None:
        artifact = _compile(marked, info, arch)
        if use_cache:
            cache.put(name, artifact)
    return artifact.with_source(Path(info.file).name, _text(info.file))


def _checked(kernel, arch: str) -> KernelInfo:
    if arch not in ARCHES:
        raise BuildError(f"arch {arch!r} is not supported: use one of {', '.join(ARCHES)}")
    if (function := _function(kernel)) is not None:
        code = function.__code__
        raise BuildError(PLAIN_FUNCTION.format(function.__name__), code.co_filename, code.co_firstlineno)
    if not isinstance(kernel, PrimFunc):
        raise BuildError(
            f"build() needs a kernel made with @Tx.prim_func(tirx=True), not {type(kernel).__name__}"
        )
    try:
        return info_of(kernel)
    except KernelError as error:
        raise BuildError(error.reason) from None


def _function(kernel):
    """The student's function, plain or under @Tx.inline, that was given for a kernel; else None."""
    cells = [cell.cell_contents for cell in getattr(kernel, "__closure__", None) or ()]
    given = [kernel, *(made.func for made in cells if isinstance(made, TIRInline))]
    return next((f for f in given if hasattr(f, "__code__") and is_students(f.__code__.co_filename)), None)


def _script(kernel: PrimFunc) -> str:
    """The kernel as text, with its strings, which TVM leaves out (show_meta crashes on a "\\n" in one)."""
    strings = []
    post_order_visit(kernel.body, lambda n: strings.append(n.value) if isinstance(n, StringImm) else None)
    return "\0".join([kernel.script(), *map(str, strings)])


def _versions() -> dict[str, str]:
    return {"tvm": tvm.__version__, "nvrtc": nvrtc.version()}


def _text(file: str) -> str:
    try:
        return Path(file).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def draft(kernel: PrimFunc, arch: str = "sm_100a") -> Artifact:
    """Lower a kernel to CUDA only: an artifact without PTX. Raises as `build` does."""
    info = _checked(kernel, arch)
    return _draft(with_markers(kernel, info.file), info, arch)


def _compile(kernel: PrimFunc, info: KernelInfo, arch: str) -> Artifact:
    made = _draft(kernel, info, arch)
    try:
        return nvrtc.finish(made)
    except nvrtc.CompileError as error:
        raise compile_message(error, made.cuda, info) from None


def _draft(kernel: PrimFunc, info: KernelInfo, arch: str) -> Artifact:
    try:
        cuda, launch = _lower(kernel, info, arch)
    except HostCodeError as error:
        raise BuildError(str(error), info.file, info.line) from None
    except BuildError:
        raise
    except Exception as error:  # TVM raises many types
        raise lowering_message(error, kernel, info) from None
    if 0 in launch.grid:
        raise BuildError(_NO_CTA.format(launch.grid), info.file, first_line_with("cta_id", info) or info.line)
    return Artifact(
        arch=arch,
        entry=launch.entry,
        cuda=cuda,
        ptx="",
        cubin=b"",
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        shared_bytes=launch.shared_bytes,
        params=launch.params,
        buffers=tuple(BufferInfo(b.name, b.shape, b.dtype, b.role) for b in info.buffers),
        names=tuple(SharedName(n.name, n.dtype, n.offset, _bytes(n), n.shape) for n in info.names),
        tools=_versions(),
    )


def _bytes(name) -> int:
    return math.prod(name.shape) * DataType(name.dtype).bits // 8


def _lower(kernel: PrimFunc, info: KernelInfo, arch: str) -> tuple[str, Launch]:
    """TVM's CUDA text and the launch; TVM's own exceptions pass through."""
    target = Target({"kind": "cuda", "arch": arch}).with_host(Target("llvm" if _has_llvm() else "c"))
    module = tvm.tirx.transform.BindTarget(target)(tvm.IRModule({"main": kernel}))
    pipeline, _, finalize_device = tvm.tirx.get_tir_pipeline("tirx")
    with target:
        module = pipeline(module)
        hosts, devices = split_host_device_mods(module)
        functions = [f for m in devices.values() for f in m.functions.values()]
        if len(functions) != 1:
            raise BuildError(_ONE_KERNEL.format(len(functions)), info.file, info.line)
        (device_target, device) = next(iter(devices.items()))
        cuda = codegen_build(finalize_device()(device), device_target).inspect_source()
    (host,) = hosts.functions.values()
    return cuda, read_launch(host, functions[0], [b.name for b in info.buffers])


_NO_CTA = (
    "grid {} has no CTA: an extent of cta_id(.., parent='kernel') is 0 for this size and this SM_COUNT "
    "(checks build with few SMs, too); is it divided by more than it has?"
)
_ONE_KERNEL = (
    "the function makes {} kernels, the lab runs exactly one: write its body in one `with Tx.kernel():`"
)


def _has_llvm() -> bool:
    return bool(tvm.runtime.enabled("llvm"))
