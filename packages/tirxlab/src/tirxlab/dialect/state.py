"""The dialect's state while one kernel is parsed; each parse has its own, so that threads do not mix."""

from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import prod
from typing import Any

_THREADS_EACH = {"warpgroup_id": 128, "warp_id": 32, "thread_id": 1}


@dataclass
class ParseState:
    """The state of one parse.

    scopes: the open `with` blocks, outermost first. barriers: (buffer, name given or None).

    ids: (function, parent) -> extents, of the declared ids; id_lines: -> their lines.
    variables: ((function, parent), an id's variable, its extent).
    pools: the shared-memory pools, to be committed.
    assigned: how often the source assigns each name. values: (a variable's buffer, its only value).
    errors: of the refused statements. lost: the names that these would have defined.
    group: (cta_group, the instruction) of the first instruction that names a cta_group.
    entered: whether `with Tx.kernel():` has begun. source, line: of the
    student's statement that is being parsed. caller: line of the call of the function that it is in, or 0.
    """

    scopes: list[str] = field(default_factory=list)
    barriers: list[tuple[Any, str | None]] = field(default_factory=list)
    ids: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    id_lines: dict[tuple[str, str], int] = field(default_factory=dict)
    variables: list[tuple[tuple[str, str], Any, Any]] = field(default_factory=list)
    pools: list[Any] = field(default_factory=list)
    assigned: Counter = field(default_factory=Counter)
    values: list[tuple[Any, Any]] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    group: tuple[int, str] | None = None
    entered: bool = False
    source: Any = None
    line: int = 0
    caller: int = 0

    def cta_threads(self) -> dict[str, int]:
        """How many threads a CTA has by each id that says so: the call -> the number."""
        return {
            f"Tx.{name}({list(extents)})": prod(extents) * _THREADS_EACH[name]
            for (name, parent), extents in self.ids.items()
            if parent == "cta"
        }


_current: ContextVar[ParseState] = ContextVar("tirxlab_parse")


def state() -> ParseState:
    """The state of the kernel being parsed; RuntimeError outside one."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError(
            "Tx operations can be used only inside a @Tx.prim_func(tirx=True) kernel"
        ) from None


def state_or_none() -> ParseState | None:
    """The state of the kernel being parsed; None while TVM parses programs of its own."""
    return _current.get(None)


@contextmanager
def new_state():
    """A fresh state for the parse inside this block."""
    token = _current.set(ParseState())
    try:
        yield _current.get()
    finally:
        _current.reset(token)
