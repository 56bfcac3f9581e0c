"""Extracts a kernel's launch from the host function that TVM generates: parameters, grid, tensor maps.

TVM's host function is never run; every number in it must be a constant, because the lab builds kernels
for fixed shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir import Call
from tvm.tirx import Bind, Cast, DeclBuffer, FloatImm, IntImm, PrimFunc, StringImm, Var
from tvm.tirx.stmt_functor import post_order_visit

from tirxlab.artifact import BufferParam, ScalarParam, TensorMapParam

ENCODE = "runtime.cuTensorMapEncodeTiled"
# TVM's `TVMStructFieldKind`: where the host function reads argument i, and a tensor's data pointer.
_ARGUMENT_HANDLE, _TENSOR_DATA = 15, 1
_SWIZZLE_BYTES = (0, 32, 64, 128)  # CUtensorMapSwizzle
_FILL = ("zero", "nan")  # CUtensorMapFloatOOBfill
_AXES = {"x": 0, "y": 1, "z": 2}


class HostCodeError(ValueError):
    """The host function contains something that this reader does not know; the message says what."""


@dataclass(frozen=True)
class Launch:
    """How the kernel is launched; fields as in `Artifact`."""

    entry: str
    params: tuple[TensorMapParam | BufferParam | ScalarParam, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int


def read_launch(host: PrimFunc, device: PrimFunc, buffers: list[str]) -> Launch:
    """The launch of `device` by `host`; `buffers` are the names of the kernel's parameters in order."""
    entry = str(device.attrs["global_symbol"])
    reader = _Reader(buffers)
    post_order_visit(host.body, reader.collect)
    launches = [call for call in reader.calls if call.args[0].value == entry]
    if len(launches) != 1:
        raise HostCodeError(f"the kernel is launched {len(launches)} times, expected once")
    args = list(launches[0].args)[1:]
    count = len(device.params)
    params = tuple(reader.param(a, p) for a, p in zip(args[:count], device.params, strict=True))
    sizes = {"blockIdx": [1, 1, 1], "threadIdx": [1, 1, 1], "clusterCtaIdx": [1, 1, 1]}
    shared = 0
    for tag, value in zip(device.attrs["tirx.kernel_launch_params"], args[count:], strict=True):
        kind, _, axis = str(tag).partition(".")
        if str(tag) == "tirx.use_dyn_shared_memory":
            shared = _constant(value, "the size of shared memory")
        elif kind in sizes and axis in _AXES:
            sizes[kind][_AXES[axis]] = _constant(value, str(tag))
        else:
            raise HostCodeError(f"launch parameter {tag!s} is not modelled")
    grid, block, cluster = ((x, y, z) for x, y, z in sizes.values())
    return Launch(entry, params, grid, block, cluster, shared)


class _Reader:
    """Collects what the host function binds, declares and calls."""

    def __init__(self, buffers: list[str]):
        self.buffers = buffers
        self.bound: dict[Var, object] = {}  # variable -> its value
        self.data: dict[Var, object] = {}  # buffer -> the expression of its data pointer
        self.maps: dict[Var, Call] = {}  # tensor map -> the call that encodes it
        self.calls: list[Call] = []

    def collect(self, node) -> None:
        if isinstance(node, Bind):
            self.bound[node.var] = node.value
        elif isinstance(node, DeclBuffer):
            self.data[node.buffer] = node.data
        elif isinstance(node, Call) and node.op.name == "tirx.tvm_call_packed":
            if not isinstance(node.args[0], StringImm):
                return
            self.calls.append(node)
            if node.args[0].value == ENCODE:
                self.maps[node.args[1]] = node

    def param(self, arg, declared: Var) -> TensorMapParam | BufferParam | ScalarParam:
        if isinstance(arg, Var) and arg in self.maps:
            return self._tensor_map(self.maps[arg])
        if isinstance(arg, IntImm | FloatImm | Cast):
            while isinstance(arg, Cast):
                arg = arg.value
            if isinstance(arg, IntImm | FloatImm):
                return ScalarParam(declared.name, str(declared.ty.dtype), arg.value)
        try:
            name, offset = self.origin(arg)
        except HostCodeError:
            raise HostCodeError(
                f"kernel parameter {declared.name!r} is not a constant, a buffer or a tensor map: "
                "this lab builds kernels for fixed shapes"
            ) from None
        return BufferParam(name, offset)

    def origin(self, pointer) -> tuple[str, int]:
        """(parameter of the student's function, byte offset) that `pointer` points to, through any views."""
        if isinstance(pointer, Var) and pointer in self.bound:
            return self.origin(self.bound[pointer])
        if isinstance(pointer, Call):
            name, args = pointer.op.name, pointer.args
            if name == "tirx.buffer_data" and args[0] in self.data:
                return self.origin(self.data[args[0]])
            if name == "tirx.reinterpret":
                return self.origin(args[-1])
            if name == "tirx.handle_add_byte_offset":
                base, offset = self.origin(args[0])
                return base, offset + _constant(args[1], "a pointer's offset")
            if name == "tirx.tvm_struct_get" and _constant(args[2], "field") == _TENSOR_DATA:
                return self.buffers[self._argument(args[0])], 0
        raise HostCodeError(f"cannot tell which buffer `{str(pointer)[:80]}` points to")

    def _argument(self, handle: Var) -> int:
        """Index of the function's argument that the tensor handle was read from."""
        found = []

        def visit(node):
            if isinstance(node, Call) and node.op.name == "tirx.tvm_struct_get":
                found.append((int(node.args[1]), int(node.args[2])))

        post_order_visit(self.bound[handle], visit)
        indices = {index for index, kind in found if kind == _ARGUMENT_HANDLE}
        if len(indices) != 1:
            raise HostCodeError(f"cannot tell which argument {handle.name!r} is")
        return indices.pop()

    def _tensor_map(self, call: Call) -> TensorMapParam:
        _, _, dtype, rank, base, *numbers = call.args
        rank = _constant(rank, "a tensor map's rank")
        values = [_constant(n, "a tensor map's size") for n in numbers]
        counts = (rank, rank - 1, rank, rank)  # dims, strides, box, element strides
        ends = [sum(counts[: n + 1]) for n in range(len(counts))]
        dims, strides, box, steps = (
            tuple(values[end - count : end]) for count, end in zip(counts, ends, strict=True)
        )
        values = values[ends[-1] :]
        interleave, swizzle, promotion, fill = values
        if swizzle >= len(_SWIZZLE_BYTES):
            raise HostCodeError(f"tensor map swizzle mode {swizzle} is not modelled")
        buffer, offset = self.origin(base)
        sizes = dims, strides, box, steps
        choices = interleave, _SWIZZLE_BYTES[swizzle], promotion, _FILL[fill]
        return TensorMapParam(buffer, offset, dtype.value, *sizes, *choices)


def _constant(expr, what: str) -> int:
    if isinstance(expr, int):
        return expr
    while isinstance(expr, Cast):
        expr = expr.value
    if not isinstance(expr, IntImm):
        raise HostCodeError(f"{what} is not a constant: this lab builds kernels for fixed shapes")
    return int(expr.value)
