"""The line by which messages name an instruction that stands in the place of calls (PTX ISA 11.5.3).

`full.wait()` becomes instructions whose `.loc` is a line deep in a header, the same for every wait of a
kernel. The reader looks for the call in the kernel. So the name is the innermost place to which only one
chain of calls leads, in a function that does more than one thing: it is the kernel, or a part of it.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath

from ptxsim.frontend.ast import Function, Instr, Location

_ACTS = frozenset(
    {"ld", "st", "atom", "red", "multimem", "ldmatrix", "stmatrix", "cp", "mbarrier", "bar", "barrier"}
    | {"fence", "membar", "mma", "wgmma", "tcgen05"}
)  # what uses memory, waits, signals or multiplies
_Place = tuple[int, int]  # number of the file, line


def tell_lines(function: Function, files: dict[int, str]) -> None:
    """Gives the locations of a function their file and line. files: of the module's .file directives."""
    chains = _chains(function)
    outside: dict[_Place, set[tuple[_Place, ...]]] = defaultdict(set)  # place -> chains of calls to it
    done_at: dict[str, set[_Place]] = defaultdict(set)  # label of an inlined function -> where it acts
    for at, places, acts in chains:
        for depth, place in enumerate(places):
            outside[place].add(tuple(places[depth + 1 :]))
        for call, place in zip(at.calls(), places, strict=False):
            if acts:
                done_at[call.label].add(place)
    for at, places, _ in chains:
        inner = zip(at.calls(), places, strict=False)
        fit = [p for call, p in inner if len(outside[p]) == 1 and len(done_at[call.label]) > 1]
        sure = _sure(at, places)
        file, line = next((place for place in fit if place in sure), next(iter(fit), places[-1]))
        at.line = line or None
        at.file = PurePath(files[file]).name if line and file in files else None


def _sure(at: Location, places: list[_Place]) -> list[_Place]:
    """The places that are in all chains of calls that may have led there."""
    for depth, call in enumerate(at.calls()):
        for other in call.others:
            around = [(one.file, one.line) for one in other.chain()] if other is not None else []
            places = places[: depth + 2] + [place for place in places[depth + 2 :] if place in around]
    return places


def _chains(function: Function) -> list[tuple[Location, list[_Place], bool]]:
    """Of each location: its places, and whether an instruction there acts."""
    found: dict[int, tuple[Location, list[_Place], bool]] = {}
    for instr in function.body:
        if isinstance(instr, Instr) and instr.at.loc is not None:
            known = found.get(id(instr.at))
            acts = (known is not None and known[2]) or (instr.op in _ACTS and "param" not in instr.mods)
            found[id(instr.at)] = instr.at, known[1] if known else instr.at.places(), acts
    return [*found.values()]
