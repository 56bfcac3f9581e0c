"""Errors of ptxsim itself, kept apart from everything that a kernel can do wrong."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

from ptxsim.frontend.ast import PtxError


class Fault(RuntimeError):
    """ptxsim itself failed: nothing is known about the kernel. `__cause__` is the original exception."""


@contextlib.contextmanager
def faults() -> Iterator[None]:
    """Around a run: turns what it raises into a Fault, except PtxError (unmodelled PTX) and MemoryError."""
    try:
        yield
    except (PtxError, MemoryError):
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('ptxsim/')[2]}:{place.lineno}"
        raise Fault(
            f"ptxsim itself failed, not the kernel, about which nothing is known now: {type(error).__name__} "
            f"at {where}: {error}"
        ) from error
