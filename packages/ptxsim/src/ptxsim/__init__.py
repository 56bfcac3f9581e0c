"""ptxsim: a functional simulator of compiled PTX. `load(text)` returns a module, `module.launch(...)` runs a
kernel.

`import ptxsim` loads nothing else. Each name is imported from its module on first use; the first such import
takes 0.5 s, because it loads numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxsim.causes.catalogue import CAUSES
    from ptxsim.causes.cause import Cause
    from ptxsim.causes.hints import Hints
    from ptxsim.frontend.ast import PtxError
    from ptxsim.jit.code_cache import cache_directory, is_cold
    from ptxsim.launch import LoadedModule, Result
    from ptxsim.machine.im2col_map import Im2colMap
    from ptxsim.machine.tensor_map import TensorMap
    from ptxsim.plugins.cute import cute
    from ptxsim.plugins.tilelang import tilelang
    from ptxsim.plugins.triton import triton
    from ptxsim.report.fault import Fault
    from ptxsim.report.findings import CLEAN, Finding, times_text
    from ptxsim.trace.schedule import Costs, Timeline

__all__ = [
    "CAUSES", "CLEAN", "Cause", "Costs", "Fault", "Finding", "Hints", "Im2colMap",
    "LoadedModule", "PtxError", "Result", "TensorMap", "Timeline",
    "cache_directory", "cute", "is_cold", "load", "tilelang", "times_text", "triton", "warm_up",
]  # fmt: skip

_COMES_FROM = {
    "CAUSES": "ptxsim.causes.catalogue",
    "Cause": "ptxsim.causes.cause",
    "Hints": "ptxsim.causes.hints",
    "PtxError": "ptxsim.frontend.ast",
    "LoadedModule": "ptxsim.launch",
    "Result": "ptxsim.launch",
    "Im2colMap": "ptxsim.machine.im2col_map",
    "TensorMap": "ptxsim.machine.tensor_map",
    "CLEAN": "ptxsim.report.findings",
    "Fault": "ptxsim.report.fault",
    "Finding": "ptxsim.report.findings",
    "cache_directory": "ptxsim.jit.code_cache",
    "is_cold": "ptxsim.jit.code_cache",
    "times_text": "ptxsim.report.findings",
    "Costs": "ptxsim.trace.schedule",
    "Timeline": "ptxsim.trace.schedule",
    "cute": "ptxsim.plugins.cute",
    "tilelang": "ptxsim.plugins.tilelang",
    "triton": "ptxsim.plugins.triton",
}


def __getattr__(name: str):
    if name not in _COMES_FROM:
        raise AttributeError(f"module 'ptxsim' has no attribute {name!r}")
    return globals().setdefault(name, getattr(importlib.import_module(_COMES_FROM[name]), name))


_SMALL = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry small(.param .u64 p) {
    .reg .b32 %t; .reg .b64 %p, %o;
    ld.param.u64 %p, [p];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 4;
    add.u64 %p, %p, %o;
    ld.global.b32 %t, [%p];
    st.global.b32 [%p], %t;
    bar.sync 0;
    ret;
}
"""


def load(ptx: str | bytes, refuse: bool = True) -> LoadedModule:
    """Parses a PTX module, given as text or as bytes; reads up to the first NUL, as in a C string.

    Raises PtxError, with line and text, if the text is not PTX or if an instruction is not modelled. If the
    module has several kernels, or without `refuse`, an unmodelled instruction raises only at the launch.
    """
    import ptxsim.units.all_units  # noqa: F401  (registers the unit instructions)
    from ptxsim.frontend.ast import PtxError
    from ptxsim.frontend.parser import parse
    from ptxsim.launch import LoadedModule

    text = ptx.decode("utf-8", "replace") if isinstance(ptx, bytes) else ptx
    if not isinstance(text, str):
        raise ValueError(f"load takes PTX as text or bytes (got {type(ptx).__name__})")
    if text.startswith("\x7fELF"):
        raise PtxError("machine code cannot run: load takes PTX", 1, "ELF")
    if "\n" not in text and text.endswith((".ptx", ".cu", ".cubin")):
        raise PtxError("load takes the text of a file, not its name", 1, text)
    module = LoadedModule(parse(text.partition("\0")[0]))
    if refuse and len(module.programs) == 1:
        next(iter(module.programs.values()))
    return module


def warm_up(checks: bool = True) -> None:
    """Loads the compiled code that every launch needs, ahead of the first kernel (half a second).

    checks: whether launches with checks will follow; their code is loaded, too.
    """
    import numpy as np

    load(_SMALL).launch("small", block=(32, 1, 1), args=[np.zeros(32, np.uint32)], checks=checks)
