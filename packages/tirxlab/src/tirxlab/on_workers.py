"""What a Dask cluster runs: a task as bytes, which nobody reads but the worker that makes it.

A scheduler and its workers know what is installed beside them, this module too. The course's own modules they
find only here: `dask worker` no longer looks in the folder where it starts.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable

from tirxlab.checkout import IMPORTED


def task(function: Callable, *arguments: object) -> bytes:
    return pickle.dumps((function, arguments))


def made(given: bytes) -> bytes:
    """What the function of a task gives, as bytes."""
    sys.path[:0] = [str(folder) for folder in IMPORTED if str(folder) not in sys.path]
    function, arguments = pickle.loads(given)
    return pickle.dumps(function(*arguments))
