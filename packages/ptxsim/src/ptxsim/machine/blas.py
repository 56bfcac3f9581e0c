"""numpy's BLAS on one thread: parallel work is whole clusters, not BLAS calls."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import numpy as np  # noqa: F401  its BLAS is there to be found
from threadpoolctl import ThreadpoolController


@functools.cache
def _libraries() -> ThreadpoolController:
    """Looked for once: it costs a millisecond, as much as a short launch."""
    return ThreadpoolController()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """A context in which it has one thread."""
    several = [(one, one.num_threads) for one in _libraries().lib_controllers if one.num_threads != 1]
    for library, _ in several:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in several:
            library.set_num_threads(threads)
