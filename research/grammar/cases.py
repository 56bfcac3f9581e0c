"""Instructions to test: legal spellings of every opcode that ptxsim knows, and slight changes of each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import ptxsim.units.all_units  # noqa: F401  (registers the unit instructions)
from ptxsim.isa import memory_access
from ptxsim.isa.scalar import address
from ptxsim.isa.scalar import table as scalar
from ptxsim.isa.syntax import Syntax
from ptxsim.lowering import instruction_selection
from ptxsim.units.registry import UNITS
from research.grammar.operands import scalar_operands, unit_operands

BOXES: dict[str, tuple[Syntax, ...]] = {
    **{name: spec.forms for name, spec in UNITS.items() if name not in ("call", "clock")},
    **memory_access.FORMS,
    **{name: forms for name, (_, forms) in address._FORMS.items() if name != "mov"},
    **{name: forms for name, (forms, _) in instruction_selection._CONTROL.items() if name != "brx"},
}


@dataclass(frozen=True)
class Case:
    family: str  # opcode
    change: str  # "legal", "swapped", "missing", "doubled" or "foreign"
    text: str
    legal: str  # the legal spelling that was changed


def cases(seed: int, each: int) -> list[Case]:
    """`each` legal spellings of every form, and for each of them a change of every kind; no duplicates."""
    found: dict[str, Case] = {}
    for family, parts, operands in _spellings(seed, each):
        rng = random.Random(f"{seed} {parts}")
        legal = _text(parts, operands)
        for change, changed in (("legal", parts), *_changes(rng, family, parts)):
            text = _text(changed, operands)
            found.setdefault(text, Case(family, change, text, legal))
    return list(found.values())


def _text(parts: tuple[str, ...], operands: str) -> str:
    return f"{'.'.join(parts)} {operands}".strip() + ";"


def _spellings(seed: int, each: int) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(opcode, opcode and modifiers, operands)."""
    for name, forms in BOXES.items():
        for form in forms:
            rng, drawn = random.Random(f"{seed} {form.text}"), set()
            for _ in range(8 * each):
                words = [rng.choice(slot.words + ("",) * bool(slot.brace)) for slot in form.slots]
                parts = (*form.name, *filter(None, words))
                operands = unit_operands(parts) if form.arrange(parts) == parts else None
                if operands is not None and len(drawn) < each:
                    drawn.add((name.split(".")[0], parts, operands))
            yield from sorted(drawn)
    for opcode in sorted(scalar.OPCODES):
        table = scalar.spellings(opcode)
        rng = random.Random(f"{seed} {opcode}")
        for mods in rng.sample(list(table), min(8 * each, len(table))):
            form, words = table[mods][0]
            plain = tuple(form_word for form_word in words["name"].rstrip("|").split(".")[1:])
            yield opcode, (opcode, *plain), scalar_operands(words["name"], form.build(words, scalar.HOT))


def _changes(
    rng: random.Random, family: str, parts: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    mods = list(parts[1:])
    if not mods:
        return
    if len(mods) > 1:
        a, b = rng.sample(range(len(mods)), 2)
        swapped = mods.copy()
        swapped[a], swapped[b] = mods[b], mods[a]
        yield "swapped", (parts[0], *swapped)
        at = rng.randrange(len(mods) - 1)
        yield "swapped", (parts[0], *mods[:at], mods[at + 1], mods[at], *mods[at + 2 :])
    at = rng.randrange(len(mods))
    yield "missing", (parts[0], *mods[:at], *mods[at + 1 :])
    at = rng.randrange(len(mods))
    yield "doubled", (parts[0], *mods[: at + 1], mods[at], *mods[at + 1 :])
    at, word = rng.randrange(len(mods)), rng.choice(_words(family))
    yield "foreign", (parts[0], *mods[:at], word, *mods[at + 1 :])


def _words(family: str) -> list[str]:
    """Modifiers that at least one form of the opcode has."""
    if family not in _KNOWN:
        forms = [form for name, boxes in BOXES.items() if name.split(".")[0] == family for form in boxes]
        words = {word for form in forms for word in form.known()}
        words |= {mod for mods in scalar.spellings(family) for mod in mods if mod != "|"}
        _KNOWN[family] = sorted(words) or ["sync"]
    return _KNOWN[family]


_KNOWN: dict[str, list[str]] = {}
