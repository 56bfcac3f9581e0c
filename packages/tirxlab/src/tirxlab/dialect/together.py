"""Copies that several threads make together: one tile, whose place is the same for all of them."""

from tvm import arith
from tvm.tirx import BufferRegion, IntImm
from tvm.tirx.stmt_functor import substitute

from .reach import among, named_in_guards, variables
from .state import state

_THREADS = {"warp": 32, "warpgroup": 128}
_TRIED = (1, 2, 4, 8, 16, 31, 32, 64, 96, 127, 128, 255, 256)  # threads that are compared with thread 0
_NUMBER = {  # (id, parent) -> the id's value in thread t of a CTA
    ("thread_id", "warp"): lambda t: t % 32,
    ("thread_id", "warpgroup"): lambda t: t % 128,
    ("thread_id", "cta"): lambda t: t,
    ("warp_id", "warpgroup"): lambda t: t // 32 % 4,
    ("warp_id", "cta"): lambda t: t // 32,
    ("warpgroup_id", "cta"): lambda t: t // 128,
}


def one_place(scope: str, *tiles) -> None:
    """ValueError if a slice begins at another place in each thread of the scope, by its ids."""
    ids = _thread_ids(scope) if scope != "thread" else []
    for value in tiles:
        for part in value.region if isinstance(value, BufferRegion) else ():
            used = variables(part.min)
            names = {kind: name for kind, name in ids if among(name, used)}
            if names and _differs(part.min, names, _threads(scope)):
                listed = " and ".join(sorted(name.name for name in names.values()))
                raise ValueError(
                    f"Tx.copy: the threads of `with Tx.{scope}():` make one copy together, but this slice of "
                    f"{value.buffer.name} begins at a place of each thread's own ({listed}): name the whole "
                    "tile, or put the copy in `with Tx.thread():`, where each thread makes its own"
                )


def _thread_ids(scope: str) -> list:
    """((id, parent), variable) of the declared ids that tell the scope's threads apart, without those that a
    condition fixes.
    """
    guarded, threads = named_in_guards(), _threads(scope)
    return [
        (kind, name)
        for kind, name, _ in state().variables
        if kind in _NUMBER
        and any(_NUMBER[kind](thread) for thread in _TRIED if thread < threads)
        and not among(name, guarded)
    ]


def _threads(scope: str) -> int:
    """How many threads the scope has; in a CTA those of its ids, at least 128."""
    if scope in _THREADS:
        return _THREADS[scope]
    return max([128, *state().cta_threads().values()])


def _differs(start, names: dict, threads: int) -> bool:
    """Whether an expression is known to have another value in some thread than in thread 0."""
    values = [_at(start, names, thread) for thread in (0, *_TRIED) if thread < threads]
    apart = [arith.Analyzer().simplify(value - values[0]) for value in values[1:]]
    return any(isinstance(gap, IntImm) and int(gap) != 0 for gap in apart)


def _at(start, names: dict, thread: int):
    return substitute(
        start, {name: IntImm(name.ty.dtype, _NUMBER[kind](thread)) for kind, name in names.items()}
    )
