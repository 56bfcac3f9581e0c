"""numpy's BLAS on one thread: parallel work is whole clusters, not BLAS calls."""

from __future__ import annotations

import functools

import numpy as np  # noqa: F401  its BLAS is there to be found
from threadpoolctl import ThreadpoolController


@functools.cache
def _libraries() -> ThreadpoolController:
    """Looked for once: it costs a millisecond, as much as a short launch."""
    return ThreadpoolController()


def one_thread():
    """A context in which it has one thread."""
    return _libraries().limit(limits=1)
