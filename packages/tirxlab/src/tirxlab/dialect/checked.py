"""`Tx.ptx` and `Tx.cuda`: TVM's instruction namespaces, with names and arguments checked on the way in.

TVM passes many wrong arguments on (a buffer for a pointer, 500 TMEM columns) and reports the others
by its internal function names; here each mistake is named as the student wrote it.
"""

import difflib
import inspect

from tvm.tirx import BufferLoad, is_buffer_var

from .debug import printf
from .docs import documented
from .sync import BarrierArray

_POINTER_FIRST = {
    "ptx.mbarrier.init": "bar.ptr_to([i])",
    "ptx.mbarrier.try_wait": "bar.ptr_to([i])",
    "ptx.mbarrier.arrive": "bar.ptr_to([i])",
    "ptx.mbarrier.arrive.expect_tx": "bar.ptr_to([i])",
    "ptx.tcgen05.commit": "bar.ptr_to([i])",
    "ptx.tcgen05.alloc": "Tx.address_of(tmem_addr)",
}
_OURS = {"cuda.printf": printf}  # in place of TVM's
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
            known = [n for n in dir(self._target) if not n.startswith("_")]
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean Tx.{self._path}.{close[0]}?" if close else ""
            raise AttributeError(f"Tx.{self._path} has no {name!r}{hint}") from None

    def __call__(self, *args, **kwargs):
        if not callable(self._target):
            raise TypeError(f"Tx.{self._path} is a group of instructions, not one")
        self._check_pointer(args)
        args = _tmem(self._path, self._target, args, kwargs)
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
        if is_buffer_var(given) or isinstance(given, BufferLoad | BarrierArray):
            raise TypeError(f"Tx.{self._path}: the first argument is a pointer: {expected}")


def _parameters(function) -> str:
    try:
        names = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "()"
    return "(" + ", ".join(p.name for p in names if p.kind is not p.VAR_KEYWORD) + ")"


def _tmem(path: str, function, args: tuple, kwargs: dict) -> tuple:
    """Checks of tcgen05.alloc and dealloc; a buffer that holds the address stands for the address."""
    if path not in ("ptx.tcgen05.alloc", "ptx.tcgen05.dealloc"):
        return args
    given = inspect.signature(function).bind_partial(*args, **kwargs).arguments.get("n_cols")
    if isinstance(given, int) and given not in _TMEM_COLUMNS:
        raise ValueError(f"Tx.{path}: n_cols is one of {_TMEM_COLUMNS}, not {given}")
    if path.endswith("dealloc") and args and is_buffer_var(args[0]):
        return (args[0][0], *args[1:])
    return args
