"""A second opinion on launch data: TVM's own host function, run against recording fakes of the CUDA driver.

The tensors are DLPack structures that claim to live on a GPU; their addresses are never touched.
"""

import ctypes

import tvm
import tvm_ffi
from tvm.target import Target
from tvm.tirx.build import split_host_device_mods, tir_to_runtime

ENCODE = "runtime.cuTensorMapEncodeTiled"
CUDA = 2  # DLDeviceType kDLCUDA
FLOAT = 2  # DLDataTypeCode kDLFloat


class _Tensor(ctypes.Structure):  # DLTensor of dlpack.h
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):  # DLManagedTensor
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class FakeTensor:
    """A float16 matrix at `address`, for `tvm_ffi.from_dlpack`; keep it alive as long as the tensor."""

    def __init__(self, shape, address):
        self.shape = (ctypes.c_int64 * 2)(*shape)
        self.strides = (ctypes.c_int64 * 2)(shape[1], 1)
        self.managed = _Managed(_Tensor(address, CUDA, 0, 2, FLOAT, 16, 1, self.shape, self.strides, 0))

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return CUDA, 0


def launches(kernel, tensors, entry):
    """[(function, arguments)] that TVM's host code calls for `kernel(*tensors)`, in order."""
    calls = []

    def record(name):
        def fake(*args):
            calls.append((name, [a.value if isinstance(a, ctypes.c_void_p) else a for a in args]))

        tvm.register_global_func(name, fake, override=True)

    for name in ("__tvm_set_device", ENCODE, entry):
        record(name)
    target = Target({"kind": "cuda", "arch": "sm_100a"}).with_host(Target("llvm"))
    module = tvm.tirx.transform.BindTarget(target)(tvm.IRModule({"main": kernel}))
    pipeline, finalize_host, _ = tvm.tirx.get_tir_pipeline("tirx")
    with target:
        module = pipeline(module)
    host, _ = split_host_device_mods(module)
    function = tir_to_runtime(finalize_host()(host), {}, Target("llvm"))["main"]
    function(*[tvm_ffi.from_dlpack(t) for t in tensors])
    return calls
