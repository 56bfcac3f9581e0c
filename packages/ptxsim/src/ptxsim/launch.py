"""LoadedModule.launch: maps the arguments to simulated memory, runs the clusters, returns a Result."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ptxsim.arguments import Arguments, Frozen
from ptxsim.causes.hints import CUDA, Hints
from ptxsim.checks.lifecycle.unset_registers import unset_stores
from ptxsim.checks.lifecycle.unwritten_outputs import forget_noted, marked_arrays, report_unwritten
from ptxsim.checks.only_read import only_read
from ptxsim.checks.register_uses import carried_away, early_uses
from ptxsim.frontend.ast import Module, Var
from ptxsim.grid import processes as parallel
from ptxsim.grid.co_resident import talks
from ptxsim.grid.cores import cores
from ptxsim.grid.elections import run_elections
from ptxsim.grid.every_order import run_every_order
from ptxsim.grid.first_run import checks_compiled_beside
from ptxsim.grid.flags import run_other_ways
from ptxsim.isa.special_registers import depends_on_cluster, special_value
from ptxsim.jit.codegen import main_loop
from ptxsim.jit.translate import shared_address
from ptxsim.launch_config import LaunchConfig, RunConfig, Shape, take
from ptxsim.lowering.emit import Program
from ptxsim.lowering.programs import Programs
from ptxsim.machine.blas import one_thread
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.global_memory import (
    MAX_LOCAL,
    RESERVED_SMEM,
    Before,
    GlobalMemory,
    shared_layout,
    shared_variables,
)
from ptxsim.machine.late_operations import Order
from ptxsim.machine.launch_queue import LaunchQueue
from ptxsim.machine.lazy import cached_property
from ptxsim.machine.module_variables import Variables
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.report.fault import faults
from ptxsim.report.findings import Finding
from ptxsim.trace.schedule import Costs, Timeline
from ptxsim.units.barriers import after_exit
from ptxsim.units.registry import fast_calls

_WARP_SIZE = 32
_LANES = np.arange(_WARP_SIZE)
Args = Sequence | bytes  # arguments in parameter order, or the whole parameter block


@dataclass
class Result:
    verdict: str  # "clean" | "review" | "error" | "incomplete" | "not checked"
    findings: list[Finding]
    stats: dict  # warp_instructions, ctas, tma_bytes, tensor_operations (busiest: of one cluster), seconds
    printed: list[str] = field(default_factory=list)  # lines written by vprintf, with CTA, warp and lane
    trace: Timeline | None = None  # of the first cluster that ran, if requested (trace/schedule.py)
    notes: list[str] = field(default_factory=list)  # observations that may surprise but are no findings


class LoadedModule:
    """A parsed module, ready to launch its kernels."""

    def __init__(self, module: Module):
        self.module = module
        self.programs = Programs(module)
        self.variables = Variables(module)  # name -> numpy array; values persist from launch to launch

    def parameters(self, name: str) -> list[tuple[str, str, int]]:
        """(name, PTX type, bytes) of each parameter of a kernel, in order."""
        self._require(name)
        return [(param.name, param.type, param.size) for param in self.module.functions[name].params]

    def _require(self, name: str) -> None:
        if name not in self.programs:
            known = ", ".join(self.programs) or "none"
            raise ValueError(f"no kernel named {name} in this module (kernels: {known})")

    def reset(self) -> None:
        """Resets all module variables to the initial values in the module's text, as in a new process."""
        self.variables.reset()

    def launch(
        self,
        name: str,
        *,
        grid: Shape = 1,
        block: Shape = 1,
        cluster: Shape = 1,
        shared_bytes: int = 0,
        args: Args = (),
        checks: bool = True,
        order: str | int = "program",
        names: Sequence[tuple[str, str, int, int]] = (),
        trace: bool | Costs | Callable = False,
        jobs: int | None = None,
        clusters: int | None = None,
        first: int = 0,
        cooperative: bool | None = None,
        max_instructions: int | None = None,
        arg_names: Sequence[str] = (),
        source: str = "",
        memory: Mapping[int, np.ndarray | tuple[str, np.ndarray]] | None = None,
        hints: Hints | None = None,
    ) -> Result:
        """Runs a kernel; writes to numpy arrays among `args` happen in place.

        args: TensorMap, numpy array (passed as a pointer), int, float, numpy scalar or bytes, in parameter
        order; a struct is a list of (offset, numpy array, TensorMap or scalar). Alternatively, a single bytes
        object: the whole parameter block. An array filled with one NaN counts as an output: the checks
        report the elements that the kernel leaves unwritten.
        order: "program", "adverse", an int seed, or "all". "all" runs both and, if the results of threads
        can depend on which one comes first, many more (grid/every_order.py; stats["orders"] has the counts).
        names: (name, dtype, offset, size) of the buffers in dynamic shared memory.
        trace: also return the Timeline of cluster `first`, scheduled with these Costs (True: the default
        costs), or the timeline of a recorder of this class.
        clusters: run only this many of the grid's clusters, starting at number `first`; if clusters
        communicate with each other, all of them run.
        cooperative: as by cudaLaunchCooperativeKernel, all CTAs run at the same time (default: if the kernel
        asks for the barrier of its grid; False: it is told that there is none).
        max_instructions: warp instructions of one cluster after which the run is given up as incomplete, with
        a finding that names the loop (default: machine.endless.MOST_INSTRUCTIONS, 4 billion).
        jobs: maximum number of processes (default: one per core where that pays). For reports: arg_names, one
        per argument, and source, the file whose lines the PTX's `// @src N` refers to.
        memory: address -> array, or (name, array), for kernels that receive addresses as numbers.
        hints: advice for each cause, for kernels written in a language other than PTX or CUDA C++.
        Module variables keep their values from launch to launch: see `variables` and `reset`.
        Raises ValueError for arguments that do not fit the kernel, Fault for an error in ptxsim itself.
        """
        config = LaunchConfig.of(
            grid, block, cluster, shared_bytes, hints=hints, cooperative=cooperative,
            max_instructions=max_instructions, arg_names=arg_names, source=source,
        )  # fmt: skip
        how = RunConfig(checks, order, names, trace, jobs, first, clusters)
        return self._bound(name, config, args, memory).run(how)

    def prepare(
        self, name: str, grid: Shape, block: Shape, cluster: Shape, shared_bytes: int, args: Args
    ) -> Launch:
        """A Launch with its memory laid out, before anything runs; takes the same parameters as `launch`."""
        return self._bound(name, LaunchConfig.of(grid, block, cluster, shared_bytes), args, None)

    def _bound(self, name: str, config: LaunchConfig, args: Args, memory: Mapping | None) -> Launch:
        self._require(name)
        take(memory=memory, args=args)
        launch = Launch(self, self.programs[name], config)
        launch.bind(args if isinstance(args, bytes) else list(args), memory)
        return launch


