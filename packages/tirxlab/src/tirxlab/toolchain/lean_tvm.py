"""Imports TVM without the parts that no kernel needs, in half of the 0.5 s that every first build would wait.

LEFT_OUT are its graph compiler (tvm.relax), its tuners and its multi-process sessions. While TVM is imported,
empty modules take their place; afterwards these are removed, and a later import gets the real ones.
Also, the first error that C++ raises takes 0.15 s, because it reads the symbols of all of TVM to write a
trace. TVM raises and drops 200 errors when it asks for operators that may not exist; here Python answers.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

LEFT_OUT = ("tvm.relax", "tvm.s_tir.meta_schedule", "tvm.s_tir.dlight", "tvm.runtime.disco")
_BUILDER = "tvm.tirx.script.builder.ir"


class _StandIn(ModuleType):
    """An empty module whose every attribute is another such module; calling one returns it."""

    __path__: list[str] = []

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")

    def __call__(self, *_, **__):
        return self


class _Finder(MetaPathFinder, Loader):
    def __init__(self):
        self.builder: Any = None  # TVM's module that names operators for its printer
        self.kept: dict[str, Callable] = {}  # its functions that are replaced during the import

    def find_spec(self, name, path, target=None):
        if self.builder is None and hasattr(sys.modules.get(_BUILDER), "register_script_namespace"):
            self.builder = sys.modules[_BUILDER]
            self.replace(_register_script_namespace_printer_names=self.name_all)
            self.replace(_register_op_attr=self.name_one)
        if any(name == left or name.startswith(f"{left}.") for left in LEFT_OUT):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _StandIn(spec.name)

    def exec_module(self, module):
        pass

    def replace(self, **functions: Callable) -> None:
        self.kept |= {name: getattr(self.builder, name) for name in functions}
        vars(self.builder).update(functions)

    def restore(self) -> None:
        if self.builder is not None:
            vars(self.builder).update(self.kept)

    def name_all(self, *args) -> None:
        """Names the operators of a namespace, while Op.get refuses in Python those that do not exist."""
        op = self.builder.ir.Op
        get, known = op.get, {str(name) for name in op.list_op_names()}
        op.get = staticmethod(lambda name: get(name) if name in known else _unknown(name))
        try:
            self.kept["_register_script_namespace_printer_names"](*args)
        finally:
            op.get = staticmethod(get)

    def name_one(self, operator: str, attribute: str, value, **level) -> None:
        """Sets an operator's attribute unless it has that value already, which would be an error, too."""
        if self.builder.ir.Op.get(operator).get_attr(attribute) != value:
            self.kept["_register_op_attr"](operator, attribute, value, **level)


def _unknown(name: str):
    raise KeyError(name)


def import_tvm() -> None:
    """Imports TVM, unless it has been imported."""
    if "tvm" in sys.modules:
        return
    finder, collects = _Finder(), gc.isenabled()
    sys.meta_path.insert(0, finder)
    gc.disable()  # objects made by imports live on, so a search for garbage finds nothing
    try:
        import tvm.s_tir  # noqa: F401  (tvm.relax would)
    finally:
        sys.meta_path.remove(finder)
        finder.restore()
        if collects:
            gc.enable()
        for name in [name for name, module in sys.modules.items() if isinstance(module, _StandIn)]:
            del sys.modules[name]
            parent, _, own = name.rpartition(".")
            if parent in sys.modules:
                vars(sys.modules[parent]).pop(own, None)
