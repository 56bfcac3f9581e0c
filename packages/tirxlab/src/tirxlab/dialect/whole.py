"""Checks that need the whole kernel: thread counts, a committed pool, initialised states."""

from tvm.tirx import BufferLoad, BufferStore, PrimFunc
from tvm.tirx.stmt_functor import post_order_visit

from .state import ParseState


def problem(parsed: ParseState, parameters: list[str]) -> tuple[str, int] | None:
    """(the first thing wrong with the kernel as a whole, its line or 0 for the kernel's), or None."""
    kinds = [kind for kind, _, _ in parsed.variables]
    if ("cta_id", "cluster") in kinds and ("cta_id", "kernel") not in kinds:
        said = 'the grid is missing: Tx.cta_id(shape, parent="kernel") says how many CTAs run'
        return said, parsed.id_lines.get(("cta_id", "cluster"), 0)
    blocks = parsed.cta_threads()
    if len(set(blocks.values())) > 1:
        counts = ", ".join(f"{threads} by {call}" for call, threads in blocks.items())
        last = max(line for (_, parent), line in parsed.id_lines.items() if parent == "cta")
        return f"the numbers of threads per CTA disagree: {counts}", last
    if any(pool.max_offset and not pool.committed for pool in parsed.pools):
        return "pool.commit() is missing: it belongs after the last pool.alloc() and barrier", 0
    if len(set(parameters)) < len(parameters):
        return f"a buffer parameter was given another's name by an assignment: {', '.join(parameters)}", 0
    return None


# Suffix of a variable inside an object -> the message if nothing ever initialises it.
_UNSET = {
    "_phase": "{0} is never initialised: {0}.init(is_producer=True) for a producer, False for a consumer",
    "_linear_idx": "{0} is never initialised: {0}.init(...) takes the number of this CTA or cluster",
}


def never_set(kernel: PrimFunc) -> tuple[str, str] | None:
    """(name, problem) of the first PipelineState or scheduler that is read but only ever set from itself."""
    read: dict[str, BufferLoad] = {}
    fresh: set[str] = set()

    def loads(value) -> set[str]:
        found = set()
        post_order_visit(value, lambda n: found.add(n.buffer.name) if isinstance(n, BufferLoad) else None)
        return found

    def visit(node):
        if isinstance(node, BufferLoad):
            read.setdefault(node.buffer.name, node)
        elif isinstance(node, BufferStore) and node.buffer.name not in loads(node.value):
            fresh.add(node.buffer.name)

    post_order_visit(kernel.body, visit)
    for name in read:
        for suffix, text in _UNSET.items():
            if name.endswith(suffix) and name not in fresh and read[name].buffer.scope() == "local":
                owner = name.removesuffix(suffix)
                return owner, text.format(owner)
    return None
