"""Common slips in a builder hgemm_vN outside its kernel, each reported with file, line and remedy."""

import functools
import linecache
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

REMEDIES = {
    "NameError": "check the spelling; names of the language come from `from tirxlab import ...`",
    "BdbQuit": "there is no keyboard here: print in the builder, Tx.cuda.printf in the kernel",
    "EOF when reading": "there is no keyboard here: give the value in the code",
    "ZeroDivisionError": "a size or a number of tiles is 0 here: check what it is divided by",
    "'PrimFunc' object is not callable": "the kernel is not called here: `return kernel`, no parentheses",
}


class BuilderError(ValueError):
    """A builder failed, or returned something other than a kernel. The message names the student's line."""


def guarded(function: Callable, path: Path) -> Callable:
    """The builder, with errors in its own code raised as BuilderError.

    The file's own ValueErrors pass through (a shape that does not fit), and kernels that are refused.
    """

    @functools.wraps(function)
    def make(*size: int, **options):
        try:
            made = function(*size, **options)
        except ValueError as error:
            raised = traceback.extract_tb(error.__traceback__)[-1].filename
            if type(error) is not ValueError or raised == str(path.resolve()):
                raise
            raise BuilderError(told(error, function, path)) from error
        except Exception as error:
            raise BuilderError(told(error, function, path)) from error
        if made is None:
            where, _ = place(function, None, path)
            raise BuilderError(f"{where}: {function.__name__} returns nothing: end it with `return kernel`")
        if isinstance(made, FunctionType) and made.__code__.co_filename == str(path.resolve()):
            line = made.__code__.co_firstlineno
            raise BuilderError(
                f"{path.name}:{line}: `{made.__name__}` is a plain Python function: "
                f"write @Tx.prim_func(tirx=True) on the line above its def"
            )
        return made

    return make


def told(error: Exception, function: Callable, path: Path) -> str:
    """The message `gemm_kernels.py:80: NameError: ...`, with the line's text and what to do."""
    where, text = place(function, error, path)
    said = f"{type(error).__name__}: {error}".rstrip(": ").removeprefix("ValueError: ")
    remedy = next((advice for sign, advice in REMEDIES.items() if sign in said), "")
    return "\n".join(filter(None, [f"{where}: {said}", f"    {text}", remedy and f"  hint: {remedy}"]))


def place(function: Callable, error: Exception | None, path: Path) -> tuple[str, str]:
    """(file:line, text) of the line in the student's file that raised the error, else of the def."""
    trace = traceback.extract_tb(error.__traceback__) if error else []
    lines = [frame.lineno for frame in trace if frame.lineno and frame.filename == str(path.resolve())]
    line = lines[-1] if lines else function.__code__.co_firstlineno
    return f"{path.name}:{line}", linecache.getline(str(path.resolve()), line).strip()
