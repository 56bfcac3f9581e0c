"""ld, ldu and st (PTX ISA 9.7.9.8 - 9.7.9.12): what their modifiers say; those left over order or hint.

And what an access synchronises, atomics too (8.4, 8.7).
"""

from __future__ import annotations

from typing import NamedTuple

from ptxsim.frontend.parser import Instr
from ptxsim.isa.address_map import SPACE_GENERIC, SPACES
from ptxsim.isa.operands import type_bits
from ptxsim.isa.syntax import conform, syntax

STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}  # strong operations (PTX ISA 8.4)
_ACCESSES = {  # -> (its value is used, it writes, it is always strong)
    "ld": (True, False, False),
    "st": (False, True, False),
    "atom": (True, True, True),
    "red": (False, True, True),
}
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_CACHE = "{.first}{.second}{.hint}"
_END = "{.vec}.type"
_BOXES = (
    f"ld {{.weak}}{{.any}}{{.reading}}{_CACHE}{{.prefetch}}{{.unified}}{_END} d, [a]{{, policy}}",
    f"ld .volatile{{.any}}{{.prefetch}}{_END} d, [a]",
    f"ld .got.scope{{.any}}{_CACHE}{{.prefetch}}{_END} d, [a]{{, policy}}",
    "ld .mmio.relaxed.sys{.global}.type d, [a]",
    f"ld .global{{.reading}}.nc{_CACHE}{{.prefetch}}{_END} d, [a]{{, policy}}",
    f"ldu {{.global}}{_END} d, [a]",
    f"st {{.weak}}{{.any}}{{.writing}}{_CACHE}{_END} [a], b{{, policy}}",
    f"st .volatile{{.any}}{_END} [a], b",
    f"st .given.scope{{.any}}{_CACHE}{_END} [a], b{{, policy}}",
    "st .mmio.relaxed.sys{.global}.type [a], b",
)
_SETS = {
    "any": " ".join((*SPACES, "param::entry", "param::func")),
    "reading": "ca cg cs lu cv",
    "writing": "wb cg cs wt",
    "first": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "second": "L2::evict_normal L2::evict_first L2::evict_last",
    "got": "relaxed acquire",
    "given": "relaxed release",
    "vec": " ".join(_VECTORS),
    "type": "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
}
FORMS = {
    op: tuple(syntax(b, **_SETS) for b in _BOXES if b.startswith(op + " ")) for op in ("ld", "ldu", "st")
}


class Ordering(NamedTuple):
    """How an access takes part in synchronisation."""

    strong: bool = False
    narrow: bool = False  # with threads of its CTA only
    reads: bool = False  # and its thread gets the value: not so red
    writes: bool = False
    acquires: bool = False
    releases: bool = False
    atomic: bool = False  # it writes what it makes of what was there


def ordering(instr: Instr | None) -> Ordering:
    """Of the instruction; all False if it is no access."""
    if instr is None or instr.op not in _ACCESSES:
        return Ordering()
    mods = set(instr.mods)
    reads, writes, always = _ACCESSES[instr.op]
    strong = always or bool(STRONG & mods)
    acquires, releases = (bool({one, "acq_rel"} & mods) for one in ("acquire", "release"))
    narrow = strong and "cta" in mods
    return Ordering(strong, narrow, reads, writes, acquires and reads, releases and writes, always)


def accept(instr: Instr) -> Instr:
    """A load or store with its modifiers in the order of its syntax box; PtxError if it has none."""
    return conform(instr, FORMS[instr.op], "9.7.9.11" if instr.op == "st" else "9.7.9.8")


def access_form(instr: Instr) -> tuple[int, bool, int, int]:
    """(bytes of an element, sign-extended?, space, elements) of a load or store that was accepted."""
    spaces = [m.split("::e")[0].split("::f")[0] for m in instr.mods]
    space = next((SPACES[m] for m in spaces if m in SPACES), SPACE_GENERIC)
    vector = next((_VECTORS[m] for m in instr.mods if m in _VECTORS), 1)
    kind = instr.mods[-1]
    return type_bits(kind) // 8, kind[0] == "s", space, vector
