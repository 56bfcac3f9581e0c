"""`@Tx.prim_func(tirx=True)`: parses a kernel, and records what later stages need to know about it.

The result is TVM's PrimFunc. `info_of(kernel)` gives the names of its shared-memory objects and the
roles of its parameters, kept as JSON in the attribute `tirxlab.info`, which survives TVM's passes.
"""

import inspect
import json
import linecache
import re
import threading
from dataclasses import asdict, dataclass

from tvm import DataType
from tvm.ir import Call, IRModule
from tvm.script.parser._core import parse, utils
from tvm.tirx import BufferLoad, BufferRegion, BufferStore, DeclBuffer, IntImm, PrimFunc, is_buffer_var
from tvm.tirx.analysis import verify_tirx_well_formed
from tvm.tirx.stmt_functor import post_order_visit
from tvm.tirx.tile_primitive import TilePrimitiveCall

from . import (  # noqa: F401  (conditions: numbers as conditions; quick_eval: less work for TVM's parser)
    conditions,
    decided,
    indices,
    known,
    quick_eval,
)
from .errors import KernelError, kernel_error
from .frames import outer_frames
from .python_slips import slips
from .several import raise_all
from .state import ParseState, new_state
from .whole import never_set, problem
from .wording import short

INFO_ATTR = "tirxlab.info"
_NOT_DIVISIBLE = re.compile(r"non-divisible extents: (\d+) is not divisible by (\d+)")
_DIVISIBLE = (
    "{0}, the extent of an id, is not divisible by {1}, that of an id inside it: the CTAs of a grid "
    "(SM_COUNT) must be a multiple of those of a cluster"
)


@dataclass(frozen=True)
class SharedName:
    """A named object in dynamic shared memory: offset in bytes from its start, shape in elements of dtype."""

    name: str
    dtype: str
    offset: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class BufferRole:
    """A buffer parameter of the kernel. `role`: "in", "out" or "inout" ("in" also if it is never used)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str


@dataclass(frozen=True)
class KernelInfo:
    """What the dialect knows about a kernel. `file`, `line`: where its source starts (line 1-based)."""

    name: str
    file: str
    line: int
    names: tuple[SharedName, ...]
    buffers: tuple[BufferRole, ...]


def prim_func(func=None, *, tirx: bool = True, check_well_formed: bool = True):
    """Decorator: a Python function in the course's language becomes a TIRX PrimFunc.

    Raises KernelError, naming the student's file and line, for anything the language does not allow.
    """
    if not tirx:
        raise TypeError("this lab's kernels are TIRX: write @Tx.prim_func(tirx=True)")
    stack = outer_frames()

    def decorate(function):
        return _parse(function, stack, check_well_formed)

    decorate.dispatch_token = "tirx"  # type: ignore[attr-defined]
    return decorate if func is None else decorate(func)


# TVM's parser reads it off the decorator.
prim_func.dispatch_token = "tirx"  # type: ignore[attr-defined]


# CPython counts the depth of a syntax tree for all threads together, so two threads that parse at the same
# time may raise SystemError (gh-106905).
_ONE_TREE = threading.RLock()


def _parse(function, stack, check_well_formed: bool) -> PrimFunc:
    file = inspect.getsourcefile(function) or "<unknown>"
    line = function.__code__.co_firstlineno
    with _ONE_TREE:
        if found := slips(function, file):
            raise_all(found)
    variables = utils.inspect_function_capture(function)
    utils.resolve_closure_vars(function, variables, stack)
    with _ONE_TREE, new_state() as parsed:
        parsed.assigned = known.assignments(function)
        try:
            kernel = parse(function, variables, check_well_formed=False)
        except Exception as error:
            told = error if isinstance(error, KernelError) else kernel_error(error, file, line)
            raise_all(parsed.errors or [told])
        if parsed.errors:
            raise_all(parsed.errors)
    names = [p.name for p in kernel.params]
    wrong, at = problem(parsed, names) or (_ill_formed(kernel) if check_well_formed else None, 0)
    if wrong:
        again = [name for name in names if names.count(name) > 1]
        at = at or (_definition(again[0], file, line) if again else line)
        raise KernelError(wrong, file, at, linecache.getline(file, at))
    unset = never_set(kernel)
    if unset:
        at = _definition(unset[0], file, line)
        raise KernelError(unset[1], file, at, linecache.getline(file, at))
    info = {
        "name": function.__name__,
        "names": [asdict(name) for name in _shared_names(kernel, parsed)],
        "buffers": [asdict(role) for role in _roles(kernel)],
    }
    kernel = kernel.with_attr(INFO_ATTR, json.dumps(info))
    kernel.__name__, kernel.source_file, kernel.source_line = function.__name__, file, line
    return kernel


def _definition(name: str, file: str, line: int) -> int:
    """The first line from `line` on that gives `name` a value; `line` if there is none."""
    lines = linecache.getlines(file)
    found = (n for n in range(line, len(lines)) if re.match(rf"\s*{name}\s*=", lines[n - 1]))
    return next(found, line)


def _ill_formed(kernel: PrimFunc) -> str | None:
    """What TVM's own check finds wrong with the kernel; None if nothing."""
    try:
        verify_tirx_well_formed(IRModule({kernel.attrs["global_symbol"]: kernel}))
    except Exception as error:  # TVM raises several types
        if parted := _NOT_DIVISIBLE.search(str(error)):
            return _DIVISIBLE.format(*parted.groups())
        return f"TVM cannot use this kernel: {short(error)}"
    return None


