"""Where an artifact runs: `sim` (ptxsim) or `cuda` (a real GPU). Both give the same `Run`.

A device is a module with NAME, `run(artifact, arrays, ...)` and `measure(artifact, arrays, ...)`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

DEVICES = ("sim", "cuda")


class DeviceError(ValueError):
    """The device or the arrays do not fit the artifact; one line says what to do."""


@dataclass
class Run:
    """The result of one launch."""

    outputs: dict  # buffer name -> the array that was passed in, now written
    seconds: float  # wall time, set-up excluded
    verdict: str  # "clean" | "review" | "error" | "incomplete" | "not checked"
    findings: list = field(default_factory=list)  # ptxsim.Finding, most fundamental first
    not_checked: list[str] = field(default_factory=list)  # what this run could not have noticed
    stats: dict = field(default_factory=dict)
    stdout: str = ""  # what the kernel printed
    ran: bool = True  # False: the device could not run the kernel to its end, and the arrays are meaningless
    trace: Any = None  # events, if asked for


def device_name(name: str | None = None) -> str:
    """`name`, else $LAB_DEVICE, else cuda on a tcgen05-capable machine, else sim; DeviceError if there is no
    such device. Imports neither device.
    """
    name = name or os.environ.get("LAB_DEVICE") or default_device()
    if name not in DEVICES:
        raise DeviceError(f"unknown device {name!r}: use one of {', '.join(DEVICES)}")
    return name


def get_device(name: str | None = None) -> ModuleType:
    """The device of that name, chosen as `device_name` does."""
    return importlib.import_module(f"tirxlab.devices.{device_name(name)}")


def default_device() -> str:
    """cuda if torch is installed and a GPU of compute capability 10.x is present (12.x has no tcgen05)."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("cuda") is None:
        return "sim"
    from tirxlab.devices import driver

    return "cuda" if any(major == 10 for major, _ in driver.capabilities()) else "sim"


def by_name(artifact, arrays) -> dict:
    """Buffer name -> array; `arrays` are in the order of the kernel's parameters, or a dict already.

    DeviceError if one does not fit: each must be a C-contiguous numpy array or torch tensor of its buffer's
    shape and dtype.
    """
    if artifact.is_draft:
        raise DeviceError("this is a draft: it holds no PTX yet")
    names = [b.name for b in artifact.buffers]
    if not isinstance(arrays, dict):
        if len(arrays) != len(names):
            raise DeviceError(f"the kernel takes {len(names)} arrays ({', '.join(names)}), got {len(arrays)}")
        arrays = dict(zip(names, arrays, strict=True))
    for buffer in artifact.buffers:
        if buffer.name not in arrays:
            raise DeviceError(f"no array given for {buffer.name}")
        _check(buffer, arrays[buffer.name])
    return arrays


def require_fit(buffer, array) -> None:
    """DeviceError unless an array has the buffer's shape and dtype."""
    if tuple(array.shape) != buffer.shape:
        raise DeviceError(
            f"{buffer.name} has shape {tuple(array.shape)}, the kernel was built for {buffer.shape}"
        )
    dtype = str(array.dtype).removeprefix("torch.")
    if dtype != buffer.dtype:
        raise DeviceError(f"{buffer.name} is {dtype}, the kernel was built for {buffer.dtype}")


def _check(buffer, array) -> None:
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise DeviceError(
            f"{buffer.name} must be a numpy array or a torch tensor, not {type(array).__name__}"
        )
    require_fit(buffer, array)
    dense = array.is_contiguous() if hasattr(array, "is_contiguous") else array.flags.c_contiguous
    if not dense:
        raise DeviceError(
            f"{buffer.name} is not contiguous: pass {buffer.name}.contiguous() or np.ascontiguousarray"
        )
