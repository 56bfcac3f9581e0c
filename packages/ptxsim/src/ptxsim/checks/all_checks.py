"""Dynamic checks, implemented as observers of machine events.

A check is a class `Check(launch, reporter)` derived from `observer.Observer` and listed in OBSERVERS; it may
have parts, which are observers too and come right after it. `Checker` hands every event to the observers that
listen to it. What an observer's `*_issue` returned is its own token: the machine gives it back to that
observer alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from ptxsim.checks.barrier_history import History
from ptxsim.checks.diagnosis.clues import Clues
from ptxsim.checks.lifecycle.bulk_copies import BulkCopies
from ptxsim.checks.lifecycle.cluster_peers import Peers
from ptxsim.checks.lifecycle.descriptors import Descriptors
from ptxsim.checks.lifecycle.early_register_reads import LoadedRegisters
from ptxsim.checks.lifecycle.mbarriers import Barriers
from ptxsim.checks.lifecycle.register_counts import RegisterCounts
from ptxsim.checks.lifecycle.shared_memory import SharedMemory
from ptxsim.checks.lifecycle.tensor_memory import TmemLife
from ptxsim.checks.lifecycle.unset_registers import UnsetStores
from ptxsim.checks.lifecycle.useless_stores import UselessStores
from ptxsim.checks.lifecycle.wmma_fragments import WmmaFragments
from ptxsim.checks.observer import Observer
from ptxsim.checks.race.detector import RaceDetector

OBSERVERS: tuple[type[Observer], ...] = (
    Barriers,
    History,
    Peers,
    SharedMemory,
    TmemLife,
    BulkCopies,
    Descriptors,
    LoadedRegisters,
    RegisterCounts,
    UselessStores,
    UnsetStores,
    WmmaFragments,
    RaceDetector,
    Clues,
)

MAKE_TOKENS = {"commit_issue", "tma_issue", "cp_async_issue", "wgmma_issue"}
EVENTS = {
    name: list(inspect.signature(method).parameters)[1:]
    for name, method in vars(Observer).items()
    if inspect.isfunction(method)
}


class Checker:
    """All checks of a launch (none of them with checks=False), then `extra`. Has every method of Observer."""

    def __init__(self, launch, reporter, checks: bool = True, extra: tuple[Observer, ...] = ()):
        whole = [check(launch, reporter) for check in OBSERVERS if checks] + [*extra]
        whole = [check for check in whole if check.on]
        self.observers = [observer for check in whole for observer in (check, *check.parts)]
        self.in_place = bool(extra)  # they want every unit instruction to run where it stands
        for name, parameters in EVENTS.items():
            setattr(self, name, _spread(name, parameters, self.observers))


def _spread(name: str, parameters: list[str], observers: list[Observer]) -> Callable:
    """The function that passes event `name` on to those who override it. It is written out, as a
    kernel makes some ten thousand events a second: a loop over listeners with *args takes twice as long.
    """
    calls = [
        (i, getattr(o, name))
        for i, o in enumerate(observers)
        if getattr(type(o), name) is not getattr(Observer, name)
    ]
    if len(calls) == 1 and name not in MAKE_TOKENS and "token" not in parameters:
        return calls[0][1]
    tokens = [None] * len(observers)
    lines = [f"def {name}({', '.join(parameters)}):", "    pass"]
    for i, _ in calls:
        given = ", ".join(f"token[{i}]" if p == "token" else p for p in parameters)
        if name in MAKE_TOKENS:
            tokens[i] = f"call{i}({given})"
        else:
            lines.append(f"    call{i}({given})")
    if name in MAKE_TOKENS:
        lines.append(f"    return [{', '.join(map(str, tokens))}]")
    return written_out(name, "\n".join(lines), {f"call{i}": call for i, call in calls})


@functools.lru_cache(maxsize=512)
def _code(text: str):
    return compile(text, "<events>", "exec")


def written_out(name: str, text: str, space: dict) -> Callable:
    """The function `name` that a text defines; `space`: its global names."""
    exec(_code(text), space)
    return space[name]