def _ints(shape) -> tuple[int, ...] | None:
    return tuple(int(s) for s in shape) if all(isinstance(s, int | IntImm) for s in shape) else None


def _shared_names(kernel: PrimFunc, parsed: ParseState) -> list[SharedName]:
    """Pool buffers named by their Python variable, barriers by their `name` or variable; by offset."""
    found: list[SharedName] = []

    def visit(node):
        if not isinstance(node, DeclBuffer) or node.buffer.scope() != "shared.dyn":
            return
        buffer, offset, shape = node.buffer, node.buffer.elem_offset, _ints(node.buffer.shape)
        if not isinstance(offset, IntImm) or shape is None:
            return
        name = buffer.name
        for barrier, given in parsed.barriers:
            if barrier.same_as(buffer):
                name = given or name.removesuffix("_buf")
        dtype = str(buffer.dtype)
        if name:  # an element of a Python list has none
            found.append(SharedName(name, dtype, int(offset) * DataType(dtype).bits // 8, shape))

    post_order_visit(kernel.body, visit)
    return sorted(set(found), key=lambda n: (n.offset, n.name))


_SOURCES = {"tirx.ptx.cp_async": 1}  # instruction -> which argument is a pointer that it only reads from
_TARGETS = {"tirx.ptx.st": 0}  # instruction -> which argument is a pointer that it only writes to


def _pointers(kernel: PrimFunc) -> tuple[list, list]:
    """(pointers that an instruction only reads from, the arguments of pointers that one only writes to)."""
    sources, targets = [], []

    def find(node):
        if isinstance(node, Call) and node.op.name in _SOURCES:
            sources.append(node.args[_SOURCES[node.op.name]])
        elif isinstance(node, Call) and node.op.name in _TARGETS:
            pointer = node.args[_TARGETS[node.op.name]]
            targets.extend(getattr(pointer, "args", ()))  # the load inside address_of(..)

    post_order_visit(kernel.body, find)
    return sources, targets


def _roles(kernel: PrimFunc) -> list[BufferRole]:
    """Each parameter's role, by what the body reads and writes, also through views and pointers."""
    owners = [(param, param.name) for param in kernel.params if is_buffer_var(param)]
    reads: set[str | None] = set()
    writes: set[str | None] = set()
    sources, targets = _pointers(kernel)

    def owner(buffer) -> str | None:
        return next((name for known, name in owners if known.same_as(buffer)), None)

    def find_views(node):
        if isinstance(node, DeclBuffer):
            inside = []
            post_order_visit(node.data, lambda part: inside.append(owner(part)))
            owners.extend((node.buffer, name) for name in inside if name)

    def find_uses(node):
        if isinstance(node, TilePrimitiveCall):
            for i, arg in enumerate(node.args):
                if isinstance(arg, BufferRegion):
                    (writes if i == 0 else reads).add(owner(arg.buffer))
        elif isinstance(node, BufferStore):
            writes.add(owner(node.buffer))
        elif isinstance(node, BufferLoad) and not _among(node, targets):
            reads.add(owner(node.buffer))
        elif isinstance(node, Call) and node.op.name == "tirx.address_of" and not _among(node, sources):
            writes.add(owner(node.args[0].buffer) if isinstance(node.args[0], BufferLoad) else None)

    post_order_visit(kernel.body, find_views)
    post_order_visit(kernel.body, find_uses)
    roles = {(True, True): "inout", (False, True): "out"}
    return [
        BufferRole(
            p.name, str(p.dtype), _ints(p.shape) or (), roles.get((p.name in reads, p.name in writes), "in")
        )
        for p in kernel.params
        if is_buffer_var(p)
    ]


def _among(node, others: list) -> bool:
    return any(node.same_as(other) for other in others)


def info_of(kernel: PrimFunc) -> KernelInfo:
    """The names and roles recorded when `kernel` was parsed; KernelError for a PrimFunc from elsewhere."""
    if kernel.attrs is None or INFO_ATTR not in kernel.attrs:
        raise KernelError("not a kernel of this lab: make it with @Tx.prim_func(tirx=True) from tirxlab")
    info = json.loads(str(kernel.attrs[INFO_ATTR]))
    names = [SharedName(**{**n, "shape": tuple(n["shape"])}) for n in info["names"]]
    buffers = [BufferRole(**{**b, "shape": tuple(b["shape"])}) for b in info["buffers"]]
    file, line = getattr(kernel, "source_file", "<unknown>"), getattr(kernel, "source_line", 0)
    return KernelInfo(info["name"], file, line, tuple(names), tuple(buffers))


def names_of(kernel: PrimFunc) -> list[tuple[str, str, int, tuple[int, ...]]]:
    """(name, dtype, byte offset, shape) of everything named in the kernel's dynamic shared memory."""
    return [(n.name, n.dtype, n.offset, n.shape) for n in info_of(kernel).names]
