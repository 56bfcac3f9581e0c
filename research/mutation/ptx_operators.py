"""Mutation operators on PTX: one instruction dropped, moved, weakened, or with another number or address.

They need no source, so they work on kernels of any compiler. `mutants(ptx)` lists every mutant. The operators
act on synchronisation and asynchronous copies, as mistakes in the source do.
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


Change = Callable[[str], str | None]  # a statement -> its replacement; None: the change does not apply


def _without(pattern: str) -> Change:
    """Drops the instruction, with its guard."""

    def apply(statement: str) -> str | None:
        return "" if re.match(rf"(?:@!?%?\w+\s+)?{pattern}", statement) else None

    return apply


def _number(pattern: str, change: Callable[[int], int]) -> Change:
    """Changes the number in the pattern's only group."""

    def apply(line: str) -> str | None:
        found = re.search(pattern, line)
        if found is None or change(int(found[1])) == int(found[1]):
            return None
        return line[: found.start(1)] + str(change(int(found[1]))) + line[found.end(1) :]

    return apply


def _word(pattern: str, new: str) -> Change:
    return lambda line: re.sub(pattern, new, line, count=1) if re.search(pattern, line) else None


def _never(statement: str) -> str | None:
    """Turns a wait into one that always passes: its predicate is set, whatever the barrier's state."""
    found = re.match(r"(@!?%?\w+\s+)?mbarrier\.(?:try|test)_wait\S*\s+(%?\w+),", statement)
    return f"{found[1] or ''}setp.eq.u32 {found[2]}, 0, 0" if found else None


def _operand(pattern: str, change: Callable[[int], int], instruction: str) -> Change:
    """Changes the operand after the pattern; `instruction` applies the change to a register."""

    def apply(statement: str) -> str | None:
        found = re.match(rf"(.*{pattern})(%?\w+)(.*)", statement)
        if found is None:
            return None
        start, value, rest = found.groups()
        if value.isdigit():
            return f"{start}{change(int(value))}{rest}" if change(int(value)) != int(value) else None
        return f"{{ .reg .b32 other; {instruction.format(value)}; {start}other{rest}; }}"

    return apply


def _farther(pattern: str, bytes_: int, last: bool = False) -> Change:
    """Moves the first (or last) address of the instruction forward by so many bytes."""

    def apply(statement: str) -> str | None:
        if not re.match(rf"(?:@!?%?\w+\s+)?{pattern}", statement):
            return None
        found = [*re.finditer(r"\[(%?\w+)(?:\+(\d+))?\]", statement)]
        if not found:
            return None
        at = found[-1 if last else 0]
        return f"{statement[: at.start()]}[{at[1]}+{int(at[2] or 0) + bytes_}]{statement[at.end() :]}"

    return apply


_INIT = r"mbarrier\.init\S*\s+\[[^]]+\], "
_PARITY = r"mbarrier\.(?:try|test)_wait\.parity\S*\s+%?\w+, \[[^]]+\], "
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
    "the other parity": _operand(_PARITY, lambda n: n ^ 1, "xor.b32 other, {}, 1"),
    "one arrival more expected": _operand(_INIT, lambda n: n + 1, "add.u32 other, {}, 1"),
    "one arrival fewer expected": _operand(_INIT, lambda n: max(n - 1, 1), "sub.u32 other, {}, 1"),
    "half the bytes": _operand(r"expect_tx\S*\s+_, \[[^]]+\], ", lambda n: n // 2, "shr.u32 other, {}, 1"),
    "the next barrier": _farther(r"(?:mbarrier\.(?:arrive|try_wait|test_wait)|tcgen05\.commit)", 8),
    "bytes for the next barrier": _farther(r"cp\.async\.bulk\S*\.mbarrier::complete_tx", 8, last=True),
    "the next columns": _farther(r"tcgen05\.(?:ld|st|mma|cp)", 16),
    "another barrier id": _number(r"(?:bar|barrier)\.sync(?:\.aligned)?\s+(\d+)", lambda n: (n + 1) % 16),
    "one group more under way": _number(r"wait_group(?:\.read|\.sync\.aligned)?\s+(\d+)", lambda n: n + 1),
    "half the columns freed": _operand(
        r"tcgen05\.dealloc\S*\s+%?\w+, ", lambda n: n // 2, "shr.u32 other, {}, 1"
    ),
    "wait for reads only": _word(r"cp\.async\.bulk\.wait_group (?!read)", "cp.async.bulk.wait_group.read "),
    "release made relaxed": _word(r"(?<!mbarrier_init)\.release\.", ".relaxed."),
}


LATE = "a fence behind the barrier"  # changes two lines, so it is not an operator of one statement
_FENCE = re.compile(r"\s*(?:@!?%?\w+\s+)?(?:fence\.|tcgen05\.fence|tcgen05\.wait|wgmma\.fence)")
_BARRIER = re.compile(r"\s*(?:@!?%?\w+\s+)?(?:bar|barrier|mbarrier\.arrive)\b")
_ELSEWHERE = re.compile(r"\s*(?:\$?\w+:|(?:@!?%?\w+\s+)?(?:bra|ret|exit)\b)")  # ends straight-line code


def mutants(ptx: str) -> Iterator[PtxMutant]:
    """Every mutant, by line and then by operator; directives and comments are not changed."""
    lines = ptx.split("\n")
    for number, line in enumerate(lines):
        code = line.partition("//")[0]
        if not code.strip() or code.lstrip().startswith("."):
            continue
        for operator, change in OPERATORS.items():
            for new in _changed(code, change):
                text = "\n".join([*lines[:number], new, *lines[number + 1 :]])
                yield PtxMutant(operator, text, number + 1, code.strip(), new.strip())
        behind = _barrier_behind(lines, number) if _FENCE.match(line) else None
        if behind is not None:
            moved = [*lines[:number], *lines[number + 1 : behind + 1], line, *lines[behind + 1 :]]
            new = f"behind line {behind + 1}: {lines[behind].strip()}"
            yield PtxMutant(LATE, "\n".join(moved), number + 1, code.strip(), new)


def _barrier_behind(lines: list[str], number: int) -> int | None:
    """The first barrier or arrival that always follows this line."""
    for at in range(number + 1, len(lines)):
        if _BARRIER.match(lines[at]):
            return at
        if _ELSEWHERE.match(lines[at]):
            return None
    return None


def _changed(code: str, change: Change) -> Iterator[str]:
    """The line with one of its statements changed."""
    parts = code.split(";")
    for place, part in enumerate(parts):
        lead = re.match(r"[\s{}]*", part)[0]
        new = change(part[len(lead) :])
        if new is not None and new != part[len(lead) :]:
            joined = ";".join([*parts[:place], lead + new, *parts[place + 1 :]])
            joined = joined.replace(f"{new};", new) if new.endswith("}") else joined  # no `;` after a block
            yield re.sub(r"^\s*;|(?<=[;{])\s*;", "", joined) if not new else joined
