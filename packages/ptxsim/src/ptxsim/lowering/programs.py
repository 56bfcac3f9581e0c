"""The kernels of a module as programs.

Each is lowered when it is first asked for, so that a kernel with an instruction that is not modelled does not
affect the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxsim.frontend.ast import Module
from ptxsim.jit.codegen import hot_numbers
from ptxsim.lowering.emit import Program, lower


class Programs(Mapping):
    """Name of a kernel -> Program. Raises PtxError, with line and text, for a kernel that is not modelled."""

    def __init__(self, module: Module):
        self._module = module
        self._made: dict[str, Program] = {}
        self._kernels = [n for n, f in module.functions.items() if f.is_kernel and not f.extern]

    def __getitem__(self, name: str) -> Program:
        if name not in self._made:
            if name not in self._kernels:
                raise KeyError(name)
            self._made[name] = lower(self._module.functions[name], self._module, hot_numbers())
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kernels

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)
