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
        made = make(M, N, K)
        line = getattr(made, "source_line", 0)  # of a kernel
        if line and (wrong := _misfit(made, {"A": (M, K), "B": (N, K), "D": (M, N)})):
            raise BuilderError(f"{Path(path).name}:{line}: {wrong}")
        return made

    return fitting


def _misfit(kernel, arrays: dict[str, tuple[int, ...]]) -> str:
    """How the kernel's parameters differ from the float16 arrays that it is called with; "" if they fit."""
    from tirxlab.dialect import info_of

    taken = info_of(kernel).buffers
    if len(taken) != len(arrays):
        return f"the kernel takes {len(taken)} arrays, and is called with A, B and D"
    for buffer, (name, shape) in zip(taken, arrays.items(), strict=True):
        if (buffer.shape, buffer.dtype) != (shape, "float16"):
            given = (
                f"{name}, {shape} float16: its parameters are A (M, K), B (N, K) and D (M, N), all float16"
            )
            return (
                f"the kernel takes {buffer.name} as {buffer.shape} {buffer.dtype}, and is called with {given}"
            )
    return ""


def compile_ahead(path: Path) -> None:
    """Compiles a kernels file, so that forks of this process can load it; nothing of it is run here."""
    with contextlib.suppress(Exception):  # errors are reported when it is loaded
        code_of(runnable(read_text(path), path.name).text, str(path), None)
