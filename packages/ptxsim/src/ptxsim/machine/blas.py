"""Keeps numpy's BLAS on one thread: the simulator parallelises over clusters, not within BLAS calls."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import numpy as np  # noqa: F401  loads the BLAS that threadpoolctl looks for
from threadpoolctl import ThreadpoolController


@functools.cache
def _libraries() -> ThreadpoolController:
    """The loaded BLAS libraries, found only once: the search takes as long as a short launch, 1 ms."""
    return ThreadpoolController()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread."""
    several = [(one, one.num_threads) for one in _libraries().lib_controllers if one.num_threads != 1]
    for library, _ in several:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in several:
            library.set_num_threads(threads)
