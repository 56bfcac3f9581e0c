"""Syntax boxes of the PTX ISA as data: which modifiers and how many operands an instruction may have.

`syntax("mbarrier.init {.space}.b64 [bar], count")`: the name, whose words come first and in this order; then
the modifiers, each a word or the name of a set of words, in braces if optional (`{.sem.scope}`: both or
none); then the operands. ptxas accepts the modifiers after the name in any order, except that types and state
spaces must keep theirs. So does `Syntax.arrange`, which returns them in the order of the box, so that later
code can rely on it.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptxsim.frontend.ast import Instr, PtxError

KNOWN = (9, 0)  # the version of the PTX ISA that is known here
_HINT = "L2::cache_hint"
SETS = {  # sets of words that many instructions share
    "scope": "cta cluster gpu sys",
    "space": "shared shared::cta shared::cluster",
    "own": "shared shared::cta",
    "hint": _HINT,
    "prefetch": "L2::64B L2::128B L2::256B",
    "group": "cta_group::1 cta_group::2",
    "dim": "1d 2d 3d 4d 5d",
}
_SPACES = {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param"}
_TYPE = re.compile(r"(b|u|s|f|bf|tf|e\dm)\d")


@dataclass(frozen=True)
class Slot:
    words: tuple[str, ...]  # the words allowed here
    brace: int  # number of the pair of braces around it, 0 if it is mandatory


@dataclass(frozen=True)
class Syntax:
    """One line of a syntax box."""

    text: str
    name: tuple[str, ...]
    slots: tuple[Slot, ...]
    operands: tuple[int, int] | None  # fewest and most; None: any number

    def arrange(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """Opcode and modifiers in the order of the box; None if they do not fit it."""
        if parts[: len(self.name)] != self.name:
            return None
        rest, taken = list(parts[len(self.name) :]), []
        for slot in self.slots:
            at = next((i for i, word in enumerate(rest) if word in slot.words), None)
            if at is not None:
                taken.append((at, rest[at]))
                rest[at] = ""
            elif not slot.brace:
                return None
            else:
                taken.append((-1, ""))
        if any(rest) or not _in_order(taken) or self._torn([word for _, word in taken]):
            return None
        return (*self.name, *(word for _, word in taken if word))

    def _torn(self, words: list[str]) -> bool:
        """Whether only some of the words in a pair of braces are given."""
        found = [(slot.brace, bool(word)) for slot, word in zip(self.slots, words, strict=True) if slot.brace]
        return len({brace for brace, _ in found}) != len(set(found))

    def spellings(self) -> Iterator[tuple[str, ...]]:
        """Every legal list of opcode and modifiers, in the order of the box."""
        choices = [slot.words + ("",) * bool(slot.brace) for slot in self.slots]
        for picked in itertools.product(*choices):
            if not self._torn(list(picked)):
                yield (*self.name, *filter(None, picked))

    def operand_counts(self, parts: tuple[str, ...]) -> tuple[int, int]:
        """(fewest, most) operands; a cache policy is an operand if and only if .L2::cache_hint is given."""
        low, high = self.operands or (0, 99)
        if not self.text.endswith("{, policy}"):
            return low, high
        return (low + 1, high) if _HINT in parts else (low, high - 1)

    def known(self) -> set[str]:
        return {word for slot in self.slots for word in slot.words}


def _in_order(taken: list[tuple[int, str]]) -> bool:
    """Whether types, and state spaces, are in the box's order: `.global.shared::cta` is not the reverse."""
    for kind in (_SPACES.__contains__, _TYPE.match):
        places = [at for at, word in taken if at >= 0 and kind(word)]
        if places != sorted(places):
            return False
    return True


def syntax(text: str, **sets: str) -> Syntax:
    """Parses one line of a syntax box. sets: sets of words, separated by spaces, for this line only."""
    found = re.fullmatch(r"(\S+)(?: (\{?\.\S+))?(?: (.*))?", text)
    assert found is not None, text
    name, modifiers, operands = found.groups()
    slots = []
    for number, part in enumerate(re.findall(r"\{[^}]*\}|\.[\w:]+", modifiers or ""), 1):
        for word in re.findall(r"\.([\w:]+)", part):
            words = sets.get(word) or SETS.get(word) or word
            slots.append(Slot(tuple(words.split()), number * part.startswith("{")))
    return Syntax(text, tuple(name.split(".")), tuple(slots), _count(operands or ""))


def _count(operands: str) -> tuple[int, int] | None:
    """(fewest, most) operands: `d, [a]{, policy}` -> (2, 3)."""
    if operands == "..":
        return None
    needed = re.sub(r"\{.*?\}", "", operands)
    fewest = needed.count(",") + bool(needed.strip())
    return fewest, fewest + len(re.findall(r"\{", operands))


@contextlib.contextmanager
def explain_newer(version: str):
    """Adds to a PtxError that the module is of a newer PTX ISA than the one known here, if it is."""
    try:
        yield
    except PtxError as error:
        if tuple(int(part) for part in version.split(".")) <= KNOWN:
            raise
        known = ".".join(str(part) for part in KNOWN)
        what = f"{error.what}; the module needs PTX ISA {version}, and this simulator knows {known}"
        raise PtxError(what, error.line, error.text) from None


def conform(instr: Instr, forms: tuple[Syntax, ...], section: str) -> Instr:
    """The instruction with its modifiers in the order of its syntax box. PtxError if it fits no box."""
    parts = (instr.op, *instr.mods)
    counts = []
    for form in forms:
        arranged = form.arrange(parts)
        if arranged is None:
            continue
        low, high = form.operand_counts(parts)
        if low <= len(instr.operands) <= high:
            return instr if arranged == parts else replace(instr, mods=arranged[1:])
        counts.append(f"{low}" if low == high else f"{low} to {high}")
    if counts:
        wanted = " or ".join(dict.fromkeys(counts))
        what = f"{instr.name} takes {wanted} operands, not {len(instr.operands)}"
    else:
        what = _why_not(instr, forms, section)
    raise PtxError(what, instr.line, instr.text)


def _why_not(instr: Instr, forms: tuple[Syntax, ...], section: str) -> str:
    mods = instr.mods[min(len(form.name) for form in forms) - 1 :]
    known = set().union(*(form.known() for form in forms))
    unknown = [word for word in mods if word not in known]
    name = ".".join(forms[0].name)
    twice = [word for word in instr.mods if instr.mods.count(word) > 1 and not _TYPE.match(word)]
    if twice:
        return f"modifier .{twice[0]} appears twice"
    if unknown:
        return f"modifier .{unknown[0]} of {name} is not modelled (PTX ISA {section})"
    boxes = "; ".join(form.text for form in forms)
    return f"{instr.name} is not a modelled form of {name} (PTX ISA {section}: {boxes})"