class Launch:
    """One launch: its geometry, its memory, and the values of constants and special registers."""

    def __init__(self, loaded: LoadedModule, program: Program, config: LaunchConfig):
        config = config.in_clusters_of(program.function.required_cluster)
        self.module, self.program, self.config = loaded.module, program, config
        self.grid, self.block, self.cluster = config.grid, config.block, config.cluster
        self.threads, self.ctas_per_cluster = config.threads, config.ctas_per_cluster
        self.warps_per_cta = -(-config.threads // _WARP_SIZE)
        self.clusters, self.shared_bytes = config.clusters, config.shared_bytes
        limit = program.function.largest_block
        if limit and self.threads > math.prod(limit):
            raise ValueError(f"block of {self.threads} threads exceeds the kernel's .maxntid {limit}")
        if program.local_bytes > MAX_LOCAL:
            raise ValueError(f"{program.local_bytes} B of local memory; a thread has at most {MAX_LOCAL}")
        self.shared_offsets, self.shared_dynamic, self.shared_end = shared_layout(
            self.shared_variables(), config.shared_bytes
        )
        self.shared_window = -(-self.shared_end // 1024) * 1024
        self.memory = GlobalMemory(short=loaded.variables.parameters)
        self.variables = loaded.variables
        self.symbols: dict[str, int] = {}
        self.maps: dict[int, TensorMap] = {}  # address -> the tensor map stored there
        self.grid_barrier = 0  # address of {bytes, counter}, as cooperative_groups expects (driver_abi.h)
        self.source, self.arg_names = config.source, config.arg_names  # for reports
        self.cooperative = program.slots.meets_its_grid if config.cooperative is None else config.cooperative
        self.hints, self.max_instructions = config.hints, config.max_instructions
        self.arrays: dict[str, np.ndarray] = {}  # name -> argument array in global memory
        self.frozen = Frozen()
        self.not_started = LaunchQueue()
        self.elects_lowest = False

    exit_hooks = (after_exit,)

    @cached_property
    def loop(self) -> Callable:
        """The compiled main loop."""
        with checks_compiled_beside(self):
            self.program.link()
            return main_loop(fast_calls())

    @property
    def talkative(self) -> bool:
        """Whether clusters of this launch may wait for each other."""
        return talks(self.program)

    @cached_property
    def early_uses(self) -> dict[int, int]:
        return early_uses(self.program)

    @cached_property
    def loads_at_once(self) -> frozenset[int]:
        """Rows of tcgen05.ld instructions that complete at once in any order: their results may be used
        before tcgen05.wait::ld.
        """
        return carried_away(self.program) | self.early_uses.keys()

    @cached_property
    def unset_stores(self) -> dict[int, tuple[list[str], int]]:
        return unset_stores(self.program)

    # ---- memory ----

    def bind(self, args: list | bytes, mapped: Mapping | None = None) -> None:
        """Lays out module variables, arrays at given addresses and the parameter block."""
        variables = self.variables
        used = variables.used_by([*self.program.slots.named, *variables.kept])
        tables = only_read(self.module, self.program, used)
        variables.kept |= dict.fromkeys(name for name in used if name not in tables)
        for name in used:
            at, constant = variables.addresses[name], variables.is_constant(name)
            heard = not constant and name not in tables
            self.symbols[name] = self.memory.add(variables.raw(name), name, heard, constant, at)
        self.memory.remember()
        pairs = {at: a if isinstance(a, tuple) else ("", a) for at, a in (mapped or {}).items()}
        self.frozen.know([array for _, array in pairs.values()])
        self.frozen.know(() if isinstance(args, bytes) else args)
        for address, (given, array) in pairs.items():
            name = given or f"the memory at 0x{address:x}"
            self.memory.add(self.frozen.copy(array, name), name, at=address)
        if self.program.slots.meets_its_grid and self.cooperative:
            self.grid_barrier = self.memory.add(np.array([8, 0], np.uint32), "the grid's barrier")
        self.symbols |= Arguments(self).bind(args)

    def shared_variables(self) -> list[Var]:
        """The shared variables that the kernel names."""
        reserved = [RESERVED_SMEM] * (RESERVED_SMEM.name in self.program.slots.named)
        return shared_variables(self.program, self.module) + reserved

    # ---- clusters ----

    def cluster_cta_ids(self, index: int) -> list[tuple[int, int, int]]:
        """%ctaid of every CTA of a cluster, in order of rank."""
        cx, cy, cz = self.cluster_id(index)
        sx, sy, sz = self.cluster
        return [
            (cx * sx + x, cy * sy + y, cz * sz + z) for z in range(sz) for y in range(sy) for x in range(sx)
        ]

    def cluster_id(self, index: int) -> tuple[int, int, int]:
        nx, ny, _ = self.clusters
        return index % nx, index // nx % ny, index // (nx * ny)

    def fill_fixed(self, cluster: Cluster) -> None:
        """Sets the constants, symbols and special registers whose values are the same in every cluster."""
        wanted = self.symbols, self.shared_offsets, self._geometry
        if cluster.fixed == wanted:
            return
        cluster.fixed = wanted
        slots, values, others = self.program.slots.constants
        cluster.registers[:, slots] = values
        for key, slot in others:
            if key[0] == "sym":
                self._symbol(cluster, key[1], key[2], cluster.registers[:, slot])
        special = [(key[1], slot) for key, slot in others if key[0] == "special"]
        fixed = [(name, slot) for name, slot in special if not depends_on_cluster(name)]
        if fixed:
            cluster.registers[:, [slot for _, slot in fixed]] = self._specials(cluster, fixed)

    @property
    def _geometry(self) -> tuple:
        """Everything that determines the special registers whose values are the same in every cluster."""
        return self.grid, self.block, self.cluster, self.shared_bytes, self.grid_barrier

    def _specials(self, cluster: Cluster, fixed: list[tuple[str, int]]) -> np.ndarray:
        """Values of special registers, (warps, registers, 32), cached for launches of the same shape."""
        key, known = self._geometry, self.program.special_values
        if key not in known:
            known.clear()
            known[key] = np.zeros((cluster.warps, len(fixed), _WARP_SIZE), np.uint64)
            for i, (name, _) in enumerate(fixed):
                self._special(cluster, name, known[key][:, i])
        return known[key]

    def fill_changing(self, cluster: Cluster) -> None:
        """Sets the special registers that differ between clusters, and the special predicates."""
        for key, slot in self.program.slots.constants[2]:
            if key[0] == "special" and depends_on_cluster(key[1]):
                by_cta = cluster.registers[:, slot].reshape(cluster.ctas, cluster.warps_per_cta, _WARP_SIZE)
                for rank in range(cluster.ctas):  # all threads of a CTA have the same value
                    warp = rank * cluster.warps_per_cta
                    by_cta[rank] = special_value(key[1], self, cluster, warp, _LANES)
        explicit = self.program.slots.predicates.get("%is_explicit_cluster")
        if explicit is not None:
            cluster.predicates[:, explicit] = 0xFFFF_FFFF * int(self.ctas_per_cluster > 1)

    def _symbol(self, cluster: Cluster, name: str, offset: int, column: np.ndarray) -> None:
        if name in self.shared_offsets:
            for w in range(cluster.warps):
                rank = w // cluster.warps_per_cta
                column[w] = shared_address(rank, self.shared_offsets[name]) + offset
        elif name in self.program.local_offsets:
            column[:] = self.program.local_offsets[name] + offset
        else:
            column[:] = self.symbols[name] + offset

    def _special(self, cluster: Cluster, name: str, column: np.ndarray) -> None:
        for w in range(cluster.warps):
            thread = (w % cluster.warps_per_cta) * _WARP_SIZE + _LANES
            column[w] = special_value(name, self, cluster, w, thread)

    # ---- running ----

    def chosen(self, first: int, most: int | None) -> range:
        """The clusters to run: at most `most`, starting at `first`; all of them if they communicate."""
        count = math.prod(self.clusters)
        if not 0 <= first < count:
            raise ValueError(f"there is no cluster {first}: the grid has {count}, numbered from 0")
        if self.talkative:
            if first:
                raise ValueError("first must be 0: clusters that wait for each other all run together")
            return range(count)
        return range(first, min(first + (most or count), count))

    def _again(self, once: Callable[[Order], parallel.Part], names: list) -> Callable[[Order], parallel.Part]:
        """`once`, followed by further runs if what it shows depends on what a chip may choose."""
        return functools.partial(run_elections, self, functools.partial(run_other_ways, self, once, names))

    def run(self, how: RunConfig) -> Result:
        start, checks, trace, every = time.perf_counter(), how.checks, how.trace, how.order == "all"
        jobs = 1 if every else how.jobs or cores()
        count, chosen, names = math.prod(self.clusters), self.chosen(how.first, how.clusters), [*how.names]
        whole = checks and len(chosen) == count  # in a partial run, other clusters may be the writers
        before = Before(self.memory) if whole else None
        marked = marked_arrays(self.arrays) if whole else []
        recorders = _recorders(self, trace, how.first) if trace else ()

        def once(order: Order) -> parallel.Part:
            part = parallel.run_clusters(self, chosen, checks, order, names, jobs, recorders)
            stuck = any(f.kind == "deadlock" for f in part.reporter.by_identity.values())
            if part.stats["clusters"] == count and not stuck:
                report_unwritten(marked, part.reporter, self.program)
            return part

        run = self._again(once, names) if checks and not recorders else once
        with faults(), one_thread(), parallel.only_new_garbage():
            part = run_every_order(self, run) if every else run(how.order)
        self.frozen.unchanged()
        stats = part.stats | {
            "ctas": part.stats["clusters"] * self.ctas_per_cluster,
            "grid_ctas": count * self.ctas_per_cluster,
            "changed": self.memory.changed(),
        }
        forget_noted(part.reporter)
        stats["seconds"] = time.perf_counter() - start
        verdict = part.reporter.verdict() if checks or part.reporter.by_identity else "not checked"
        verdict = "not checked" if verdict == "clean" and len(chosen) < count else verdict
        written = part.reporter.sources
        named = self.hints is None and written is not None and written.language
        hints = CUDA if named else self.hints or Hints()
        for finding in part.reporter.by_identity.values():
            finding.message = hints.told(finding.message)
        made = [r.timeline(trace if isinstance(trace, Costs) else Costs()) for r in recorders]
        result = Result(verdict, part.reporter.findings, stats, part.reporter.printed, *made)
        if before and verdict in ("clean", "review") and before.nothing_changed():
            result.notes.append("the launch changed no array")
        return result


def _recorders(launch: Launch, trace, index: int) -> tuple:
    from ptxsim.trace.recorder import Recorder

    return ((trace if callable(trace) else Recorder)(launch, index),)
