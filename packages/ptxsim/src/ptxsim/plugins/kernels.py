"""Kernels that a program in this process loads and launches; they can access all live torch tensors.

Does what a driver API does for libraries and launches; shared by the languages whose host code calls one.
Imported only if torch is installed.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Sequence

import torch

import ptxsim
from ptxsim.arguments import param_layout
from ptxsim.driver.device import INVALID_CONFIGURATION, UNSUPPORTED, code, static_shared
from ptxsim.frontend.ast import Var
from ptxsim.plugins.running import Extent, launch, load, refused
from ptxsim.plugins.session import Session
from ptxsim.plugins.torch_on_cpu import Storages, tensors_among


class Kernels:
    """Loads and launches kernels. `also`: adds memory other than torch tensors, given all live objects."""

    def __init__(self, session: Session, also: Callable[[list, Storages], None] = lambda *_: None):
        self.session, self.also = session, also
        self._libraries: dict[int, bytes] = {}  # PTX
        self._kernels: dict[int, tuple] = {}  # handle -> (module, name)
        self._handles = itertools.count(1)

    def load(self, ptx: bytes) -> int:
        """Loads a library and returns its handle."""
        handle = next(self._handles)
        self._libraries[handle] = ptx
        return handle

    def kernel(self, library: int, name: str) -> int:
        """The handle of a kernel. RuntimeError if the kernel uses something that is not modelled."""
        handle = next(self._handles)
        self._kernels[handle] = load(self.session, self._libraries[library], name), name
        return handle

    def static_shared(self, kernel: int) -> int:
        """Bytes of static shared memory that a kernel uses."""
        module, name = self._kernels[kernel]
        return static_shared(module.programs[name], module.module)

    def launch(
        self,
        kernel: int,
        shape: tuple[Extent, Extent, Extent],
        shared: int,
        values: Callable[[Sequence[Var], Storages], list[bytes]],
    ) -> int:
        """Runs a kernel and returns a CUresult. `shape`: grid, block, cluster; `values` gives the bytes of
        each parameter.
        """
        module, name = self._kernels[kernel]
        function = module.programs[name].function
        params, shape = function.params, (*shape[:2], function.required_cluster or shape[2])
        offsets, end = param_layout(params)
        block, memory = bytearray(end), self.memory()
        given = values(params, memory)
        if len(given) != len(offsets):
            refused(self.session, name, f"it takes {len(offsets)} arguments (got {len(given)})")
            return INVALID_CONFIGURATION
        for offset, value in zip(offsets, given, strict=True):
            block[offset : offset + len(value)] = value
        try:
            findings = launch(self.session, module, name, shape, shared, bytes(block), memory.mapped)
        except (ValueError, ptxsim.Fault) as error:
            refused(self.session, name, str(error))
            return INVALID_CONFIGURATION if isinstance(error, ValueError) else UNSUPPORTED
        return code(findings)

    def memory(self) -> Storages:
        """The storages of all live tensors, and what `also` adds."""
        things, found = gc.get_objects(), Storages()
        for tensor in tensors_among(torch, things):
            found.add(tensor)
        self.also(things, found)
        return found
