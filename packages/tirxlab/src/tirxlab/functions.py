"""A compiled kernel as a function `D = function(A, B)` of numpy, PyTorch or JAX arrays (in `jax.jit`, too).

Outputs are allocated here. On a GPU the launch goes into the caller's stream and the call returns at once;
arrays that are not on a GPU run on the simulator. JAX uses `jax-tvm-ffi`; nothing here needs TVM.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  (teaches numpy "bfloat16" and the 8-bit floats)
import numpy as np

from tirxlab.artifact import Artifact
from tirxlab.devices import DeviceError, driver, require_fit, sim

_BOTH = "{} is read and written: a function has inputs and outputs"


def compiled(kernel, arch: str) -> Function:
    """Builds a kernel made with `@Tx.prim_func` for `arch`; BuildError if that fails."""
    from tirxlab.toolchain.build import BuildError, build

    artifact = build(kernel, arch)
    if both := [b.name for b in artifact.buffers if b.role == "inout"]:
        raise BuildError(_BOTH.format(both[0]), kernel.source_file, kernel.source_line)
    return Function(artifact)


class Function:
    """An artifact that can be called with its inputs, in order; returns its output, or a tuple of outputs.

    Raises DeviceError for arrays that do not fit, and for a run on the simulator that ends with an error.
    """

    def __init__(self, artifact: Artifact):
        inout = [b.name for b in artifact.buffers if b.role == "inout"]
        if inout:
            raise DeviceError(_BOTH.format(inout[0]))
        self.artifact = artifact
        self.inputs = tuple(b for b in artifact.buffers if b.role == "in")
        self.outputs = tuple(b for b in artifact.buffers if b.role == "out")
        self._launchers: dict[int, Callable] = {}  # by device, for torch
        self._kernels: dict[int, driver.Kernel] = {}  # by device, for JAX

    def __call__(self, *arrays) -> Any:
        if len(arrays) != len(self.inputs):
            names = ", ".join(b.name for b in self.inputs)
            raise DeviceError(f"the kernel takes {len(self.inputs)} inputs ({names}), got {len(arrays)}")
        call = {"torch": self._torch, "jax": self._jax}.get(_framework(arrays[0]), self._numpy)
        for buffer, array in zip(self.inputs, arrays, strict=True):
            require_fit(buffer, array)
        results = call(arrays)
        return results[0] if len(results) == 1 else tuple(results)

    def _numpy(self, arrays) -> list:
        arrays = [np.ascontiguousarray(a) for a in arrays]
        outputs = [np.empty(b.shape, b.dtype) for b in self.outputs]
        self._simulate(self._in_order(arrays, outputs))
        return outputs

    def _in_order(self, inputs, outputs) -> list:
        """Arrays in the order of the kernel's parameters."""
        given = dict(zip((b.name for b in (*self.inputs, *self.outputs)), (*inputs, *outputs), strict=True))
        return [given[b.name] for b in self.artifact.buffers]

    def _simulate(self, arrays: list) -> None:
        run = sim.run(self.artifact, arrays)
        if run.verdict in ("error", "incomplete"):
            raise DeviceError(str(run.findings[0]))

    def _torch(self, tensors) -> list:
        import torch

        where = tensors[0].device
        tensors = [t.contiguous() for t in tensors]
        outputs = [torch.empty(b.shape, dtype=getattr(torch, b.dtype), device=where) for b in self.outputs]
        if where.type == "cuda":
            self._launcher(where.index)(*self._in_order(tensors, outputs))
        else:
            self._simulate(self._in_order(*([_torch_view(t, torch) for t in x] for x in (tensors, outputs))))
        return outputs

    def _kernel(self, device: int) -> driver.Kernel:
        """The kernel loaded on a GPU, whose context is made current in this thread."""
        if device not in self._kernels:
            self._kernels[device] = driver.Kernel(self.artifact, device)
        else:
            driver.use_device(device)
        return self._kernels[device]

    def _launcher(self, device: int) -> Callable:
        if device not in self._launchers:
            from tirxlab.devices import cuda

            self._launchers[device] = cuda.launcher(self.artifact, device)
        return self._launchers[device]

    def _jax(self, arrays) -> list:
        import jax

        # jit may trace on one platform and run on the other, so both handlers are registered
        for platform in ("cpu", "cuda") if driver.capabilities() else ("cpu",):
            self._register(platform)
        shapes = [jax.ShapeDtypeStruct(b.shape, np.dtype(b.dtype)) for b in self.outputs]
        return list(jax.ffi.ffi_call(self._target, shapes)(*arrays))

    @functools.cached_property
    def _target(self) -> str:
        """Name under which XLA knows the kernel; equal artifacts share it."""
        return "tirxlab_" + hashlib.sha256(self.artifact.to_bytes()).hexdigest()[:24]

    def _register(self, platform: str) -> None:
        if (platform, self._target) in _REGISTERED:
            return
        import tvm_ffi
        from jax_tvm_ffi import register_ffi_target

        names = [b.name for b in self.artifact.buffers]

        def simulate(*tensors):
            ordered = self._in_order(tensors[: len(self.inputs)], tensors[len(self.inputs) :])
            self._simulate([_host_view(*pair) for pair in zip(ordered, self.artifact.buffers, strict=True)])

        def launch(*tensors):  # XLA passes inputs, then outputs
            ordered = self._in_order(tensors[: len(self.inputs)], tensors[len(self.inputs) :])
            device = tensors[0].device
            pointers = {name: tensor.data_ptr() for name, tensor in zip(names, ordered, strict=True)}
            self._kernel(device.index).launch(pointers, tvm_ffi.get_raw_stream(device))

        handler = simulate
        if platform == "cuda":
            handler = launch
            self._kernel(0)  # loads the module now, not while XLA runs
        name = {"cuda": "gpu"}.get(platform, platform)
        register_ffi_target(self._target, tvm_ffi.convert(handler), ["args", "rets"], platform=name)
        _REGISTERED.add((platform, self._target))


_REGISTERED: set[tuple[str, str]] = set()  # what this process has registered with XLA, for good


def _framework(array) -> str:
    """The array's framework, "torch", "jax" or "numpy"; a tracer of jax.jit counts as JAX's."""
    root = type(array).__module__.split(".")[0]
    if root in ("jax", "jaxlib"):
        return "jax"
    return "torch" if root == "torch" and "torch" in sys.modules else "numpy"


def _torch_view(tensor, torch) -> np.ndarray:
    """A CPU tensor's memory as a numpy array of the same dtype."""
    raw = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    return raw.view(str(tensor.dtype).removeprefix("torch.")).reshape(tuple(tensor.shape))


def _host_view(tensor, buffer) -> np.ndarray:
    """The host memory behind a tensor that XLA passed."""
    count = int(np.prod(buffer.shape)) * np.dtype(buffer.dtype).itemsize
    raw = (ctypes.c_uint8 * count).from_address(tensor.data_ptr())
    return np.frombuffer(memoryview(raw), np.uint8).view(buffer.dtype).reshape(buffer.shape)
