"""The builder of one step of a kernels file, hgemm_vN(M, N, K), even if other steps are broken."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from tirxlab.explain.builder_slips import guarded
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
    return guarded(function, Path(path))


def compile_ahead(path: Path) -> None:
    """Compiles a kernels file, so that forks of this process can load it; nothing of it is run here."""
    with contextlib.suppress(Exception):  # errors are reported when it is loaded
        code_of(runnable(read_text(path), path.name).text, str(path), None)
