"""Artifacts on the CUDA driver in this process: load the cubin, encode tensor maps, launch on a stream.

Needs cuda-bindings and a driver; no TVM, no torch, no CUDA toolkit. Nothing here waits for the GPU except
`synchronize` and `timed`.
"""

from __future__ import annotations

import ctypes
import re
import statistics
from collections.abc import Callable
from typing import Any

from tirxlab.artifact import Artifact, TensorMapParam
from tirxlab.devices import DeviceError

# Tensor-map element types by dtype name (CUDA driver API, CUtensorMapDataType).
_MAP_TYPES = {
    "uint8": "UINT8",
    "int8": "UINT8",
    "float8_e4m3fn": "UINT8",
    "float8_e5m2": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "int32": "INT32",
    "uint64": "UINT64",
    "int64": "INT64",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
}
_SCALARS = {
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_SWIZZLE = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_OPTIONAL_SHARED = 48 << 10  # bytes a kernel may use without opting in (CUDA guide, compute capabilities)

POISON = 0xFF  # fills an output before it is timed: NaN in every floating-point type


class LaunchError(RuntimeError):
    """The driver reported an error; `code` is its name, such as CUDA_ERROR_ILLEGAL_ADDRESS."""

    def __init__(self, code: str, call: str):
        super().__init__(f"{code} in {call}")
        self.code = code


def api():
    """cuda.bindings.driver, initialised; DeviceError if there is no driver or no GPU."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceError(
            f"cuda-bindings cannot be loaded ({error}): pip install 'cuda-bindings==13.0.*'"
        ) from None
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # libcuda.so is not there
        raise DeviceError(f"no CUDA driver on this machine ({error}): use --device sim") from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"no usable GPU on this machine ({status.name}): use --device sim")
    return driver


def call(function, *args) -> Any:
    """Call a driver function; its result, or LaunchError."""
    status, *values = function(*args)
    if status.value:
        raise LaunchError(status.name, function.__name__)
    return values[0] if len(values) == 1 else tuple(values)


def capabilities() -> list[tuple[int, int]]:
    """Compute capability (major, minor) of each GPU; [] if there is none."""
    try:
        driver = api()
        return [capability(driver, i) for i in range(call(driver.cuDeviceGetCount))]
    except (DeviceError, LaunchError):
        return []


def capability(driver, device: int) -> tuple[int, int]:
    """(major, minor) of one GPU."""
    kind = driver.CUdevice_attribute
    names = (
        kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    )
    major, minor = (call(driver.cuDeviceGetAttribute, name, device) for name in names)
    return major, minor


def use_device(index: int = 0) -> str:
    """Make the primary context of GPU `index` (the one that torch uses) current; returns the GPU's name."""
    driver = api()
    device = call(driver.cuDeviceGet, index)
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, device))
    return call(driver.cuDeviceGetName, 128, device).split(b"\0")[0].decode()


def image_for(arch: str, major: int, minor: int, gpu: str) -> str:
    """Which part of an artifact for `arch` this GPU can load: "cubin" or "ptx". DeviceError if neither.

    sm_XYa code runs only on X.Y; plain code runs as cubin on X.Y and later of the same X, and as PTX
    (compiled by the driver) on anything later (CUDA guide, "Compute Capability" and PTX ISA, `.target`).
    """
    built = re.fullmatch(r"sm_(\d+)(\d)([af]?)", arch)
    if built is None:
        raise DeviceError(f"{arch!r} is not a GPU architecture: an artifact has sm_90a or the like")
    want, feature = (int(built[1]), int(built[2])), built[3]
    have = (major, minor)
    same_major = have[0] == want[0] and have[1] >= want[1]
    if have == want or (same_major and feature != "a"):
        return "cubin"
    if have > want and not feature:
        return "ptx"
    raise DeviceError(
        f"this artifact is built for {arch}; this GPU is sm_{major}{minor} ({gpu}): "
        "build the kernel for it, or use --device sim"
    )


