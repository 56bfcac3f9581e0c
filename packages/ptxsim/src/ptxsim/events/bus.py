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
        for name, parameters in EVENTS.items():
            setattr(self, name, _spread(name, parameters, self.observers))


def _spread(name: str, parameters: list[str], observers: list[Observer]) -> Callable:
    """The function that passes event `name` on to the observers that override it. It is generated code: a
    kernel makes some ten thousand events a second, and a loop over listeners with *args would take twice as
    long.
    """
    calls = [
        (i, getattr(o, name))
        for i, o in enumerate(observers)
        if getattr(type(o), name) is not getattr(Observer, name)
    ]
    plain = name not in MAKE_TOKENS and not {"token", "tokens"} & set(parameters)
    if len(calls) == 1 and plain:
        return calls[0][1]
    made: list[str] = ["None"] * len(observers)
    lines = [f"def {name}({', '.join(parameters)}):", "    pass"]
    for i, _ in calls:
        own = {"token": f"token[{i}]", "tokens": f"[token[{i}] for token in tokens]"}
        call = f"call{i}({', '.join(own.get(p, p) for p in parameters)})"
        if name in MAKE_TOKENS:
            made[i] = call
        else:
            lines.append(f"    {call}")
    if name in MAKE_TOKENS:
        lines.append(f"    return [{', '.join(made)}]")
    return written_out(name, "\n".join(lines), {f"call{i}": call for i, call in calls})


@functools.lru_cache(maxsize=512)
def _code(text: str):
    return compile(text, "<events>", "exec")


def written_out(name: str, text: str, space: dict) -> Callable:
    """The function `name` that the source `text` defines; `space`: its globals."""
    exec(_code(text), space)
    return space[name]
