"""Passes each event of a run to its listeners; SILENT if there are none.

A listener is an `Observer`; it may have parts, which get each event right after it. What a listener's
`*_issue` returns is its own token: the bus keeps one per listener and gives it back to that listener only.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence

from ptxsim.events.observer import Observer

MAKE_TOKENS = {"commit_issue", "copy_issue", "cp_async_issue", "wgmma_issue"}
EVENTS = {
    name: list(inspect.signature(method).parameters)[1:]
    for name, method in vars(Observer).items()
    if inspect.isfunction(method)
}


class Silent(Observer):
    """The bus of a run without listeners; units report to it as usual."""

    heard = False  # units skip records that cost time to make
    in_place = False
    observers: tuple[Observer, ...] = ()


SILENT = Silent()


class Bus(Observer):
    """in_place: whether unit instructions must run at once, where they occur, instead of being queued."""

    heard = True

    def __init__(self, listeners: Sequence[Observer], in_place: bool = True):
        whole = [listener for listener in listeners if listener.on]
        self.observers = [observer for one in whole for observer in (one, *one.parts)]
        self.in_place = in_place
        for name, hearers, text in _routes(tuple(map(type, self.observers))):
            calls = {f"call{i}": getattr(self.observers[i], name) for i in hearers}
            setattr(self, name, written_out(name, text, calls) if text else next(iter(calls.values())))


@functools.lru_cache(maxsize=64)
def _routes(kinds: tuple[type[Observer], ...]) -> list[tuple[str, list[int], str]]:
    """For each event: its name, the indices of the observers that override it, and the source of the function
    that passes it on to them; "" if the only one's own method will do.
    """
    return [_route(name, parameters, kinds) for name, parameters in EVENTS.items()]


def _route(name: str, parameters: list[str], kinds: tuple[type[Observer], ...]) -> tuple[str, list[int], str]:
    """The function is generated code: a kernel makes some ten thousand events a second, and a loop over
    listeners with *args would take twice as long.
    """
    hearers = [i for i, kind in enumerate(kinds) if getattr(kind, name) is not getattr(Observer, name)]
    makes_tokens = name in MAKE_TOKENS
    if len(hearers) == 1 and not makes_tokens and not {"token", "tokens"} & set(parameters):
        return name, hearers, ""
    made = ["None"] * len(kinds)
    lines = [f"def {name}({', '.join(parameters)}):", "    pass"]
    for i in hearers:
        own = {"token": f"token[{i}]", "tokens": f"[token[{i}] for token in tokens]"}
        made[i] = f"call{i}({', '.join(own.get(p, p) for p in parameters)})"
        if not makes_tokens:
            lines.append(f"    {made[i]}")
    if makes_tokens:
        lines.append(f"    return [{', '.join(made)}]")
    return name, hearers, "\n".join(lines)


@functools.lru_cache(maxsize=512)
def _code(text: str):
    return compile(text, "<events>", "exec")


def written_out(name: str, text: str, space: dict) -> Callable:
    """The function `name` that the source `text` defines; `space`: its globals."""
    exec(_code(text), space)
    return space[name]
