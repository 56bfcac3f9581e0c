"""The device that a program under `exec` sees: memory, modules, launches, and a verdict for each launch."""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass, field

import numpy as np

import ptxsim
from ptxsim.arguments import param_layout
from ptxsim.driver import fatbin
from ptxsim.driver.arena import Arena
from ptxsim.driver.chips import ChipProperties
from ptxsim.driver.repeats import Repeats
from ptxsim.driver.strange_places import name_place
from ptxsim.driver.telling import short
from ptxsim.isa.address_map import SHARED_START
from ptxsim.machine.global_memory import shared_layout, shared_variables
from ptxsim.report.findings import Finding
from ptxsim.report.names import brief

# CUresult
OK, OUT_OF_MEMORY, INVALID_CONFIGURATION, NO_IMAGE, INVALID_PTX = 0, 2, 9, 209, 218
NOT_FOUND, ASSERT, UNSUPPORTED = 500, 710, 801
_CODES = {  # kind of finding -> error code of a chip; a chip does not notice findings of other kinds
    "out-of-bounds": 700, "misaligned": 716, "descriptor": 715, "deadlock": 702, "illegal": 719,
    "cluster": 700,
}  # fmt: skip


class CudaError(Exception):
    """Ends a request with this error code. `message`: a line for the user, or ""."""

    def __init__(self, code: int, message: str = ""):
        super().__init__(message)
        self.code, self.message = code, message


@dataclass
class Record:
    """One launch and its outcome."""

    number: int
    kernel: str  # mangled name
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    verdict: str
    findings: list[Finding]
    notes: list[str]
    stats: dict
    same_as: int = 0  # number of the earlier launch that this one repeats; 0: it was run itself

    @classmethod
    def refused(cls, number: int, kernel: str, why: object) -> Record:
        """That a kernel cannot run."""
        finding = Finding("unsupported", "incomplete", f"ptxsim cannot run {short(kernel)}: {why}")
        none = (0, 0, 0)
        return cls(number, kernel, none, none, none, "incomplete", [finding], [], {})


@dataclass
class Options:
    chip: ChipProperties
    checks: bool = True
    order: str | int = "program"
    first: int = 0  # check only the first so many launches of each kernel; 0: all
    jobs: int | None = None
    max_instructions: int | None = None


@dataclass
class _Module:
    image: bytes
    loaded: ptxsim.LoadedModule | None = None
    seen: dict = field(default_factory=dict)  # variables whose addresses the program has asked for


