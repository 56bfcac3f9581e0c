"""Stores of registers that nothing in the program sets.

Found in the program text, reported when the store runs. A register counts as set as soon as any instruction
computes it; copies and conversions (mov, cvt) of registers that are not set do not set their target.
Compilers produce such registers when a program stores a variable that nothing has initialised.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.static_flow import targets
from ptxsim.events.observer import Observer
from ptxsim.events.views import Cluster, Launch
from ptxsim.frontend.ast import Instr, Reg, Vec
from ptxsim.jit import bytecode
from ptxsim.lowering.emit import Program
from ptxsim.report.findings import Reporter

_COPIES = ("mov", "cvt")


class UnsetStores(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter, self.unset = reporter, launch.unset_stores
        self.rows = np.array(sorted(self.unset), np.int64)

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        if not len(self.rows):
            return
        for at in np.flatnonzero(np.isin(log[:, bytecode.LOG_ROW], self.rows)):
            thread, row = int(log[at, bytecode.LOG_THREAD]), int(log[at, bytecode.LOG_ROW])
            names, count = self.unset[row]
            what = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
            self.reporter.add(
                "uninitialized",
                "error",
                f"a thread stores {len(names)} of {count} registers that nothing has set: {what}",
                CAUSES["unset"],
                cluster.splits[thread // 32 * 32].at(1 << thread % 32, row),
                key="unset store",
            )


@functools.lru_cache(maxsize=16)
def unset_stores(program: Program) -> dict[int, tuple[list[str], int]]:
    """Row of a store -> (registers that it stores although nothing sets them, number of registers it
    stores).
    """
    stored = {row: _values(instr) for row, instr in program.by_row.items() if instr.op == "st"}
    computed = _computed(program.by_row.values(), program.slots.function.regs)
    missing = {row: [name for name in names if name not in computed] for row, names in stored.items()}
    return {row: (names, len(stored[row])) for row, names in missing.items() if names}


def _values(instr: Instr) -> list[str]:
    """Registers that a store writes to memory: its second operand."""
    return [item.name for item in _items(instr.operands[1:2]) if isinstance(item, Reg)]


def _items(operands) -> list:
    """The operands, those of a vector one by one."""
    return [item for one in operands for item in (one.items if isinstance(one, Vec) else [one])]


def _computed(instrs: Iterable[Instr], declared) -> set[str]:
    """Registers that hold a value somewhere: special ones, and those that an instruction sets.

    A register that is only ever copied from others holds a value if one of those does.
    """
    computed: set[str] = set()
    copied: dict[str, set[str]] = defaultdict(set)
    for instr in instrs:
        items = _items(instr.operands[1:])
        sources = {item.name for item in items if isinstance(item, Reg)}
        computed |= {name for name in sources if name not in declared}
        for name in targets(instr):
            if instr.op in _COPIES and all(isinstance(item, Reg) for item in items):
                copied[name] |= sources
            else:
                computed.add(name)
    more = set(copied)
    while more:
        more = {name for name, sources in copied.items() if name not in computed and sources & computed}
        computed |= more
    return computed
