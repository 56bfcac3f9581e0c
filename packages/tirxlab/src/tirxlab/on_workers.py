"""Tasks for a Dask cluster, as bytes that only the worker that runs them unpickles.

The scheduler and its workers can import what is installed, this module included, but not the course's own
modules, because `dask worker` does not look in the folder where it starts. `made` puts those on the path.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable

from tirxlab.checkout import IMPORTED


def task(function: Callable, *arguments: object) -> bytes:
    return pickle.dumps((function, arguments))


def made(given: bytes) -> bytes:
    """Runs a task on a worker; its result as bytes."""
    sys.path[:0] = [str(folder) for folder in IMPORTED if str(folder) not in sys.path]
    function, arguments = pickle.loads(given)
    return pickle.dumps(function(*arguments))
