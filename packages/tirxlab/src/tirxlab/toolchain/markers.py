"""Comments `// @src N` in the PTX: the instructions after one come from line N of the student's file.

A marker is an empty `asm volatile`. Volatile statements keep their order and are cloned with the surrounding
code, so markers survive every optimisation. The instructions stay the same; only arithmetic on registers may
be scheduled differently. (`#line` would drift.)
"""

from __future__ import annotations

from tvm.backend.cuda.op import cuda_func_call
from tvm.ir import Call
from tvm.ir.base import SequentialSpan
from tvm.tirx import BufferLoad, BufferStore, Evaluate, For, IfThenElse, IntImm, PrimFunc, SeqStmt
from tvm.tirx.stmt_functor import ir_transform, post_order_visit
from tvm.tirx.tile_primitive import TilePrimitiveCall

from tirxlab.toolchain.nvrtc import SOURCE_MARK as FUNCTION

_MACRO = f'#define {FUNCTION}(n) asm volatile("// @src " #n)\n'
_MARKED = ["tirx.Evaluate", "tirx.TilePrimitiveCall", "tirx.BufferStore", "tirx.IfThenElse", "tirx.For"]


def line_of(node, file: str) -> int | None:
    """The line of `file` that `node` comes from; through inlined functions, the innermost one."""
    span = node.span
    chain = list(span.spans) if isinstance(span, SequentialSpan) else [span] if span is not None else []
    lines = [s.line for s in chain if s.source_name.name == file]
    return lines[-1] if lines else None


def with_markers(kernel: PrimFunc, file: str) -> PrimFunc:
    """`kernel` with a marker before each statement that comes from `file`."""

    def whole_loop(loop):
        stores = _stores(loop) if isinstance(loop, For) else []
        line = line_of(stores[0], file) if stores else None
        return None if line is None else SeqStmt([_marker(line), loop])

    def one(statement):
        line = None if isinstance(statement, For) else line_of(statement, file)
        return SeqStmt([_marker(line), statement]) if line is not None and _shows(statement) else None

    return kernel.with_body(ir_transform(kernel.body, whole_loop, one, _MARKED))


def _marker(line: int) -> Evaluate:
    return Evaluate(cuda_func_call(FUNCTION, line, source_code=_MACRO))


def _inside(node, kinds) -> list:
    """The nodes of these kinds in a statement or expression."""
    found: list = []
    post_order_visit(node, lambda part: found.append(part) if isinstance(part, kinds) else None)
    return found


def _stores(loop: For) -> list[BufferStore]:
    """The stores of a loop that does nothing else. Such a loop gets one marker, before it: an `asm` between
    the stores would keep TVM and NVRTC from merging them into wide ones."""
    return [] if _inside(loop, (Evaluate, TilePrimitiveCall, IfThenElse)) else _inside(loop, BufferStore)


def _shows(statement) -> bool:
    """Whether a statement touches memory that other threads see, or runs an instruction that can wait."""
    if isinstance(statement, Evaluate):
        return not isinstance(statement.value, IntImm)
    if isinstance(statement, BufferStore):
        touched = [statement.buffer, *(load.buffer for load in _inside(statement.value, BufferLoad))]
        return not all(buffer.scope().startswith("local") for buffer in touched)
    if isinstance(statement, IfThenElse):
        # A collective waits for its lanes. Other conditions get no marker, which would keep NVRTC from
        # joining neighbouring ifs on the same condition.
        return any("sync" in call.op.name for call in _inside(statement.condition, Call))
    return True
