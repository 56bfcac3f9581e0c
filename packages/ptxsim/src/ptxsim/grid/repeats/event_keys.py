"""Keys of events. Two clusters whose events have equal keys, in the same order, look the same to every check,
except for the addresses that they access in global memory: these are in the footprint (footprint.py).

A key holds everything that an observer can learn from the event: its arguments, and the state of the barrier
it names. It leaves out what follows from the program's text (the modifiers at a row).
"""

from __future__ import annotations

from collections.abc import Callable

from ptxsim.events.bus import EVENTS, MAKE_TOKENS, written_out
from ptxsim.machine.cluster import Cluster


class Different(Exception):
    """The cluster does something that no recorded one did at this point."""


_PARTS = {  # parameter -> expression for the key; a parameter that is not listed is itself the expression
    "cluster": "",
    "fence": "",  # determined by the row
    "split": "split.row, split.warp, split.mask",
    "token": "token and token[-1]",
    "tokens": "tuple([token[-1] for token in tokens])",
    "copy": "form(copy.tensor, copy.start), copy.offset, copy.size, copy.source, copy.targets, copy.barriers",
    "waiting": "tuple([s.index for s in waiting])",
    "work": "work.footprint, work.accumulates, work.partial",
    "works": "len(works), works[0].where.warp, works[0].where.mask",  # works of one thread come in order
    "log": "inside(log)",
    "reads": "inside(reads)",
    "writes": "inside(writes)",
}
_BY_TOKEN = {"copy": ""}  # replaces entries of _PARTS for events with a token, which determines them
_BARRIER = "state(cluster.mbarriers.get({}))"
_BESIDES = {  # event -> state of the cluster that an observer can read at the event
    **dict.fromkeys(("mbarrier_wait", "mbarrier_blocked"), _BARRIER.format("wait.place")),
    **dict.fromkeys(
        ("mbarrier_init", "mbarrier_exceeded", "phase_complete", "async_arrive"), _BARRIER.format("place")
    ),
    "mbarrier_arrive": _BARRIER.format("arrival.place"),
    "cp_async_arrive": _BARRIER.format("place"),
    "bar_arrive": "split.index, cluster.alive[split.warp]",
    "warp_sync": "cluster.alive[split.warp]",
}
_GLOBAL = {  # event -> statements that add to the footprint; access logs are added in `inside`
    "copy_issue": "if copy.tensor.at: map_of(split.row, copy.tensor.at)\n"
    "    if copy.kind == 'load': box(split.row, copy.tensor, copy.start, False)",
    "copy_write": "if copy.kind == 'store': box(token[-1][1], copy.tensor, copy.start, True)",
}
COMPARE = "if following() != key: differs(key)"
RECORD = "append(key)"
OURS = [name for name in EVENTS if name not in ("start", "finish")]


def function(name: str, does: str, space: dict, whole: Callable | None = None) -> Callable:
    """The listener for event `name`: builds the event's key, runs the statement `does` with it, then calls
    `whole`.

    It is generated source code, for the reason given in events/bus.py. Tokens are numbered: the last item of
    a token is (number, row).
    """
    parameters = EVENTS[name]
    says = _PARTS | (_BY_TOKEN if "token" in parameters else {})
    parts = [repr(name), *(says.get(p, p) for p in parameters), _BESIDES.get(name, "")]
    given, told = ", ".join(parameters), f"tell_{name}"
    lines = [
        f"def {name}({given}):",
        _GLOBAL.get(name, ""),
        f"key = ({', '.join(filter(None, parts))},)",
        does,
    ]
    if name in MAKE_TOKENS:
        lines.append(f"token = {told}({given})" if whole else "token = []")
        lines += ["token.append((tokens(), split.row))", "return token"]
    elif whole:
        lines.append(f"{told}({given})")
    space[told] = whole
    return written_out(name, "\n    ".join(filter(None, lines)), space)


def state(barrier) -> tuple | None:
    """The state of an mbarrier that goes into keys."""
    return barrier and (barrier.phase, barrier.pending, barrier.expected, barrier.tx)


def end(cluster: Cluster) -> tuple:
    """The key of the end of a cluster: the final state of its mbarriers, as not every change of them is an
    event.
    """
    return "end", sorted((place, state(barrier)) for place, barrier in cluster.mbarriers.items())


def form(tmap, start: tuple[int, ...]) -> tuple:
    """The key of a copy's box: everything except its position in the tensor, but with the extents by which it
    reaches outside.
    """
    out: tuple = ()
    if not tmap.holds(start):
        out = tuple(
            (min(s, 0), max(s + b - d, 0)) for s, b, d in zip(start, tmap.box, tmap.dims, strict=True)
        )
    return tmap.segment, tmap.box, tmap.element_strides, tmap.swizzle, tmap.dtype, out
