"""The functions that CuTe DSL's compiled host code calls instead of the CUDA runtime.

Imported only if the DSL is installed.
"""

from __future__ import annotations

import ctypes
import io
import struct
import traceback
from collections.abc import Callable, Iterable
from functools import partial

from cutlass.cute.runtime import _Tensor

from ptxsim.driver import fatbin
from ptxsim.driver.chips import attributes
from ptxsim.driver.device import OK, UNSUPPORTED
from ptxsim.driver.telling import say
from ptxsim.plugins.driver_maps import made_again, tiled
from ptxsim.plugins.kernels import Kernels
from ptxsim.plugins.session import Session
from ptxsim.plugins.torch_on_cpu import Storages

INVALID = 1  # cudaErrorInvalidValue
SHARED_SIZE = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
CLUSTER = 4  # cudaLaunchAttributeClusterDimension
_DL_CUDA, _FFI_HEAD = 2, 24  # DLDeviceType; bytes of TVMFFIObject, before the DLTensor
_CONFIG = struct.Struct("<3I3IQQQI")  # cudaLaunchConfig_t: grid, block, shared, stream, attributes, count
_ATTRIBUTE = struct.Struct("<I4x3I52x")  # cudaLaunchAttribute: its id, and three numbers of its value


class Runtime:
    """The functions that replace the DSL's runtime library. `exported`: names of all functions of that."""

    def __init__(self, session: Session, exported: Iterable[str]):
        self.kernels = Kernels(session, add_arrays)
        self.sources: dict[bytes, bytes] = {}  # fat binary -> PTX
        fine = _c_function("", lambda: OK)
        self.functions = {
            **{name: _c_function("", partial(not_modelled, name)) for name in exported if name[:3] == "_cu"},
            "_cudaLibraryLoadData": _c_function("PP", self.load),
            "_cudaLibraryGetKernel": _c_function("PPP", self.kernel),
            "_cudaGetDevice": _c_function("P", self.device),
            "_cuKernelGetAttribute": _c_function("PIPI", self.fact),
            "_cudaDeviceGetAttribute": _c_function("PI", self.attribute),
            "_cudaLaunchKernelEx": _c_function("PPP", self.launch),
            "_cuTensorMapEncodeTiled": _c_function("PIIPPPPPIIII", self.tensor_map),
            "cuda_dialect_init_library_once": _c_function("PPP", self.load_once),
            **dict.fromkeys(["_cudaKernelSetAttributeForDevice", "_cudaFuncSetAttribute"], fine),
            **dict.fromkeys(["_cudaSetDevice", "_cudaLibraryUnload"], fine),
            "cuda_dialect_unload_library_once": fine,
        }

    def compiled(self, module, ptx: str) -> None:
        """Notes the PTX from which the fat binaries of machine code in a compiled MLIR module were made."""
        file = io.BytesIO()
        module.operation.write_bytecode(file)
        data = file.getvalue()
        for start in fatbin.starts(data):
            self.sources[data[start : start + fatbin.size(data, start)]] = ptx.encode()

    def load(self, library: int, image: int) -> int:
        size = fatbin.size(ctypes.string_at(image, fatbin.HEAD))
        ptx = self.sources.get(ctypes.string_at(image, size))
        if ptx is None:
            say("ptxsim: a CuTe DSL function was compiled outside of ptxsim.cute(): compile it inside")
            return UNSUPPORTED
        _put(library, self.kernels.load(ptx))
        return OK

    def load_once(self, library: int, load: int, prepare: int) -> int:
        """Calls load(&library) and prepare(&library, device), unless the library is already loaded."""
        if ctypes.c_uint64.from_address(library).value:
            return OK
        call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
        return call(load)(library, 0) or (call(prepare)(library, 0) if prepare else OK)

    def kernel(self, kernel: int, library: int, name: int) -> int:
        try:
            _put(kernel, self.kernels.kernel(library, ctypes.string_at(name).decode()))
        except RuntimeError:
            return UNSUPPORTED  # the user has been told
        return OK

    def device(self, number: int) -> int:
        ctypes.c_int.from_address(number).value = 0
        return OK

    def attribute(self, value: int, which: int) -> int:
        ctypes.c_int.from_address(value).value = attributes(self.kernels.session.chip).get(which, 0)
        return OK

    def fact(self, value: int, which: int, kernel: int, _) -> int:
        """cuKernelGetAttribute; attributes that are not known are 0, as in cuDeviceGetAttribute."""
        answer = self.kernels.static_shared(kernel) if which == SHARED_SIZE else 0
        ctypes.c_int.from_address(value).value = answer
        return OK

    def launch(self, config: int, kernel: int, values: int) -> int:
        """cudaLaunchKernelExC."""
        *extents, shared, _, attributes, count = _CONFIG.unpack(ctypes.string_at(config, _CONFIG.size))
        cluster = (1, 1, 1)
        for number in range(count):
            at = attributes + number * _ATTRIBUTE.size
            which, *numbers = _ATTRIBUTE.unpack(ctypes.string_at(at, _ATTRIBUTE.size))
            if which == CLUSTER:
                cluster = tuple(numbers)

        def bytes_of(params, memory: Storages) -> list[bytes]:
            pointers = (ctypes.c_void_p * len(params)).from_address(values) if params else ()
            given = (ctypes.string_at(at, p.size) for at, p in zip(pointers, params, strict=True))
            return [made_again(data, memory) for data in given]

        shape = tuple(extents[:3]), tuple(extents[3:]), cluster
        return self.kernels.launch(kernel, shape, shared, bytes_of)

    def tensor_map(self, out, kind, rank, address, dims, strides, box, steps, interleave, swizzle, _, fill):
        lists = _numbers("Q", dims, rank), _numbers("Q", strides, rank - 1), _numbers("I", box, rank)
        memory, every = self.kernels.memory(), _numbers("I", steps, rank)
        made = tiled(memory, kind, address, *lists, every, interleave, swizzle, fill)
        ctypes.memmove(out, made, len(made))
        return OK


