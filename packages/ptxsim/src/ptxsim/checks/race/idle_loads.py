"""Loads whose values change nothing: their threads store nothing that depends on them.

If a tensor is smaller than the CTA, Triton gives several threads a copy of an element. All of them load it;
one stores the result, under a guard that does not depend on the value. When the result overwrites the source,
nothing orders the loads of the other threads, and nothing depends on them.
"""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.checks.race.part import Part
from ptxsim.checks.static_flow import follow, targets
from ptxsim.events.views import Cluster
from ptxsim.frontend.ast import Instr, registers_of
from ptxsim.isa.address_map import GLOBAL_BASE
from ptxsim.isa.memory_access import ASKS
from ptxsim.jit.bytecode import CALL, COLD, FIRST_SCALAR, LOG_ROW, LOG_THREAD, OP
from ptxsim.lowering.emit import Program

_TOLD = {"global", "shared", "shared::cta"}  # spaces where every store of a thread is logged


class IdleLoads(Part):
    """Part of the RaceDetector: which loads have been of no use to their threads."""

    def __init__(self, races):
        super().__init__(races)
        # stores to variables of the module are not logged
        rows, program = races.launch.memory.rows, races.launch.program
        variables = any(base >= GLOBAL_BASE and not logged for base, _, _, logged in rows)
        self.stores = {} if variables else guarded_stores(program)
        watched = sorted(set().union(*self.stores.values(), () if variables else _after_tmem(program)))
        self.number = np.full(len(program.instrs), -1)
        self.number[watched] = np.arange(len(watched))

    def start(self, cluster: Cluster) -> None:
        self.stored = np.zeros((self.number.max(initial=-1) + 1, cluster.warps * 32), bool)

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        if len(self.stored):
            numbers = self.number[log[:, LOG_ROW]]
            self.stored[numbers[numbers >= 0], log[numbers >= 0, LOG_THREAD]] = True

    def in_vain(self, row: int, agents: np.ndarray, registers: frozenset[str] = frozenset()) -> bool:
        """Whether nothing that depends on the load at `row` was stored by these threads. registers: those of
        the load that count, if not all do.
        """
        program = self.races.launch.program
        stores = _ends(program, registers, False) if registers else self.stores.get(row)
        if stores is None or self.races.clocks.threads_per_agent > 1 or self.races.cluster.stuck:
            return False
        numbers = self.number[sorted(stores)]
        return bool((numbers >= 0).all()) and not self.stored[np.ix_(numbers, agents)].any()


@functools.lru_cache(maxsize=16)
def guarded_stores(program: Program) -> dict[int, frozenset[int]]:
    """Row of a plain load -> the guarded stores that its value reaches, if it reaches nothing else; row of a
    wgmma -> the stores that its result reaches, guarded or not: a branch may lead round them.
    """
    found = {}
    for row, instr in program.by_row.items():
        loads = instr.op == "ld" and not (ASKS | {"param", "volatile"}) & set(instr.mods)
        if loads or _multiplies(instr):
            stores = _ends(program, frozenset(targets(instr)), loads)
            if stores:
                found[row] = stores
    return found


@functools.lru_cache(maxsize=16)
def _after_tmem(program: Program) -> list[int]:
    """All plain stores of a program that loads from tensor memory."""
    if not any(i.op == "tcgen05" and i.mods[0] == "ld" for i in program.by_row.values()):
        return []
    return [row for row, i in program.by_row.items() if _stores_value(i, set(), False)]


def _multiplies(instr: Instr) -> bool:
    return instr.op == "wgmma" and instr.mods[0] == "mma_async"


@functools.lru_cache(maxsize=256)
def _ends(program: Program, registers: frozenset[str], guarded: bool) -> frozenset[int] | None:
    """Stores that the values of these registers reach; None if they reach anything else."""
    known, stores = set(registers), set()
    for row in follow(program, known, lambda row: _computes(program, row)):
        if _stores_value(program.by_row[row], known, guarded):
            stores.add(row)
        elif not _computes(program, row):
            return None
    whole = all(_stores_value(program.by_row[row], known, guarded) for row in stores)
    return frozenset(stores) if whole else None


def _computes(program: Program, row: int) -> bool:
    op = int(program.code[row, OP])
    return op >= FIRST_SCALAR or op in (CALL, COLD)


def _stores_value(instr: Instr, known: set[str], guarded: bool) -> bool:
    """Whether this is a plain store, perhaps a guarded one, whose value, but not its address or guard, comes
    from the registers.
    """
    if instr.op not in ("st", "stmatrix") or "async" in instr.mods or not _TOLD & set(instr.mods):
        return False
    guard = {instr.pred.reg.name} if instr.pred is not None else set()
    return bool(guard or not guarded) and not known & (guard | set(registers_of(instr.operands[:1])))
