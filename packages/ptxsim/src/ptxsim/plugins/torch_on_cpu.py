"""Puts torch tensors that programs create on a GPU into CPU memory, where simulated kernels access them."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Iterable
from types import SimpleNamespace
from unittest import mock

import numpy as np

from ptxsim.driver.chips import ChipProperties
from ptxsim.plugins.alignment import as_on_a_gpu


def everything(torch, chip: ChipProperties) -> list:
    """The same as `patches`, for programs that require a GPU and their own stream."""

    def nothing(*_) -> None:
        pass

    stream = SimpleNamespace(cuda_stream=0, synchronize=nothing, wait_stream=nothing)
    event = SimpleNamespace(record=nothing, synchronize=nothing, elapsed_time=lambda _: math.nan)
    streams = dict.fromkeys(["current_stream", "default_stream", "Stream"], stream)
    scope = contextlib.nullcontext()
    return patches(torch, chip, is_available=True, _lazy_init=None, stream=scope, Event=event, **streams)


def patches(torch, chip: ChipProperties, **more) -> list:
    """Patches that answer what programs ask torch.cuda to choose a kernel for the chip, and that align memory
    as on a GPU. more: further functions of torch.cuda and what they return.
    """
    facts = SimpleNamespace(
        name=chip.name,
        major=chip.major,
        minor=chip.minor,
        multi_processor_count=chip.sms,
        warp_size=32,
        total_memory=chip.memory,
        shared_memory_per_block_optin=chip.shared_per_cta,
        L2_cache_size=chip.l2,
    )
    answers = {
        "get_device_capability": (chip.major, chip.minor),
        "get_device_properties": facts,
        "get_device_name": chip.name,
        "current_device": 0,
        "synchronize": None,
        **more,
    }
    told = [mock.patch.object(torch.cuda, n, lambda *_, value=v, **__: value) for n, v in answers.items()]
    return [*told, as_on_a_gpu()]


def device_mode(torch):
    """A mode in which device="cuda" means the CPU, in Tensor.to and Tensor.cuda too, and is_cuda is True."""

    def here(value):
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        return "cpu" if isinstance(value, str) and value.partition(":")[0] == "cuda" else value

    class OnCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function in (torch.Tensor.cuda, torch.Tensor.is_cuda.__get__):
                return args[0] if function is torch.Tensor.cuda else True
            return function(*map(here, args), **{name: here(v) for name, v in (kwargs or {}).items()})

    return OnCpu()


def tensors_among(torch, things: Iterable) -> list:
    """The tensors in a list of arbitrary objects. Looks only at types, so that it does not touch proxies."""
    return [thing for thing in things if issubclass(type(thing), torch.Tensor)]


class Storages:
    """Memory that a launch can access: each storage once, at its own address."""

    def __init__(self):
        self.mapped: dict[int, tuple[str, np.ndarray]] = {}

    def add(self, tensor, name: str | None = None) -> None:
        """Adds the storage of a torch tensor."""
        storage = tensor.untyped_storage()
        text = name or f"a tensor of {'x'.join(map(str, tensor.shape))} {str(tensor.dtype)[6:]}"
        self.add_bytes(storage.data_ptr(), storage.nbytes(), text)

    def add_bytes(self, start: int, size: int, name: str) -> None:
        """Adds bytes of this process, unless some of them have been added already."""
        taken = any(at < start + size and start < at + a.nbytes for at, (_, a) in self.mapped.items())
        if size and not taken:
            array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
            self.mapped[start] = (name, array)

    def around(self, address: int) -> int:
        """The start of the storage that holds an address. Raises KeyError if none does."""
        for start, (_, array) in self.mapped.items():
            if start <= address < start + array.nbytes:
                return start
        raise KeyError(f"no tensor holds address {address:#x}")
