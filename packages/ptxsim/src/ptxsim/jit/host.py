"""Addresses of numpy arrays in the memory of this process, for compiled code."""

from __future__ import annotations

import ctypes

import numpy as np

_first_byte = ctypes.c_char.from_buffer


def address_in_host(array: np.ndarray) -> int:
    """The address of the first byte of a contiguous array; `array.ctypes.data` takes five times as long."""
    try:
        return ctypes.addressof(_first_byte(array))  # type: ignore[arg-type]  # an array is a buffer
    except (TypeError, ValueError):  # it is empty, or read-only
        return array.ctypes.data
