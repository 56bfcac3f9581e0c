"""torch on a machine without a GPU, made to look like torch with one: `with as_cuda():`.

Tensors "on cuda" are in host memory; `is_cuda` and `device` of every tensor say CUDA, and streams and events
do nothing. `dlpack(tensor)` labels a tensor as CUDA for TVM. Nothing here computes.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import types

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

_CPU = torch.device("cpu")
_CUDA = torch.device("cuda", 0)
_IS_CUDA, _DEVICE = torch.Tensor.is_cuda.__get__, torch.Tensor.device.__get__
_GET_DEVICE = torch.Tensor.get_device


_FILLED = ("empty", "zeros", "ones", "full", "rand", "randn", "randint")
_MAKE = {  # functions that create new tensors
    *(getattr(torch, name) for name in (*_FILLED, "arange", "tensor", "clone", "cat")),
    *(getattr(torch, f"{name}_like") for name in _FILLED),
    *(getattr(torch.Tensor, f"new_{name}") for name in (*_FILLED[:4], "tensor")),
    torch.Tensor.clone,
}
ALIGNMENT = 512  # bytes, of CUDA's allocations


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor at an address that CUDA could have chosen: on the CPU torch aligns to 64 bytes. Its storage
    begins there, too, since `as_strided` counts from the beginning of a storage.
    """
    with torch._C.DisableTorchFunction():
        if not tensor.nbytes or tensor.data_ptr() % ALIGNMENT == 0 or not tensor.is_contiguous():
            return tensor
        room = np.empty(tensor.nbytes + ALIGNMENT, np.uint8)
        skip = -room.ctypes.data % ALIGNMENT
        moved = torch.from_numpy(room[skip : skip + tensor.nbytes]).view(tensor.dtype).view(tensor.shape)
        moved.copy_(tensor)
        return moved.requires_grad_(tensor.requires_grad)


def _here(value):
    """The device to use instead of the requested one."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return _CPU
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    return value


class AsCuda(TorchFunctionMode):
    """Gives every call that names a CUDA device the CPU. Calls
    `on_address(tensor)` when an address is read.
    """

    on_address = staticmethod(lambda tensor: None)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.device:
            return function(*args, **(kwargs or {}))
        if function == _IS_CUDA:
            return True
        if function == _DEVICE:
            return _CUDA
        if function == _GET_DEVICE:
            return 0
        if function == torch.Tensor.data_ptr:
            with torch._C.DisableTorchFunction():
                self.on_address(args[0])
        if function in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        kwargs = {k: _here(v) for k, v in (kwargs or {}).items() if k != "pin_memory"}
        made = function(*[_here(a) for a in args], **kwargs)
        return _aligned(made) if function in _MAKE else made


class _Stream:
    cuda_stream = 0
    stream_id = 0

    def __getattr__(self, name):
        return lambda *args, **kwargs: None

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None


class _Properties:
    """The properties of a B200 that programs query."""

    name = "NVIDIA B200"
    multi_processor_count = 148
    major, minor = 10, 0
    total_memory = 180 << 30
    shared_memory_per_block_optin = 227 << 10
    shared_memory_per_multiprocessor = 228 << 10
    regs_per_multiprocessor = 65536
    max_threads_per_multi_processor = 2048
    warp_size = 32
    L2_cache_size = 126 << 20


def _nothing(*args, **kwargs):
    return None


def patched(capability: tuple[int, int]) -> dict[str, object]:
    """Attributes of `torch.cuda` while the mode is on."""
    stream = _Stream()
    none = ("synchronize", "set_device", "empty_cache", "init", "reset_peak_memory_stats", "manual_seed",
            "manual_seed_all", "_lazy_init", "ipc_collect")  # fmt: skip
    return {
        **dict.fromkeys(none, _nothing),
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda *a: capability,
        "get_device_properties": lambda *a: _Properties(),
        "get_device_name": lambda *a: _Properties.name,
        "current_stream": lambda *a: stream,
        "default_stream": lambda *a: stream,
        "Stream": lambda *a, **k: _Stream(),
        "Event": lambda *a, **k: _Stream(),
        "stream": lambda *a: contextlib.nullcontext(),
        "device": lambda *a: contextlib.nullcontext(),
        "memory_allocated": lambda *a: 0,
        "mem_get_info": lambda *a: (100 << 30, 180 << 30),
    }


@contextlib.contextmanager
def as_cuda(capability: tuple[int, int] = (10, 0)):
    """Makes torch, inside the block, look as on a machine with one GPU of this compute capability."""
    usual, generator = {}, torch.Generator

    class OnCpu(generator):
        def __new__(cls, device="cpu"):
            return super().__new__(cls, "cpu")

    for name, value in patched(capability).items():
        usual[name] = getattr(torch.cuda, name, None)
        setattr(torch.cuda, name, value)

    torch.Generator = OnCpu
    try:
        with AsCuda() as mode:
            yield mode
    finally:
        torch.Generator = generator
        for name, value in usual.items():
            setattr(torch.cuda, name, value)


# ---- DLPack ----

_KEPT: dict[int, object] = {}


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _DLDevice)]


def dlpack(tensor: torch.Tensor):
    """A DLPack capsule of a tensor in host memory that says it is on CUDA device 0."""
    with torch._C.DisableTorchFunction():
        plain = tensor.detach()
        capsule = torch.utils.dlpack.to_dlpack(plain)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    managed = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(_DLTensor))
    managed.contents.device.type = 2
    return capsule


class Anything(types.ModuleType):
    """An empty module with meaningless attributes."""

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return _Any(f"{self.__name__}.{attribute}")


def stand_in(name: str) -> None:
    """Installs an empty module for a package that is imported but not needed for what runs here."""
    module = Anything(name)
    module.__path__ = []
    sys.modules[name] = module


class _Any:
    """An attribute of a stand-in: a decorator that returns the function, or an object without meaning."""

    def __init__(self, name: str):
        self._name = name

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]
        return _Any(self._name)

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return _Any(f"{self._name}.{attribute}")
