"""`compiled`: numba functions of this package, with machine code on disk that is never stale.

numba's own cache checks only the file of a function. The functions that it calls and the constants that it
reads are in other files; if those change, numba would still run the old machine code. Here the name of a file
of machine code is a hash of the function, of everything that it reaches, and of the types of its arguments.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
import types
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from ptxsim.isa.mathlib.inner import WHOLE
from ptxsim.jit import code_cache, shipped

_OURS = __name__.partition(".")[0]
_PLAIN = (int, float, str, bytes, type(None), type(Ellipsis), np.generic, np.dtype)


def compiled(*signature, **options) -> Callable:
    """`numba.njit` with machine code kept in the cache directory: `@compiled()`, `@compiled("i8(i8)")`."""

    def decorate(function: Callable) -> Dispatcher:
        every = {"no_cfunc_wrapper": True, "pipeline_class": WHOLE} | options
        made: Any = numba.njit(*signature, **every)(function)  # type: ignore[call-overload]
        made._cache = _Kept(function, lambda key: (digest(function), _fields(key)))
        return made

    return decorate


def generated(*signatures, **options) -> Callable:
    """`compiled` for source of `import_generated`, whose module name is a hash of all dependencies."""

    def decorate(function: Callable) -> Dispatcher:
        made: Any = numba.njit(**options)(function)
        made._cache = _Kept(function, lambda key: function.__module__)
        for one in signatures:
            made.compile(one)
        if signatures:
            made.disable_compile()
        return made

    return decorate


@functools.cache
def digest(function: Callable) -> str:
    """The hash of a function and of all functions and constants of this package that it reaches."""
    whole, reached = hashlib.sha256(shipped.compiler().encode()), [function]
    for one in reached:  # grows
        for name, value in _read_by(one):
            text, more = _described(value)
            whole.update(f"{name} {text}\0".encode())
            reached += [other for other in more if other not in reached]
    return whole.hexdigest()[:24]


def digest_of_module(module: types.ModuleType) -> str:
    """The hash of all compiled functions in a module."""
    made = (f"{n} {digest(v.py_func)}" for n, v in sorted(vars(module).items()) if isinstance(v, Dispatcher))
    return hashlib.sha256("\0".join(made).encode()).hexdigest()


def code_address(function: Callable) -> int:
    """The address at which C calls the machine code of a compiled function with one signature."""
    (done,) = function.overloads.values()  # type: ignore[attr-defined]  # a Dispatcher
    return done.library.get_pointer_to_function(done.fndesc.llvm_cfunc_wrapper_name)


def _read_by(function: Callable) -> Iterator[tuple[str, object]]:
    """(name, value) of everything that determines a function's machine code."""
    codes = [function.__code__]
    for code in codes:  # grows
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        yield "code", code.co_code
        yield "names", (code.co_varnames, code.co_names)
        yield "constants", tuple(one for one in code.co_consts if not isinstance(one, types.CodeType))
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty one
            yield "cell", cell.cell_contents
    names = {name for code in codes for name in code.co_names}
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, types.ModuleType) and _is_ours(value.__name__):
            yield from ((inner, vars(value)[inner]) for inner in sorted(names & vars(value).keys()))


def _described(value) -> tuple[str, list[Callable]]:
    """(text of a value, functions whose code has to be hashed as well)."""
    if isinstance(value, Dispatcher):
        return f"compiled {sorted(map(repr, value.targetoptions.items()))}", [value.py_func]
    if isinstance(value, _Intrinsic):
        return "intrinsic", [value._defn]
    if isinstance(value, types.FunctionType) and _is_ours(value.__module__):
        return "function", [value]
    if isinstance(value, tuple | list):
        texts, more = zip(*map(_described, value), strict=True) if value else ((), ())
        return f"{type(value).__name__} {texts}", [one for ones in more for one in ones]
    if isinstance(value, frozenset | set):
        return f"set {sorted(map(repr, value))}", []
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}", []
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}", []
    owner = value if hasattr(value, "__qualname__") else type(value)
    return f"{owner.__module__}.{owner.__qualname__}", []


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == _OURS


class _NoFolder(_CacheLocator):
    """A locator that does nothing. numba asks for one when a function is defined, before its callees may
    exist.
    """

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls()

    def ensure_cache_path(self) -> None: ...

    def get_cache_path(self) -> str:
        return ""

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""


def _fields(key: tuple) -> list:
    """The field names of named tuples among the types of a signature."""
    return [getattr(kind, "fields", ()) for kind in key[0]]


class _Files:
    """One file per signature: numba's index file breaks if two processes write it at the same time."""

    def __init__(self, function: Callable, made_of: Callable):
        self._function, self._made_of = function, made_of

    def _name(self, key: tuple) -> str:
        one = self._function
        name = hashlib.sha256(repr((self._made_of(key), key)).encode()).hexdigest()[:24]
        return f"{one.__module__}.{one.__name__}_{name}.code"

    def load(self, key: tuple):
        paths = [code_cache.cache_directory() / self._name(key)]
        if shipped.usable():
            paths.append(shipped.folder() / self._name(shipped.shipped_key(key)))
        for path in paths:
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):  # not there, or damaged
                return pickle.loads(path.read_bytes())
        return None

    def save(self, key: tuple, data) -> None:
        path = code_cache.cache_directory() / self._name(key)
        with contextlib.suppress(OSError):  # the disk is full or read-only: the next process compiles again
            code_cache.write_whole(path, dumps(data))


class _Impl(CompileResultCacheImpl):
    _locator_classes: list = [_NoFolder]


class _Kept(FunctionCache):
    _impl_class = _Impl

    def __init__(self, function: Callable, made_of: Callable):
        """made_of: key -> what the machine code depends on in addition to the key."""
        super().__init__(function)
        self._cache_file = _Files(function, made_of)

    def load_overload(self, sig, target_context):
        """Loads machine code without numba's compiler registries: it needs only numba's runtime."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
        return None
