"""Results of tcgen05.mma on their way to tensor memory."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np

from ptxsim.machine.tensor_memory import TensorMemory
from ptxsim.units import tcgen05_result


def test_sums_that_leave_fp16_are_results_and_no_warnings():
    memory = TensorMemory()
    memory.cells[:2, :2] = np.array([[-np.inf, 60000], [1, 2]], np.float16).view(np.uint16)
    product = np.array([[np.inf, 60000], [3, 4]], np.float32)
    task = SimpleNamespace(shape=SimpleNamespace(d_type="f16"), d_scale=0)
    op = SimpleNamespace(task=task, accumulates=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tcgen05_result._store(memory, op, product, (0, 0), (0, 0), (2, 2))
    held = memory.cells[:2, :2].astype(np.uint16).view(np.float16)
    assert np.array_equal(held, np.array([[np.nan, np.inf], [4, 6]], np.float16), equal_nan=True)
