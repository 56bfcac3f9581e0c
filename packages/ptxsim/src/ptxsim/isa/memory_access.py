"""Modifiers of ld, ldu and st (PTX ISA 9.7.9.8 - 9.7.9.12), and how accesses, atomics too, take part in
synchronisation (8.4, 8.7).
"""

from __future__ import annotations

from typing import NamedTuple

from ptxsim.frontend.ast import Instr, PtxError
from ptxsim.isa.address_map import SPACE_GENERIC, SPACES
from ptxsim.isa.operands import type_bits
from ptxsim.isa.syntax import conform, syntax

STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}  # strong operations (PTX ISA 8.4)
ASKS = {"volatile", "relaxed", "acquire", "mmio"}  # loads that may poll what others write
LOOKS = ASKS | {"cv"}  # the same, also those that only pass by the caches
_ACCESSES = {  # opcode -> (its thread gets the value, it writes, it is always strong)
    "ld": (True, False, False),
    "st": (False, True, False),
    "atom": (True, True, True),
    "red": (False, True, True),
}
VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_CACHE = "{.first}{.second}{.hint}"
_END = "{.vec}.type"
_BOXES = (
    f"ld {{.weak}}{{.any}}{{.reading}}{_CACHE}{{.prefetch}}{_END} d, [a]{{, policy}}",
    f"ld .volatile{{.any}}{{.prefetch}}{_END} d, [a]",
    f"ld .got.scope{{.any}}{_CACHE}{{.prefetch}}{_END} d, [a]{{, policy}}",
    "ld .mmio.relaxed.sys{.global}.type d, [a]",
    f"ld .global{{.reading}}.nc{_CACHE}{{.prefetch}}{_END} d, [a]{{, policy}}",
    "ldu {.global}{.short}.type d, [a]",
    f"st {{.weak}}{{.own}}{{.writing}}{_CACHE}{_END} [a], b{{, policy}}",
    f"st .volatile{{.own}}{_END} [a], b",
    f"st .given.scope{{.own}}{_CACHE}{_END} [a], b{{, policy}}",
    "st .mmio.relaxed.sys{.global}.type [a], b",
)
_SETS = {
    "any": " ".join((*SPACES, "param::entry", "param::func")),
    "own": " ".join((*(space for space in SPACES if space != "const"), "param::func")),
    "reading": "ca cg cs lu cv",
    "writing": "wb cg cs wt",
    "first": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "second": "L2::evict_normal L2::evict_first L2::evict_last",
    "got": "relaxed acquire",
    "given": "relaxed release",
    "vec": " ".join(VECTORS),
    "short": "v2 v4",
    "type": "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
}
FORMS = {
    op: tuple(syntax(b, **_SETS) for b in _BOXES if b.startswith(op + " ")) for op in ("ld", "ldu", "st")
}


class Ordering(NamedTuple):
    """How an access takes part in synchronisation."""

    strong: bool = False
    narrow: bool = False  # strong at CTA scope only
    near: bool = False  # strong within a CTA or cluster only
    reads: bool = False  # its thread gets the value; False for red
    writes: bool = False
    acquires: bool = False
    releases: bool = False
    atomic: bool = False  # read-modify-write


def ordering(instr: Instr | None) -> Ordering:
    """The Ordering of an instruction; all False if it is not an access."""
    if instr is None or instr.op not in _ACCESSES:
        return Ordering()
    mods = set(instr.mods)
    reads, writes, always = _ACCESSES[instr.op]
    strong = always or bool(STRONG & mods)
    acquires, releases = (bool({one, "acq_rel"} & mods) for one in ("acquire", "release"))
    narrow = strong and "cta" in mods
    near = strong and bool({"cta", "cluster"} & mods)
    return Ordering(strong, narrow, near, reads, writes, acquires and reads, releases and writes, always)


def accept(instr: Instr) -> Instr:
    """A load or store with its modifiers in the order of its syntax box. PtxError if it fits no box."""
    section = "9.7.9.11" if instr.op == "st" else "9.7.9.8"
    instr = conform(instr, FORMS[instr.op], section)
    if why := _misfit(instr):
        raise PtxError(f"{instr.name}: {why} (PTX ISA {section})", instr.line, instr.text)
    return instr


ELSEWHERE = {*SPACES, "param::entry", "param::func"} - {"global"}  # spaces other than global memory
_SHARED = {"shared", "shared::cta", "shared::cluster"}
_OPERATORS = {*_SETS["reading"].split(), *_SETS["writing"].split()}


def _misfit(instr: Instr) -> str:
    """Why modifiers that fit a syntax box are not legal together; "" if they are."""
    mods = set(instr.mods)
    cached = {mod for mod in mods if mod.startswith(("L1::", "L2::"))}
    spaces = mods & ELSEWHERE
    if spaces and cached:
        return f".{min(cached)} is for global memory"
    if spaces - _SHARED and STRONG & mods and not {"volatile", "local"} <= mods:  # CUDA 13.5 writes these
        return f".{min(spaces)} is visible to its own thread only"
    if mods & _OPERATORS and any("evict" in mod or "allocate" in mod for mod in cached):
        return "a cache operator excludes an eviction priority"
    if "nc" in mods and mods & {"lu", "cv"}:
        return "a cache operator that .nc does not have"
    bits = type_bits(instr.mods[-1])
    size = bits * max((count for word, count in VECTORS.items() if word in mods), default=1)
    wide = size == 256 and bits >= 32
    if size > 128 and not wide:
        return "a vector has at most 128 bits, or 256 as .v8.b32 or .v4.b64"
    if not wide and any(mod.startswith("L2::evict") for mod in mods):
        return "an L2 eviction priority is only for .v8.b32 and .v4.b64"
    return ""


def access_form(instr: Instr) -> tuple[int, bool, int, int]:
    """(bytes per element, whether sign-extended, space, elements) of an accepted load or store."""
    spaces = [m.split("::e")[0].split("::f")[0] for m in instr.mods]
    space = next((SPACES[m] for m in spaces if m in SPACES), SPACE_GENERIC)
    vector = next((VECTORS[m] for m in instr.mods if m in VECTORS), 1)
    kind = instr.mods[-1]
    return type_bits(kind) // 8, kind[0] == "s", space, vector
