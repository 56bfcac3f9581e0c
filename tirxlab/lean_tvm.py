"""Imports TVM without the parts that no kernel needs: its graph compiler (tvm.relax) and its tuners.

They are a third of the 0.7 s that the import takes, which every first build waits for. While TVM imports
itself, empty modules stand in for them; afterwards these are gone again, and whoever asks for the real ones
gets them.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

LEFT_OUT = ("tvm.relax", "tvm.s_tir.meta_schedule", "tvm.s_tir.dlight")


class _StandIn(ModuleType):
    """A module, and anything in it: every name in it is another, and calls give one too."""

    __path__: list[str] = []

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")

    def __call__(self, *_, **__):
        return self


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name, path, target=None):
        if any(name == left or name.startswith(f"{left}.") for left in LEFT_OUT):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _StandIn(spec.name)

    def exec_module(self, module):
        pass


def import_tvm() -> None:
    """Imports TVM, unless that has been done."""
    if "tvm" in sys.modules:
        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        import tvm.s_tir  # noqa: F401  (tvm.relax would)
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _StandIn)]:
            del sys.modules[name]
            parent, _, own = name.rpartition(".")
            if parent in sys.modules:
                vars(sys.modules[parent]).pop(own, None)
