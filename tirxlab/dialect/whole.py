"""What can only be judged once the whole kernel has been read: thread counts that agree, a committed pool."""

from math import prod

from .state import ParseState

_FIXED = {("warp_id", "warpgroup"): 4, ("thread_id", "warp"): 32, ("thread_id", "warpgroup"): 128}
_THREADS_EACH = {"warpgroup_id": 128, "warp_id": 32, "thread_id": 1}


def problem(parsed: ParseState, parameters: list[str]) -> str | None:
    """The first thing wrong with the kernel as a whole, or None."""
    for (name, parent), extents in parsed.ids.items():
        count, fixed = prod(extents), _FIXED.get((name, parent))
        if fixed not in (None, count):
            return f'Tx.{name}({list(extents)}, parent="{parent}"): a {parent} has {fixed}, not {count}'
    blocks = {
        f"Tx.{name}({list(extents)})": prod(extents) * _THREADS_EACH[name]
        for (name, parent), extents in parsed.ids.items()
        if parent == "cta"
    }
    if len(set(blocks.values())) > 1:
        counts = ", ".join(f"{threads} by {call}" for call, threads in blocks.items())
        return f"the numbers of threads per CTA disagree: {counts}"
    if any(pool.max_offset and not pool.committed for pool in parsed.pools):
        return "pool.commit() is missing: it belongs after the last pool.alloc() and barrier"
    if len(set(parameters)) < len(parameters):
        return f"a buffer parameter was given another's name by an assignment: {', '.join(parameters)}"
    return None