def not_modelled(name: str) -> int:
    say(f"ptxsim: {name[1:]} is not modelled, error {UNSUPPORTED}")
    return UNSUPPORTED


def say_on_gpu(capsule, tensor) -> None:
    """Marks what from_dlpack made as being on a GPU, so that kernels accept it as global memory.

    Both the DLPack capsule and the tvm_ffi.Tensor that it comes from (None if there is none) hold a DLTensor.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    places = [pointer(capsule, b"dltensor"), *([tensor.__chandle__() + _FFI_HEAD] if tensor else [])]
    for place in places:
        ctypes.c_int.from_address(place + 8).value = _DL_CUDA


def add_arrays(things: list, memory: Storages) -> None:
    """Adds arrays that cute.runtime.from_dlpack was given and that are not in `memory` as torch tensors."""
    for given in (thing for thing in things if type(thing) is _Tensor):
        elements = 1 + sum((d - 1) * s for d, s in zip(given.shape, given.stride, strict=True))
        size = -(-elements * given.element_type.width // 8)
        memory.add_bytes(given.data_ptr, size, "an array given to from_dlpack")


def _c_function(arguments: str, function: Callable[..., int]):
    """A function for callers in C; exceptions become an error code. Arguments: P, a pointer; I, 32 bits."""

    def guarded(*args) -> int:
        try:
            return function(*(arg or 0 for arg in args))
        except Exception:
            traceback.print_exc()
            return INVALID

    types = {"P": ctypes.c_void_p, "I": ctypes.c_uint32}
    return ctypes.CFUNCTYPE(ctypes.c_int, *(types[a] for a in arguments))(guarded)


def _put(where: int, value: int) -> None:
    ctypes.c_uint64.from_address(where).value = value


def _numbers(kind: str, where: int, count: int) -> tuple[int, ...]:
    layout = struct.Struct(f"<{count}{kind}")
    return layout.unpack(ctypes.string_at(where, layout.size))
