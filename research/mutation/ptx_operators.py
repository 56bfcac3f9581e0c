"""Mutation operators on PTX: one instruction left out, doubled, weakened or with another number.

They need no source, so they work on kernels of any compiler. `mutants(ptx)` lists every mutant. What an
operator does to synchronisation or asynchronous copies is what people get wrong in the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class PtxMutant:
    operator: str
    text: str  # the whole module
    line: int  # 1-based, of the changed line
    old: str
    new: str


Change = Callable[[str], str | None]  # a statement -> what stands instead; None: it does not apply


def _without(pattern: str) -> Change:
    """The instruction is left out, with its guard."""

    def apply(statement: str) -> str | None:
        return "" if re.match(rf"(?:@!?%?\w+\s+)?{pattern}", statement) else None

    return apply


def _number(pattern: str, change: Callable[[int], int]) -> Change:
    """The number in the pattern's one group is another one."""

    def apply(line: str) -> str | None:
        found = re.search(pattern, line)
        if found is None or change(int(found[1])) == int(found[1]):
            return None
        return line[: found.start(1)] + str(change(int(found[1]))) + line[found.end(1) :]

    return apply


def _word(pattern: str, new: str) -> Change:
    return lambda line: re.sub(pattern, new, line, count=1) if re.search(pattern, line) else None


def _never(statement: str) -> str | None:
    """A wait that always passes: its predicate is set, whatever the barrier says."""
    found = re.match(r"(@!?%?\w+\s+)?mbarrier\.(?:try|test)_wait\S*\s+(%?\w+),", statement)
    return f"{found[1] or ''}setp.eq.u32 {found[2]}, 0, 0" if found else None


def _other_parity(statement: str) -> str | None:
    found = re.match(r"(.*mbarrier\.(?:try|test)_wait\.parity\S*\s+%?\w+, \[[^]]+\], )(%?\w+)(.*)", statement)
    if found is None:
        return None
    start, parity, rest = found.groups()
    if parity.isdigit():
        return f"{start}{int(parity) ^ 1}{rest}"
    return f"{{ .reg .b32 flipped; xor.b32 flipped, {parity}, 1; {start}flipped{rest}; }}"


OPERATORS: dict[str, Change] = {
    "no CTA barrier": _without(r"(?:bar|barrier)\.sync\b"),
    "no cluster barrier": _without(r"barrier\.cluster\.wait"),
    "no arrival": _without(r"mbarrier\.arrive(?!\.expect_tx)"),
    "no announcement": _without(r"mbarrier\.arrive\.expect_tx"),
    "no copy": _without(r"cp\.async\.bulk\.(?!commit|wait|prefetch)"),
    "no commit": _without(r"tcgen05\.commit"),
    "no proxy fence": _without(r"fence\.proxy\.async"),
    "no tcgen05 fence": _without(r"tcgen05\.fence"),
    "no wait for tensor memory": _without(r"tcgen05\.wait"),
    "no wait for a group": _without(r"(?:cp\.async\.(?:bulk\.)?|wgmma\.)wait_group"),
    "no group": _without(r"(?:cp\.async\.(?:bulk\.)?|wgmma\.)commit_group"),
    "no wgmma fence": _without(r"wgmma\.fence"),
    "no dealloc": _without(r"tcgen05\.dealloc"),
    "no warp barrier": _without(r"bar\.warp\.sync"),
    "a wait that passes": _never,
    "the other parity": _other_parity,
    "one arrival more expected": _number(r"mbarrier\.init\S*\s+\[[^]]+\], (\d+)", lambda n: n + 1),
    "one arrival fewer expected": _number(r"mbarrier\.init\S*\s+\[[^]]+\], (\d+)", lambda n: max(n - 1, 1)),
    "half the bytes": _number(r"expect_tx\S*\s+_, \[[^]]+\], (\d+)", lambda n: n // 2),
    "another barrier id": _number(r"(?:bar|barrier)\.sync(?:\.aligned)?\s+(\d+)", lambda n: (n + 1) % 16),
    "one group more under way": _number(r"wait_group(?:\.read|\.sync\.aligned)?\s+(\d+)", lambda n: n + 1),
    "half the columns freed": _number(r"tcgen05\.dealloc\S*\s+%?\w+, (\d+)", lambda n: n // 2),
    "wait for reads only": _word(r"cp\.async\.bulk\.wait_group (?!read)", "cp.async.bulk.wait_group.read "),
    "release made relaxed": _word(r"(?<!mbarrier_init)\.release\.", ".relaxed."),
}


def mutants(ptx: str) -> Iterator[PtxMutant]:
    """Every mutant, by line and then by operator; directives and comments stay as they are."""
    lines = ptx.split("\n")
    for number, line in enumerate(lines):
        code = line.partition("//")[0]
        if not code.strip() or code.lstrip().startswith("."):
            continue
        for operator, change in OPERATORS.items():
            for new in _changed(code, change):
                text = "\n".join([*lines[:number], new, *lines[number + 1 :]])
                yield PtxMutant(operator, text, number + 1, code.strip(), new.strip())


def _changed(code: str, change: Change) -> Iterator[str]:
    """The line with one of its statements changed."""
    parts = code.split(";")
    for place, part in enumerate(parts):
        lead = re.match(r"[\s{}]*", part)[0]
        new = change(part[len(lead) :])
        if new is not None and new != part[len(lead) :]:
            joined = ";".join([*parts[:place], lead + new, *parts[place + 1 :]])
            joined = joined.replace(f"{new};", new) if new.endswith("}") else joined  # no `;` behind a block
            yield re.sub(r"^\s*;|(?<=[;{])\s*;", "", joined) if not new else joined
