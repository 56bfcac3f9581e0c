"""The builder of one step of a kernels file, hgemm_vN(M, N, K), even if other steps are broken."""

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

from tirxlab.explain.builder_slips import BuilderError, guarded
from tirxlab.salvage import runnable
from tirxlab.steps import (
    STEPS,
    StepError,
    UntouchedStep,
    code_of,
    is_untouched,
    load_kernels,
    names_sm_count,
    read_text,
)


def builder(path: Path, step: int, sm_count: int | None = None) -> Callable:
    """The function hgemm_vN of a kernels file; StepError if unknown, missing, broken or still a skeleton.

    sm_count: the SM_COUNT to build for, unless the step writes the number of SMs out itself.
    """
    if step not in STEPS:
        raise StepError(f"step {step} does not exist; the steps are 1 to 10")
    text = read_text(path)
    found = runnable(text, Path(path).name)
    if step in found.broken:
        raise StepError(found.broken[step])
    if is_untouched(text, step):
        raise UntouchedStep(f"step {step} is not implemented yet")
    few = None if sm_count is None or names_sm_count(found.text, step) else sm_count
    function = getattr(load_kernels(path, few, found.text), f"hgemm_v{step}", None)
    if not callable(function):
        raise StepError(f"{Path(path).name} has no hgemm_v{step}(M, N, K)")
    make = guarded(function, Path(path))

    @functools.wraps(make)
    def fitting(M: int, N: int, K: int):
        from tirxlab.dialect import info_of

        made = make(M, N, K)
        line = getattr(made, "source_line", 0)  # of a kernel
        shapes = (M, K), (N, K), (M, N)
        if line and (wrong := misfit(info_of(made).buffers, shapes, ("float16",) * 3)):
            raise BuilderError(f"{Path(path).name}:{line}: {wrong}")
        return made

    return fitting


def misfit(buffers, shapes, dtypes) -> str:
    """How a kernel's parameters differ from the arrays A, B and D that it is called with; "" if they fit."""
    if len(buffers) != len(shapes):
        return f"the kernel takes {len(buffers)} arrays, and is called with A, B and D"
    for buffer, name, shape, dtype in zip(buffers, "ABD", shapes, dtypes, strict=True):
        if (buffer.shape, buffer.dtype) != (shape, dtype):
            taken, given = f"{buffer.name} as {buffer.shape} {buffer.dtype}", f"{name}, {shape} {dtype}"
            return f"the kernel takes {taken}, and is called with {given}: its parameters are A, B, D"
    return ""


def compile_ahead(path: Path) -> None:
    """Compiles a kernels file, so that forks of this process can load it; nothing of it is run here."""
    with contextlib.suppress(Exception):  # errors are reported when it is loaded
        code_of(runnable(read_text(path), path.name).text, str(path), None)
