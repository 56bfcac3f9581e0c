"""Runs a kernel on every path of the simulator and reports where they differ.

Paths: checked and unchecked, several orders of asynchronous work, one process and several. On a kernel
without races all must leave the same bytes, and every checked run the same verdict.
"""

from __future__ import annotations

import numpy as np

import ptxsim
from research.truth.compare import fresh_arrays, maps_of
from research.truth.emit import ptx_of
from research.truth.kernels import REGISTERS, WORDS, Kernel
from research.truth.model import Program

ORDERS = ("program", "adverse", 5)
GUARD = 4096  # words at the end of the output for bulk copies


def of_kernel(kernel: Kernel):
    """(module, launch shape, function that makes fresh arrays, function of the input that makes maps)."""

    def arrays():
        numbers = np.random.default_rng(kernel.seed).integers(0, 1 << 32, 8192, np.uint32)
        return numbers, np.zeros(WORDS + GUARD, np.uint32)

    assert kernel.grid * kernel.block * (REGISTERS + 4) <= WORDS
    shape = {"grid": kernel.grid, "cluster": kernel.cluster, "block": kernel.block}
    return ptxsim.load(kernel.ptx), shape, arrays, lambda numbers: []


def of_program(program: Program):
    """The same for a synchronisation program."""
    shape = {"grid": program.ctas, "cluster": program.ctas, "block": 32 * program.warps}
    return ptxsim.load(ptx_of(program)), shape, fresh_arrays, maps_of


def differences(module, shape, arrays, maps, jobs=(1,), orders=ORDERS) -> list[str]:
    """The differences between paths, and checked runs that are not clean."""
    found, first = [], {}
    elects = any(
        getattr(one, "op", "") == "elect" for f in module.module.functions.values() for one in f.body
    )
    for order in orders:
        for checks in (True, False):
            for processes in jobs:
                args = list(arrays())
                given = [*args, *maps(args[0])]
                result = module.launch("k", **shape, args=given, order=order, checks=checks, jobs=processes)
                path = f"order {order}, {'checked' if checks else 'unchecked'}, jobs={processes}"
                if result.verdict != ("clean" if checks else "not checked"):
                    first_words = str(result.findings[0]).split("\n")[0] if result.findings else ""
                    found.append(f"{path}: {result.verdict} {first_words}")
                memory = np.concatenate(args[1:])
                known = first.setdefault(order if elects else "", memory)  # the elected lane is a choice
                where = np.flatnonzero(memory != known)
                if len(where):
                    found.append(f"{path}: {len(where)} words differ, the first at {where[0]}")
    return found
