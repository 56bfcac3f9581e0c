"""`inner`: decorates a function that only other compiled code calls, so that it is compiled within its
callers.

numba optimises each function separately, generates machine code and a wrapper for Python, and then does so
again within every caller. Here an inner function is kept as LLVM text only; the function that Python calls is
optimised once, together with everything that it reaches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import InlineInlinables

# Compiler passes that find nothing here: inlining of Python functions, rewriting of whole-array arithmetic.
_IN_VAIN = (InlineInlinables, NopythonRewrites)
_ENVIRONMENT = "_ZN08NumbaEnv"  # start of the names of functions' environments (their Python objects)


class _Text(JITCodeLibrary):
    """A library with the LLVM text of one function and of those that it calls, without machine code."""

    @property
    def codegen(self):
        return _NoEnvironments(self._codegen)

    def add_llvm_module(self, ll_module) -> None:
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def _get_module_for_linking(self):
        """The module of this function, with everything that it reaches linked in once."""
        self._ensure_finalized()
        if self._shared_module is None:
            whole, reached = self._final_module.clone(), [self]
            for library in reached:  # grows
                more = library._linking_libraries if isinstance(library, _Text) else []
                reached += [one for one in more if one not in reached]
            for library in reached[1:]:
                text = isinstance(library, _Text)
                module = _shared(library._final_module) if text else library._get_module_for_linking()
                whole.link_in(module, preserve=True)
            self._shared_module = _shared(whole)
        return self._shared_module


def _shared(module):
    """A copy of a module whose functions may be defined more than once."""
    copy = module.clone()
    for function in copy.functions:
        if not function.is_declaration and function.linkage.name == "external":
            function.linkage = "linkonce_odr"
    return copy


class _NoEnvironments:
    """A code generator that does not set environments, as they have no addresses yet."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name: str):
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment) -> None: ...


class _Whole(JITCodeLibrary):
    """The library of a function that Python calls; sets the environments of all functions linked into it."""

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        set_env = self._codegen.set_env  # type: ignore[attr-defined]  # of JITCPUCodegen
        names = (gv.name for gv in self._final_module.global_variables if gv.name.startswith(_ENVIRONMENT))
        for name in names:
            environment = lookup_environment(name)
            if environment is not None and self._codegen._engine.is_symbol_defined(name):
                set_env(name, environment)


def _compiler(library_class: type) -> type:
    class IntoLibrary(Compiler):
        def __init__(self, *args, **keywords):
            super().__init__(*args, **keywords)
            if self.state.library is None:
                self.state.library = library_class(self.state.targetctx.codegen(), library_class.__name__)
                self.state.library.enable_object_caching()

        def define_pipelines(self):
            """The pipelines without the passes in _IN_VAIN, which take an eighth of the time."""
            managers = super().define_pipelines()
            for manager in managers:
                manager.passes = [one for one in manager.passes if one[0] not in _IN_VAIN]
                manager.finalize()
            return managers

    return IntoLibrary


TEXT, WHOLE = _compiler(_Text), _compiler(_Whole)  # pipeline classes


class _Inner(CPUDispatcher):
    """A dispatcher that gives compiled code the LLVM text; calls from Python use separately compiled code."""

    def add_overload(self, cres) -> None:
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args, **keywords):
        return _alone(self.py_func)


@functools.cache
def _alone(function: Callable):
    return numba.njit(pipeline_class=WHOLE)(function)


def inner(function: Callable | None = None, **options) -> Any:
    """Replaces `numba.njit` for functions that only compiled code calls."""
    if function is None:
        return functools.partial(inner, **options)
    options |= {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _Inner(function, targetoptions=options, pipeline_class=TEXT)
