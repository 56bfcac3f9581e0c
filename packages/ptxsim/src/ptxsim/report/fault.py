"""A mistake of ptxsim's own that a run met, kept apart from all that a kernel can do wrong."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

from ptxsim.frontend.ast import PtxError


class Fault(RuntimeError):
    """ptxsim itself failed: nothing is known about the kernel. `__cause__` is what went wrong."""


@contextlib.contextmanager
def faults() -> Iterator[None]:
    """Around a run: what it raises is a Fault, but for PTX that is not modelled and for lack of memory."""
    try:
        yield
    except (PtxError, MemoryError):
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('ptxsim/')[2]}:{place.lineno}"
        raise Fault(
            f"ptxsim itself failed, not the kernel, of which nothing is known now: {type(error).__name__} "
            f"at {where}: {error}"
        ) from error
