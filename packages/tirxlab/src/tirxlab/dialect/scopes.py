"""Execution scopes: `with Tx.cta():` says which threads execute a block together.

TVM writes the scope on every operation, `Tx.cta.copy` or `Tx.tile.cta.copy`. Here an operation takes it from
the innermost `with`, also inside `@Tx.inline` helpers; TVM's spelling means the same as a one-line `with`.
"""

from collections.abc import Callable
from math import prod

from tvm.script import tirx as T

from .conditions import decides
from .state import state

SCOPES = ("kernel", "cluster", "cta", "warpgroup", "warp", "thread")
_IDS = {
    ("cta_id", "kernel"): T.cta_id,
    ("cta_id", "cluster"): T.cta_id_in_cluster,
    ("warpgroup_id", "cta"): T.warpgroup_id,
    ("warp_id", "warpgroup"): T.warp_id_in_wg,
    ("warp_id", "cta"): T.warp_id,
    ("thread_id", "warp"): T.lane_id,
    ("thread_id", "warpgroup"): T.thread_id_in_wg,
    ("thread_id", "cta"): T.thread_id,
}
_FIXED = {("warp_id", "warpgroup"): 4, ("thread_id", "warp"): 32, ("thread_id", "warpgroup"): 128}


def current_scope() -> str | None:
    """Name of the innermost scope block being parsed, or None."""
    scopes = state().scopes
    return scopes[-1] if scopes else None


class Scope:
    """`with Tx.warp():`, or with a condition in brackets: `with Tx.thread(parent="warp")[cond]:`."""

    def __init__(self, name: str, condition=None):
        self.name, self.condition = name, condition
        self.frames: list = []

    def __getitem__(self, condition):
        if isinstance(condition, slice | tuple):
            raise TypeError(f"Tx.{self.name}()[...] takes one condition, for example [warp_id == 0]")
        if self.name != "thread" and "elect" in str(condition):
            raise ValueError(
                f"Tx.{self.name}() is for threads that work together, and elect_sync() leaves one of a warp: "
                'write `with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:`'
            )
        return Scope(self.name, condition)

    def __enter__(self):
        if self.name == "kernel":
            if state().entered:
                raise ValueError("a kernel has one `with Tx.kernel():`, around its whole body")
            state().entered = True
            T.device_entry()
        elif not state().scopes:
            raise ValueError(f"Tx.{self.name}() must be written inside `with Tx.kernel():`")
        if self.condition is not None:
            self.frames = [T.If(decides(self.condition)), T.Then()]
            for frame in self.frames:
                frame.__enter__()
        state().scopes.append(self.name)
        return self

    def __exit__(self, *error):
        state().scopes.pop()
        for frame in reversed(self.frames):
            frame.__exit__(*error)


def scope_maker(name: str):
    """The function behind `Tx.<name>(parent=...)`."""

    def make(*conditions, parent: str | None = None) -> Scope:
        if conditions:
            raise TypeError(
                f"a condition goes in brackets after the scope: `with Tx.{name}(...)[condition]:`"
            )
        if parent is not None and parent not in SCOPES[: SCOPES.index(name)]:
            raise ValueError(f"Tx.{name}(parent={parent!r}): parent is one of {SCOPES[: SCOPES.index(name)]}")
        return Scope(name)

    make.__name__ = make.__qualname__ = name
    return make


def within(scope: str, operation: Callable) -> Callable:
    """`operation` as `Tx.<scope>.<its name>`: in that scope, whatever the enclosing `with`."""

    def call(*args, **options):
        with Scope(scope):
            return operation(*args, **options)

    call.__name__ = call.__qualname__ = operation.__name__
    call.__doc__ = operation.__doc__
    return call


def _check_extents(name: str, parent: str, shape: tuple[int, ...]) -> None:
    """ValueError for another number of threads than the parent has, or than an earlier call has said."""
    fixed, before = _FIXED.get((name, parent)), state().ids.get((name, parent), shape)
    if fixed not in (None, prod(shape)):
        raise ValueError(
            f'Tx.{name}({list(shape)}, parent="{parent}"): a {parent} has {fixed}, not {prod(shape)}'
        )
    if prod(before) != prod(shape):
        raise ValueError(
            f'Tx.{name}({list(shape)}, parent="{parent}"): an earlier Tx.{name} says that a {parent} has '
            f"{prod(before)}; is the parent of one of them another?"
        )


def id_maker(name: str):
    """The function behind `Tx.<name>(shape, parent=...)`: `Tx.warp_id([4], parent="warpgroup")`."""
    parents = [parent for kind, parent in _IDS if kind == name]

    def make(shape, parent: str):
        if parent not in parents:
            raise ValueError(f"Tx.{name}(parent={parent!r}): parent is one of {parents}")
        if not state().scopes:
            raise ValueError(f"Tx.{name}() must be written inside `with Tx.kernel():`")
        if not isinstance(shape, list | tuple):
            raise TypeError(
                f"Tx.{name} takes a list of extents, for example Tx.{name}([4], parent={parent!r})"
            )
        if any(isinstance(extent, float) for extent in shape):
            raise TypeError(f"Tx.{name}({list(shape)}): `/` always gives a fraction; write `//`")
        if name == "cta_id" and (name, parent) in state().ids:
            raise ValueError(
                f"Tx.cta_id(parent={parent!r}) is called twice, and both calls would give the same number: "
                "one call gives all dimensions, bx, by = Tx.cta_id([m, n], parent=...)"
            )
        if all(isinstance(extent, int) for extent in shape):
            _check_extents(name, parent, tuple(shape))
            state().ids[name, parent] = tuple(shape)
            state().id_lines[name, parent] = state().line
        made = _IDS[name, parent](list(shape))
        each = [made] if len(shape) == 1 else list(made)
        state().variables += [((name, parent), *one) for one in zip(each, shape, strict=True)]
        return made

    make.__name__ = make.__qualname__ = name
    return make