class Device:
    def __init__(self, options: Options):
        self.options, self.arena = options, Arena(options.chip.memory)
        self.modules: dict[int, _Module] = {}
        self.process = 0  # of the program
        self._numbers = itertools.count(1)
        self.records: list[Record] = []
        self._launched: dict[str, int] = {}  # kernel -> launches so far
        self._repeats = Repeats()
        self._variables: dict[int, np.ndarray] = {}  # the variables of each module: address -> bytes

    # ---- modules ----

    def add_module(self, image: bytes) -> int:
        """Adds a module and returns its number. Raises CudaError if the image holds no PTX for the chip."""
        try:
            text = fatbin.ptx_of(image, self.options.chip.capability)
        except (fatbin.ImageError, IndexError, struct.error) as error:
            raise CudaError(NO_IMAGE, f"a module cannot be loaded: {error}") from None
        number = next(self._numbers)
        self.modules[number] = _Module(text.encode())
        return number

    def loaded(self, number: int) -> ptxsim.LoadedModule:
        """The module, parsed when it is first needed, with its variables placed in the arena."""
        module = self.modules.get(number)
        if module is None:
            raise CudaError(400)
        if module.loaded is None:
            try:
                module.loaded = ptxsim.load(module.image, refuse=False)
            except ptxsim.PtxError as error:
                raise CudaError(INVALID_PTX, f"a module cannot be loaded: {error}") from None
            self._place_variables(module.loaded.variables)
        return module.loaded

    def _place_variables(self, variables) -> None:
        """Places all variables in one allocation, because a module may have a thousand unused ones."""
        offsets, end = {}, 0
        for name in variables:
            offsets[name] = end
            end += -(-max(variables.size(name), 1) // 256) * 256 + 256
        base = self.arena.allocate(end, 4) if end else None
        if base is None:
            return
        self._variables[base] = self.arena.live.pop(base).array  # launches map each variable separately
        for name, offset in offsets.items():
            size = max(variables.size(name), 1)
            variables.place(name, self.arena.view(base + offset, size), base + offset)
        variables.reset()

    def program(self, number: int, name: str):
        loaded = self.loaded(number)
        try:
            return loaded.programs[name]
        except KeyError:
            raise CudaError(NOT_FOUND) from None
        except ptxsim.PtxError as error:
            raise self._refused(name, error) from None

    def _refused(self, name: str, why: object) -> CudaError:
        """Records that a kernel cannot run, once for each reason; the error to raise."""
        made = Record.refused(len(self.records) + 1, name, why)
        if not any(record.kernel == name and record.findings == made.findings for record in self.records):
            self.records.append(made)
        return CudaError(UNSUPPORTED)

    def facts(self, number: int, name: str) -> bytes:
        """The struct KernelFacts of driver/native/standin.h, then offsets and sizes of the parameters."""
        program = self.program(number, name)
        function, module = program.function, self.loaded(number).module
        named, static = program.slots.named, static_shared(program, module)
        constant = sum(v.size for v in module.vars.values() if v.space == "const" and v.name in named)
        offsets, end = param_layout(function.params)
        sizes = [param.size for param in function.params]
        registers = function.registers or guessed_registers(program)
        head = static, constant, program.local_bytes, most_threads(program), registers
        words = struct.pack("<10Q", *head, *(function.required_cluster or (0, 0, 0)), len(sizes), end)
        return words + struct.pack(f"<{2 * len(sizes)}I", *offsets, *sizes)

    def variable(self, number: int, name: str) -> tuple[int, int]:
        """(address, size in bytes) of a module's variable."""
        variables = self.loaded(number).variables
        if name not in variables:
            raise CudaError(NOT_FOUND)
        address = variables.addresses[name]
        self.modules[number].seen[address] = (name, variables.raw(name))
        return address, variables.size(name)

    # ---- launches ----

    def launch(
        self, number: int, name: str, grid, block, cluster, shared: int, params: bytes, cooperative=False
    ) -> tuple[int, str]:
        """Runs a launch, or takes over the outcome of the same earlier one: (CUresult, text printed)."""
        self.program(number, name)
        memory = self.arena.memory()
        for module in self.modules.values():
            memory |= module.seen
        count = self._launched[name] = self._launched.get(name, 0) + 1
        checks = self.options.checks and not 0 < self.options.first < count
        held = self._variables | {address: it.array for address, it in self.arena.live.items()}
        key = number, name, grid, block, cluster, shared, params, checks, cooperative
        known = self._repeats.find(key, held)
        if known:
            record, printed = known
            self._record(name, grid, block, cluster, record.verdict, record.findings, [], {}, record.number)
            return OK, printed
        try:
            result = self.loaded(number).launch(
                name, grid=grid, block=block, cluster=cluster, shared_bytes=shared, args=params,
                checks=checks, order=self.options.order, memory=memory, jobs=self.options.jobs,
                max_instructions=self.options.max_instructions, cooperative=cooperative,
            )  # fmt: skip
        except ValueError as error:
            raise CudaError(
                INVALID_CONFIGURATION, f"{brief(name)} is not launched, error 9: {error}"
            ) from None
        except ptxsim.Fault as error:
            raise self._refused(name, error) from None
        for finding in result.findings:
            name_place(finding, self.arena, self.process)
        told = result.verdict, result.findings, result.notes, result.stats
        record = self._record(name, grid, block, cluster, *told)
        printed = printed_text(result)
        if not code(result.findings):
            self._repeats.keep(key, (record, printed), held, result.stats["seconds"])
        return code(result.findings), printed

    def _record(self, *told) -> Record:
        """Adds a Record. told: its fields after the number."""
        self.records.append(Record(len(self.records) + 1, *told))
        return self.records[-1]


def most_threads(program) -> int:
    """The most threads of a CTA that a kernel declares (.maxntid or .reqntid)."""
    limit = program.function.largest_block
    return min(1024, math.prod(limit)) if limit else 1024


def guessed_registers(program) -> int:
    """An estimate of the registers that a thread of a kernel takes on a chip."""
    return min(255, program.slots.register_slots)


def printed_text(result) -> str:
    """What the kernel of a launch has printed."""
    return "".join(getattr(line, "raw", f"{line}\n") for line in result.printed)


def static_shared(program, module) -> int:
    """Bytes of static shared memory that a kernel gets, with those that it declares and does not name."""
    return shared_layout(shared_variables(program, module, under_dynamic=True), 0)[2] - SHARED_START


def code(findings: list[Finding]) -> int:
    """What cudaDeviceSynchronize returns after a launch with these findings: errors a chip would notice."""
    for finding in findings:
        if finding.severity == "error" and finding.kind in _CODES:
            if "assertion" in finding.message:
                return ASSERT
            if finding.kind != "illegal" or finding.evidence.get("kills"):
                return _CODES[finding.kind]
    return OK
