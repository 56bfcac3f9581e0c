"""`with ptxsim.triton():` runs Triton kernels on the simulator, on torch tensors of the CPU, and checks them.

Triton compiles for the chip as usual, but only to PTX; neither ptxas nor a GPU is needed. Inside the block,
Triton uses the simulator as its driver, and device="cuda" means the CPU. Nothing is timed: an autotuned
kernel runs in its first configuration that fits, and benchmarks (triton.testing.perf_report) are skipped with
a line that says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from ptxsim.driver.telling import Teller, announce_compilation
from ptxsim.plugins import torch_on_cpu
from ptxsim.plugins.session import Session, chip_named, inside, not_run


@contextlib.contextmanager
def triton(
    chip: str = "h200", order: str | int = "program", checks: bool = True, quiet: bool = False
) -> Iterator[Session]:
    """Runs Triton kernels on the simulator inside the block; the Session keeps a Record for each launch.

    chip: a100, h200 or b200. order, checks: as in LoadedModule.launch. quiet: print no line per launch.
    A fault that a chip would report (out of bounds, a deadlock) raises RuntimeError at the launch; other
    findings are printed and kept. Raises ImportError without Triton (3.6 or newer) or torch, and ValueError
    for an unknown chip.
    """
    session = Session(chip_named(chip), order, checks, Teller(quiet))
    try:
        import torch
        import triton
        from triton.runtime import driver

        from ptxsim.plugins.triton_driver import Driver
    except ImportError as error:
        raise ImportError(f"{error}: `pip install triton torch` (torch for the CPU is enough)") from None
    module: Any = triton  # pyright may confuse it with this file
    if not hasattr(module, "knobs") or not hasattr(module.knobs.runtime, "add_stages_inspection_hook"):
        raise ImportError(f"Triton {module.__version__} gives no access to its PTX: 3.6 or newer does")
    announce_compilation()
    before, ours = driver._active, Driver(session)
    driver.set_active(ours)
    with contextlib.ExitStack() as stack:
        stack.callback(driver.set_active, before)
        patches = [*_triton_patches(triton, ours), *torch_on_cpu.patches(torch, session.chip)]
        stack.enter_context(inside(session, [*patches, torch_on_cpu.device_mode(torch)]))
        yield session


def _triton_patches(triton, driver) -> list:
    """Patches: Triton takes its PTX as the binary, autotuning times nothing, and benchmarks do not run."""
    from triton.runtime.autotuner import Autotuner

    choose, bench = Autotuner.prune_configs, Autotuner._bench

    def stages(backend=None, stages=None, *_) -> tuple[str, str]:
        if stages is not None:
            stages["cubin"] = lambda ptx, metadata: ptx.encode()
        return "ptxsim", "0"

    def first_that_fits(tuner, kwargs) -> list:
        configs = choose(tuner, kwargs)
        driver.session.dry = True
        try:
            timed = ((c, bench(tuner, *tuner.nargs.values(), config=c, **kwargs)) for c in configs)
            return [next((c for c, seconds in timed if seconds[0] != float("inf")), configs[0])]
        finally:
            driver.session.dry = False

    def run(mark, *_, **__) -> None:
        made = mark.benchmarks if isinstance(mark.benchmarks, list) else [mark.benchmarks]
        names = ", ".join(bench.plot_name or mark.fn.__name__ for bench in made)
        not_run(names)

    return [
        mock.patch.object(triton.knobs.runtime, "add_stages_inspection_hook", stages),
        mock.patch.object(Autotuner, "prune_configs", first_that_fits),
        mock.patch.object(Autotuner, "_bench", lambda *_, **__: [0.0]),  # instead of timing the only one left
        mock.patch.object(triton.testing.Mark, "run", run),
        mock.patch.object(triton.testing, "do_bench", driver.get_benchmarker()),
    ]
