"""The simulator as a driver for Triton: describes the chip, loads binaries (here PTX), launches kernels.

Arguments are laid out as the kernel's PTX declares its parameters. A kernel can access the storages of the
tensors that it is given, each mapped once, at its own address. Imported only if Triton is installed.
"""

from __future__ import annotations

import gc
import struct
import time
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

from ptxsim.arguments import param_layout
from ptxsim.driver.device import OK, code, guessed_registers, most_threads
from ptxsim.launch import LoadedModule
from ptxsim.machine.tensor_map import SWIZZLES, TensorMap
from ptxsim.plugins.running import launch, load
from ptxsim.plugins.torch_on_cpu import Storages, tensors_among
from ptxsim.units.tensormap import counted, element_type, encoded

DEVICE = 10_000  # Triton caches kernels by device number; no real device has this one
SCALARS = {
    **{f"{kind}{8 << n}": np.dtype(f"{kind}{1 << n}") for kind in "iu" for n in range(4)},
    **{"i1": np.dtype("i1"), "u1": np.dtype("u1"), "fp16": np.dtype("f2"), "fp64": np.dtype("f8")},
    **{"fp32": np.dtype("f4"), "f32": np.dtype("f4"), "bf16": np.dtype(ml_dtypes.bfloat16)},
}


@dataclass
class Function:
    """A loaded kernel."""

    module: LoadedModule
    name: str


class Driver(DriverBase):
    def __init__(self, session):
        self.session, self.utils, self.launcher_cls = session, Utilities(session.chip), Launcher

    @classmethod
    def is_active(cls) -> bool:
        return False  # Triton must never choose it; only ptxsim.triton() sets it

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.session.chip.capability, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_current_device(self) -> int:
        return DEVICE + self.session.chip.capability

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return self.session.chip.major, self.session.chip.minor

    def get_device_interface(self) -> type:
        return Interface

    def get_benchmarker(self):
        return run_once

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0)

    def clear_cache(self, cache: torch.Tensor) -> None:
        pass

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty  # used only for launchers in C, which do not exist here

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream) -> torch.Tensor:
        return torch.zeros(size, dtype=torch.int8)


def run_once(call, *_, quantiles=None, **__):
    """Replaces do_bench: runs once and returns the milliseconds of the simulation, unrelated to a chip's."""
    start = time.perf_counter()
    call()
    spent = (time.perf_counter() - start) * 1e3
    return [spent] * len(quantiles) if quantiles else spent


class Interface:
    """The part of torch.cuda that triton.testing uses; every launch is complete when it returns."""

    class Event:
        def __init__(self, **_):
            self.at = 0.0

        def record(self) -> None:
            self.at = time.perf_counter()

        def elapsed_time(self, other) -> float:
            """Milliseconds of the simulation between two events."""
            return (other.at - self.at) * 1e3

    synchronize = staticmethod(lambda *_: None)
    current_device = staticmethod(lambda: 0)


class Utilities:
    def __init__(self, chip):
        self.chip = chip

    def load_binary(self, name: str, ptx: bytes, shared: int, device: int) -> tuple:
        """(module, function, registers, spilled bytes, max threads per CTA); registers are an estimate."""
        module = load(driver.active.session, ptx, name)
        program = module.programs[name]
        return module, Function(module, name), guessed_registers(program), 0, most_threads(program)

    def unload_module(self, module) -> None:
        pass

    def get_device_properties(self, device) -> dict[str, int]:
        chip = self.chip
        return {
            "max_shared_mem": chip.shared_per_cta,
            "max_num_regs": 65536,
            "multiprocessor_count": chip.sms,
            "warpSize": 32,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 5120,
        }