class Kernel:
    """An artifact loaded into the current context. `launch` is asynchronous."""

    def __init__(self, artifact: Artifact, device: int = 0):
        self.artifact, self.driver = artifact, api()
        gpu = use_device(device)
        kind = image_for(artifact.arch, *capability(self.driver, device), gpu)
        image = artifact.cubin if kind == "cubin" and artifact.cubin else artifact.ptx.encode() + b"\0"
        self.module = call(self.driver.cuModuleLoadData, image)
        self.function = call(self.driver.cuModuleGetFunction, self.module, artifact.entry.encode())
        if artifact.shared_bytes > _OPTIONAL_SHARED:
            name = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call(self.driver.cuFuncSetAttribute, self.function, name, artifact.shared_bytes)
        self._maps: dict[tuple, object] = {}
        self.launches = 0  # so far

    def launch(self, pointers: dict[str, int], stream: int = 0) -> None:
        """Launch once on `stream` (a CUstream handle). `pointers` are device addresses by buffer name."""
        values, types = [], []
        for param in self.artifact.params:
            value, kind = self._argument(param, pointers)
            values.append(value)
            types.append(kind)
        call(
            self.driver.cuLaunchKernelEx,
            self._config(stream),
            self.function,
            (tuple(values), tuple(types)),
            0,
        )
        self.launches += 1

    def _argument(self, param, pointers: dict[str, int]):
        """(value, ctypes type) as cuda-bindings takes parameters; type None: the value packs itself."""
        if param.kind == "scalar":
            return param.value, _SCALARS[param.dtype]
        address = pointers[param.buffer] + param.byte_offset
        if param.kind == "buffer":
            return address, ctypes.c_void_p
        key = (param, address)
        if key not in self._maps:
            self._maps[key] = encode(self.driver, param, address)
        return self._maps[key], None

    def _config(self, stream: int):
        artifact, driver = self.artifact, self.driver
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = artifact.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = artifact.block
        config.sharedMemBytes = artifact.shared_bytes
        config.hStream = stream
        if artifact.cluster != (1, 1, 1):
            shape = driver.CUlaunchAttribute()
            shape.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            shape.value.clusterDim.x, shape.value.clusterDim.y, shape.value.clusterDim.z = artifact.cluster
            config.attrs, config.numAttrs = [shape], 1
        return config

    def timed(
        self,
        pointers: dict[str, int],
        warmup: int,
        repeat: int,
        stream: int = 0,
        poison=(),
        before: Callable[[int], None] = lambda left: None,
        after: Callable[[int], None] = lambda left: None,
    ) -> float:
        """Median milliseconds of `repeat` launches by events, with the L2 cache flushed before each.

        poison: (address, bytes) of memory to overwrite before each launch, so that an earlier launch's output
        cannot pass for the next one's. before(left), after(left): called around each launch, with the number
        of launches left; `after` is called when the launch has completed.
        """
        driver = self.driver
        size = 2 * self._l2_bytes()
        scratch = call(driver.cuMemAlloc, size)
        begin, end = call(driver.cuEventCreate, 0), call(driver.cuEventCreate, 0)
        try:
            for _ in range(warmup):
                self.launch(pointers, stream)
            times = []
            for left in reversed(range(repeat)):
                before(left)
                for address, length in poison:
                    call(driver.cuMemsetD8Async, address, POISON, length, stream)
                call(driver.cuMemsetD8Async, scratch, 0, size, stream)
                call(driver.cuEventRecord, begin, stream)
                self.launch(pointers, stream)
                call(driver.cuEventRecord, end, stream)
                call(driver.cuEventSynchronize, end)
                times.append(call(driver.cuEventElapsedTime, begin, end))
                after(left)
        finally:
            for event in (begin, end):
                driver.cuEventDestroy(event)
            driver.cuMemFree(scratch)
        return statistics.median(times)

    def _l2_bytes(self) -> int:
        name = self.driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        return call(self.driver.cuDeviceGetAttribute, name, call(self.driver.cuCtxGetDevice))


def encode(driver, param: TensorMapParam, address: int):
    """The 128-byte tensor map of `param` for a buffer at `address` (cuTensorMapEncodeTiled)."""
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    return call(
        driver.cuTensorMapEncodeTiled,
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_MAP_TYPES[param.dtype]}"),
        len(param.dims),
        address,
        [wide(d) for d in param.dims],
        [wide(s) for s in param.strides] or [wide(16)],  # rank 1 has none, but the driver wants a pointer
        [narrow(b) for b in param.box],
        [narrow(e) for e in param.element_strides],
        driver.CUtensorMapInterleave(param.interleave),
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLE[param.swizzle]}"),
        driver.CUtensorMapL2promotion(param.l2_promotion),
        driver.CUtensorMapFloatOOBfill(("zero", "nan").index(param.fill)),
    )
