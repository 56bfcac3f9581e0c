"""Connects TVM's runtime with the simulator: the calls of a host function, and the arguments of a program."""

from __future__ import annotations

import sys


def connect(kept, simulator) -> None:
    """Makes programs in `kept` launch on the simulator from now on, and accept
    torch tensors as if on CUDA.
    """
    import tvm
    import tvm_ffi

    def tensor_map(*values):
        simulator.encode_tiled(*values)

    def nothing(*values):
        return None

    tvm_ffi.register_global_func("runtime.cuTensorMapEncodeTiled", tensor_map, override=True)
    tvm_ffi.register_global_func("__tvm_set_device", nothing, override=True)
    kept.on_build = lambda program: program.bind(simulator.launch)
    _wrap_compile(tvm, simulator)
    _answer_for_the_driver(simulator)


def _answer_for_the_driver(simulator) -> None:
    """Gives kernels that encode tensor maps in Python ptxsim's 128 bytes in place of the driver's."""
    from cuda.bindings import driver

    def encode(kind, rank, address, dims, strides, box, steps, interleave, swizzle, promotion, fill):
        numbers = [*dims, *strides, *box, *steps, interleave, swizzle, promotion, fill]
        words = simulator.opaque(int(kind), int(rank), int(address), [int(n) for n in numbers])
        made = driver.CUtensorMap()
        made.opaque = [driver.cuuint64_t(word) for word in words]
        return driver.CUresult.CUDA_SUCCESS, made

    driver.cuTensorMapEncodeTiled = encode


class Executable:
    """The result of `tvm.compile`, which accepts torch tensors in host memory."""

    def __init__(self, inner, simulator):
        self._inner, self._simulator = inner, simulator

    def __call__(self, *args):
        return self._wrapped(self._inner(*[self._labelled(a) for a in args]))

    def __getitem__(self, name):
        return Executable(self._inner[name], self._simulator)

    def __getattr__(self, name):
        return self._wrapped(getattr(self._inner, name))

    def _wrapped(self, found):
        """Wraps modules and their functions so that they accept torch tensors, too."""
        import tvm_ffi

        known = isinstance(found, tvm_ffi.Module | tvm_ffi.Function) or callable(found)
        return Executable(found, self._simulator) if known else found

    def _labelled(self, value):
        import torch
        import tvm_ffi
        from cpu_torch import dlpack

        if isinstance(value, torch.Tensor):
            self._simulator.note(value)
            return tvm_ffi.from_dlpack(dlpack(value))
        return value


def _wrap_compile(tvm, simulator) -> None:
    usual = tvm.compile

    def compile_(*args, **kwargs):
        return Executable(usual(*args, **kwargs), simulator)

    tvm.compile = compile_
    runner = sys.modules.get("tirx_kernels.runner")
    if runner is None:
        import tirx_kernels.runner as runner
    runner._ORIGINAL_TVM_COMPILE = compile_
    runner.compile_kernel.__globals__["tvm"] = tvm
