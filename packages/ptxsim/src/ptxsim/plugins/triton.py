"""`with ptxsim.triton():` Triton kernels run on the simulator, on torch tensors of the CPU, and are checked.

Triton compiles for the chip as ever, down to PTX; neither ptxas nor a GPU takes part. Inside the block
Triton's driver is ours and device="cuda" means the CPU. Nothing is timed: a tuned kernel runs in its first
configuration that fits, and reports of speed (triton.testing.perf_report) are left out, with a line that says
so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest import mock

from ptxsim.driver.chips import CHIPS, Chip
from ptxsim.driver.device import Record
from ptxsim.driver.telling import Teller, announce_compilation, say, worst


@dataclass
class Session:
    """What runs inside the block, and what came of it."""

    chip: Chip
    order: str | int
    checks: bool
    teller: Teller
    launches: list[Record] = field(default_factory=list)
    dry: bool = False  # kernels are compiled and loaded, but not run

    @property
    def verdict(self) -> str:
        """The worst of all launches."""
        return worst(record.verdict for record in self.launches)

    def told(self, record: Record) -> None:
        """A launch has ended."""
        self.launches.append(record)
        self.teller.told(record)


@contextlib.contextmanager
def triton(
    chip: str = "h200", order: str | int = "program", checks: bool = True, quiet: bool = False
) -> Iterator[Session]:
    """Runs Triton kernels on the simulator inside the block; the Session keeps a Record for each launch.

    chip: a100, h200 or b200. order, checks: as LoadedModule.launch has them. quiet: no line per launch.
    A fault that a chip would report (out of bounds, a deadlock) raises RuntimeError at the launch; what else
    is found is printed and kept. ImportError without Triton (3.6 or newer) or torch; ValueError for an
    unknown chip.
    """
    if chip not in CHIPS:
        raise ValueError(f"chip is one of {', '.join(CHIPS)} (got {chip!r})")
    try:
        import torch
        import triton
        from triton.runtime import driver

        from ptxsim.plugins.triton_driver import Driver
    except ImportError as error:
        raise ImportError(f"{error}: `pip install triton torch` (torch for the CPU is enough)") from None
    if not hasattr(triton, "knobs") or not hasattr(triton.knobs.runtime, "add_stages_inspection_hook"):
        raise ImportError(f"Triton {triton.__version__} lets nobody take its PTX: 3.6 or newer does")
    announce_compilation()
    session = Session(CHIPS[chip], order, checks, Teller(quiet))
    before, ours = driver._active, Driver(session)
    driver.set_active(ours)
    with contextlib.ExitStack() as stack:
        stack.callback(driver.set_active, before)
        for patch in (*_triton_patches(triton, ours), *_torch_patches(torch, session.chip)):
            stack.enter_context(patch)
        stack.enter_context(_device_mode(torch))
        try:
            yield session
        finally:
            session.teller.summary(session.launches, session.chip.name)


def _triton_patches(triton, driver) -> list:
    """PTX is taken for the binary; a tuned kernel is not timed; speed is not reported."""
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

    def not_run(mark, *_, **__) -> None:
        made = mark.benchmarks if isinstance(mark.benchmarks, list) else [mark.benchmarks]
        names = ", ".join(bench.plot_name or mark.fn.__name__ for bench in made)
        say(f"ptxsim: not run, as speed is not measured here: {names}")

    return [
        mock.patch.object(triton.knobs.runtime, "add_stages_inspection_hook", stages),
        mock.patch.object(Autotuner, "prune_configs", first_that_fits),
        mock.patch.object(Autotuner, "_bench", lambda *_, **__: [0.0]),  # the one that is left is not timed
        mock.patch.object(triton.testing.Mark, "run", not_run),
        mock.patch.object(triton.testing, "do_bench", driver.get_benchmarker()),
    ]


def _torch_patches(torch, chip: Chip) -> list:
    """What programs ask torch.cuda to choose a kernel for the chip."""
    facts = SimpleNamespace(
        name=chip.name,
        major=chip.major,
        minor=chip.minor,
        multi_processor_count=chip.sms,
        warp_size=32,
        total_memory=chip.memory,
        shared_memory_per_block_optin=chip.shared_per_sm - 1024,
        L2_cache_size=chip.l2,
    )
    answers = {
        "get_device_capability": (chip.major, chip.minor),
        "get_device_properties": facts,
        "get_device_name": chip.name,
        "current_device": 0,
        "synchronize": None,
    }
    return [mock.patch.object(torch.cuda, n, lambda *_, value=v: value) for n, v in answers.items()]


def _device_mode(torch):
    """device="cuda" stands for the CPU, also in Tensor.to and Tensor.cuda; tensors say they are there."""

    def here(value):
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        return "cpu" if isinstance(value, str) and value.partition(":")[0] == "cuda" else value

    class OnCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function in (torch.Tensor.cuda, torch.Tensor.is_cuda.__get__):
                return args[0] if function is torch.Tensor.cuda else True
            return function(*map(here, args), **{name: here(v) for name, v in (kwargs or {}).items()})

    return OnCpu()
