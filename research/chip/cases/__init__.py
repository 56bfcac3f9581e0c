"""Every case of the differential set."""

from __future__ import annotations

from research.chip.cases import atomics, copies, kernels, matrix, memory, scalars, threads, tma, wgmma, wmma

MODULES = (matrix, wmma, wgmma, copies, tma, threads, atomics, memory, scalars, kernels)


def all_cases() -> list:
    """The cases of all families; names are unique."""
    cases = [case for module in MODULES for case in module.cases()]
    assert len({c.name for c in cases}) == len(cases)
    return cases
