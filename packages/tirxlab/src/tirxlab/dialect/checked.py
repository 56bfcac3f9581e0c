"""`Tx.ptx` and `Tx.cuda`: TVM's instruction namespaces, with names and arguments checked first.

TVM lets many wrong arguments through (a buffer for a pointer, 500 TMEM columns) and reports the others
with its internal function names; here each mistake is reported with the names that the student wrote.
"""

import contextlib
import difflib
import functools
import inspect
import os
from collections.abc import Iterable

from tvm.tirx import BufferLoad, is_buffer_var

from .counts import countable
from .debug import printf
from .docs import documented
from .groups import one_group
from .masks import signalled
from .sync import BarrierArray

_POINTER_FIRST = {
    "ptx.mbarrier.init": "bar.ptr_to([i])",
    "ptx.mbarrier.try_wait": "bar.ptr_to([i])",
    "ptx.mbarrier.arrive": "bar.ptr_to([i])",
    "ptx.mbarrier.arrive.expect_tx": "bar.ptr_to([i])",
    "ptx.tcgen05.commit": "bar.ptr_to([i])",
    "ptx.tcgen05.alloc": "Tx.address_of(tmem_addr)",
}
_OURS = {"cuda.printf": printf}  # used instead of TVM's
_NUMBERS = {  # position and name of a number, its check, the instruction's name in that check's messages
    "ptx.mbarrier.init": (1, "thread_count", countable, "Tx.ptx.mbarrier.init(bar, thread_count)"),
    "ptx.tcgen05.commit": (2, "cta_mask", signalled, "Tx.ptx.tcgen05.commit"),
}
_TMEM_COLUMNS = (32, 64, 128, 256, 512)  # PTX ISA 9.7.16.7.1


class Checked:
    """A namespace or instruction of TVM under its dotted name, such as `ptx.mbarrier.arrive`."""

    def __init__(self, target, path: str):
        self._target, self._path = target, path
        self.__doc__ = documented().get(f"Tx.{path}", getattr(target, "__doc__", None))

    def __repr__(self):
        return f"Tx.{self._path}"

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__") and not hasattr(self._target, name):
            raise AttributeError(name)
        try:
            target = _OURS.get(f"{self._path}.{name}") or getattr(self._target, name)
            return Checked(target, f"{self._path}.{name}")
        except AttributeError:
            raise AttributeError(
                f"Tx.{self._path} has no {name!r}{meant(self._path, name, dir(self._target))}"
            ) from None

    def __call__(self, *args, **kwargs):
        if not callable(self._target):
            raise TypeError(f"Tx.{self._path} is a group of instructions, not one")
        self._check_pointer(args)
        self._check_none(args, kwargs)
        self._check_group(args, kwargs)
        args = _tmem(self._path, self._target, args, kwargs)
        if self._path in _NUMBERS:
            position, name, check, where = _NUMBERS[self._path]
            for number in [*args[position : position + 1], *(v for k, v in kwargs.items() if k == name)]:
                check(where, number)
        try:
            return self._target(*args, **kwargs)
        except TypeError as error:
            reason = str(error).split("() ", 1)[-1]
            raise TypeError(f"Tx.{self._path}{_parameters(self._target)}: {reason}") from None

    def _check_pointer(self, args):
        expected = _POINTER_FIRST.get(self._path)
        if expected is None or not args:
            return
        given = args[0]
        number = isinstance(given, int) and not self._path.endswith("commit")
        if number or is_buffer_var(given) or isinstance(given, BufferLoad | BarrierArray):
            raise TypeError(f"Tx.{self._path}: the first argument is a pointer: {expected}")

    def _check_none(self, args: tuple, kwargs: dict):
        """TypeError for a None that is not the argument's default; TVM crashes on some."""
        wrong: list[str] = []
        with contextlib.suppress(TypeError, ValueError):  # the call itself reports wrong arguments
            signature = inspect.signature(self._target)
            given = signature.bind_partial(*args, **kwargs).arguments
            wrong = [n for n, v in given.items() if v is None and signature.parameters[n].default is not None]
        if wrong:
            raise TypeError(f"Tx.{self._path}: {wrong[0]} is None, which is not a value on the GPU")

    def _check_group(self, args: tuple, kwargs: dict):
        """All tcgen05 instructions of a kernel take the same cta_group (PTX ISA 9.7.16.2.1)."""
        if self._path.startswith("ptx.tcgen05.") and "cta_group" in _names(self._target):
            with contextlib.suppress(TypeError):  # the call itself reports wrong arguments
                given = inspect.signature(self._target).bind_partial(*args, **kwargs)
                given.apply_defaults()
                one_group(f"Tx.{self._path}", given.arguments["cta_group"])


def _names(function) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


@functools.cache
def _everything() -> dict[str, list[str]]:
    """The last part of each documented name -> the full names that end in it."""
    found: dict[str, list[str]] = {}
    for path in documented():
        if path.startswith("Tx."):
            found.setdefault(path.rpartition(".")[2], []).append(path)
    return found


def meant(path: str, name: str, here: Iterable[str] = ()) -> str:
    """`; did you mean Tx.cuda.cta_sync?`: a longer name here, else the same elsewhere, else a similar one."""
    longer = [known for known in here if known.endswith(f"_{name}") and not known.startswith("_")]
    if longer:
        return f"; did you mean Tx.{path}.{longer[0]}?"
    words = [name, *(part for n in (1, 2) for part in ["_".join(name.split("_")[n:])] if part)]
    for word in words:
        if word in _everything():
            return f"; did you mean {_nearest(_everything()[word], path)}?"
    close = difflib.get_close_matches(name, list(_everything()), 3, 0.7)
    return (
        f"; did you mean {_nearest([p for word in close for p in _everything()[word]], path)}?"
        if close
        else ""
    )


def _nearest(paths: list[str], path: str) -> str:
    """The name with the longest common beginning with `Tx.path`; of equals, the shortest."""
    return min(paths, key=lambda p: (-len(os.path.commonprefix([p, f"Tx.{path}."])), len(p)))


def _parameters(function) -> str:
    try:
        names = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "()"
    return "(" + ", ".join(p.name for p in names if p.kind is not p.VAR_KEYWORD) + ")"


def _tmem(path: str, function, args: tuple, kwargs: dict) -> tuple:
    """Checks arguments of tcgen05.alloc and dealloc; dealloc may take the buffer that holds the address."""
    if path not in ("ptx.tcgen05.alloc", "ptx.tcgen05.dealloc"):
        return args
    given = inspect.signature(function).bind_partial(*args, **kwargs).arguments.get("n_cols")
    if isinstance(given, int) and given not in _TMEM_COLUMNS:
        raise ValueError(f"Tx.{path}: n_cols is one of {_TMEM_COLUMNS}, not {given}")
    if path.endswith("dealloc") and args and is_buffer_var(args[0]):
        return (args[0][0], *args[1:])
    return args