class Launcher:
    """Launches one compiled kernel; Triton calls it for each launch."""

    def __init__(self, source, metadata):
        self.metadata = metadata
        self.described = getattr(metadata, "tensordesc_meta", None)
        self.signature = list(source.signature.values())
        self.names = list(source.signature)
        self.types = list(types_of(self.signature, self.described))

    def __call__(self, x, y, z, stream, function, packed, told, enter, leave, *args) -> None:
        session = driver.active.session
        if session.dry or not x * y * z:
            return
        if enter is not None:
            enter(told)
        values = list(self.values(args))
        ctas = getattr(self.metadata, "num_ctas", 1)
        values += self.scratch(x * y * z * ctas)
        shape = (x * ctas, y, z), (32 * self.metadata.num_warps, 1, 1), (ctas, 1, 1)
        self.launch(session, function, shape, values, dict(zip(self.names, args, strict=True)))
        if leave is not None:
            leave(told)

    def values(self, args):
        """The kernel's arguments in the order of its parameters, without constants, descriptors expanded."""
        descriptors = iter(self.described or ())

        def spread(kinds, given):
            for kind, value in zip(kinds, given, strict=True):
                if isinstance(kind, tuple):
                    yield from spread(kind, value)
                elif kind.startswith("tensordesc"):
                    facts = next(descriptors, None)
                    yield from [(value, facts)] if facts else spread_out(value)
                    yield from [*value.shape, *value.strides]
                elif kind != "constexpr":
                    yield value

        return spread(self.signature, args)

    def scratch(self, ctas: int) -> list:
        """Memory that the compiler requested, passed after the arguments: for the kernel, for a profiler."""
        from triton.runtime import _allocation

        size, align = self.metadata.global_scratch_size * ctas, self.metadata.global_scratch_align
        if size:
            _allocation._allocator.get()(size, align, 0)  # raises Triton's error if none was set
        return [aligned(size, align), aligned(self.metadata.profile_scratch_size * ctas, 128)]

    def launch(self, session, function: Function, shape: tuple, values: list, named: dict) -> None:
        memory = Memory(values, named)
        kinds = [*self.types, "*i8", "*i8"]
        program = function.module.programs[function.name]
        offsets, end = param_layout(program.function.params)
        block = bytearray(end)
        for offset, kind, value in zip(offsets, kinds, values, strict=False):
            data = memory.packed(kind, value)
            block[offset : offset + len(data)] = data
        shared = self.metadata.shared
        findings = launch(session, function.module, function.name, shape, shared, bytes(block), memory.mapped)
        if code(findings) != OK:
            raise RuntimeError(f"{function.name}: {findings[0].kind}: {findings[0].message}")


def aligned(size: int, align: int) -> torch.Tensor:
    """`size` bytes at a multiple of `align`; on the CPU torch itself aligns to 64 at most."""
    room = torch.empty(size + align, dtype=torch.int8)
    return room[-room.data_ptr() % align :][:size]


FLAGS = ("padding", "round_f32_to_tf32")  # of a descriptor that is expanded; older versions have fewer


def spread_out(descriptor) -> list:
    """The arguments into which the compiler expands a descriptor: address, shape, strides, and the flags of
    this version of Triton.
    """
    flags = [getattr(descriptor, f) in (True, "nan") for f in FLAGS if hasattr(descriptor, f)]
    return [descriptor.base, *descriptor.shape, *descriptor.strides, *flags]


def types_of(kinds, described):
    """Types of the kernel's parameters in their order, without constants, descriptors expanded."""
    flags = [f for f in FLAGS if f in TensorDescriptor.__dataclass_fields__]
    for kind in kinds:
        if isinstance(kind, tuple | list):
            yield from types_of(kind, described)
        elif kind.startswith("tensordesc"):
            dtype, _, shape = kind.partition("<")[2].partition("[")
            rank = shape.partition("]")[0].count(",") + 1
            spread = [f"*{dtype}", *["i64"] * (2 * rank), *["i1"] * len(flags)]
            yield from ["nvTmaDesc"] if described else spread
            yield from ["i32"] * rank + ["i64"] * rank
        elif kind != "constexpr":
            yield kind


class Memory(Storages):
    """The storages that a launch can reach, named after the arguments."""

    def __init__(self, values: list, names: dict):
        super().__init__()
        given = [v[0].base if isinstance(v, tuple) else getattr(v, "base", v) for v in values]
        given = [v for v in given if isinstance(v, torch.Tensor)]
        called = {id(getattr(v, "base", v)): name for name, v in names.items()}
        if any(v.dtype in (torch.int64, torch.uint64) for v in given):  # elements may be addresses
            given += tensors_among(torch, gc.get_objects())
        for tensor in given:
            self.add(tensor, called.get(id(tensor)))

    def packed(self, kind: str, value) -> bytes:
        """The bytes of one argument."""
        if kind == "nvTmaDesc":
            return self.tensor_map(*value)
        if kind.startswith("*"):
            address = value.data_ptr() if hasattr(value, "data_ptr") else value or 0
            return struct.pack("<Q", address)
        dtype = SCALARS[kind]
        if dtype.kind in "iu":
            return (int(value) & ((1 << 8 * dtype.itemsize) - 1)).to_bytes(dtype.itemsize, "little")
        return np.array(value, np.float64).astype(dtype).tobytes()

    def tensor_map(self, descriptor, facts: dict) -> bytes:
        """The 128 bytes of a tensor map for a descriptor that was made on the host."""
        address, size = descriptor.base.data_ptr(), facts["elem_size"]
        start = self.around(address)
        dims = list(descriptor.shape)
        if facts["fp4_padded"]:
            dims[-1] *= 2
        made = TensorMap(
            self.mapped[start][1],
            box=counted(facts["block_size"][::-1], facts["elem_type"]),
            dims=counted(dims[::-1], facts["elem_type"]),
            strides=tuple(size * s for s in list(descriptor.strides)[-2::-1]),
            swizzle=SWIZZLES[facts["swizzle"]],
            fill="nan" if descriptor.padding == "nan" else "zero",
            byte_offset=address - start,
            **element_type(facts["elem_type"]),
        )
        return encoded(made, start)
