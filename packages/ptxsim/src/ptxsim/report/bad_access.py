"""Accesses outside their memory: what they are called, where they point, and what to check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxsim.causes.catalogue import CAUSES
from ptxsim.frontend.ast import Instr
from ptxsim.isa.address_map import (
    CONVERT,
    FAULT_BOUNDS,
    FAULT_LOCAL,
    FAULT_MISALIGNED,
    FAULT_OTHER_CTA,
    IN_PARAM_SPACE,
    LOCAL_BASE,
    WINDOW_MASK,
    before_shared,
    is_shared,
    shared_place,
)
from ptxsim.report.names import local_place

if TYPE_CHECKING:  # imports numpy: see findings.py
    from ptxsim.events.views import Split

_FAULTS: dict[int, tuple[str, str, Any]] = {  # fault of an address -> kind, message, hint
    FAULT_MISALIGNED: (
        "misaligned",
        "at an address that is not a multiple of its size",
        "vector accesses need addresses aligned to the whole vector",
    ),
    FAULT_OTHER_CTA: (
        "cluster",
        "at another CTA's shared memory",
        "use mapa and .shared::cluster, and only ranks of this cluster",
    ),
    FAULT_LOCAL: (
        "illegal",
        "at an address in local memory",
        "only ld and st can access local memory: use an address in global or shared memory",
    ),
    FAULT_BOUNDS: ("out-of-bounds", "out of bounds", CAUSES["outside"]),
}
_ACCESS = {"ld": "load", "st": "store", "atom": "atomic access", "red": "reduction", "cp": "cp.async"}


def told_fault(reporter, where: Split, code: int, address: int, straddles: bool) -> tuple[str, str, Any]:
    """(kind, message, hint). straddles: other lanes of the access are inside the buffer."""
    kind, text, hint = _FAULTS[code]
    what = _ACCESS.get(where.instr.op, where.instr.op)
    inside = _in_shared(where.instr, address)
    rank, size = shared_place(address)[0], where.cluster.ctas
    if code == FAULT_OTHER_CTA and rank >= size:
        text, hint = f"at CTA rank {rank} of a cluster of {size}", CAUSES["no-rank"]
        if before_shared(address):
            kind, text, hint = "out-of-bounds", "out of bounds", CAUSES["before-shared"]
    who = "" if inside else f" by CTA {where.cluster.cta_ids[where.cta]}"
    place, cause = _place(reporter, where, code, address, straddles)
    if place.endswith(IN_PARAM_SPACE):
        hint = CONVERT
    elif cause and code == FAULT_BOUNDS:
        hint = CAUSES[cause]
    return kind, f"{what} {text}{who}: {place}", hint


def _place(reporter, where: Split, code: int, address: int, straddles: bool) -> tuple[str, str]:
    """(what lies there, id of the cause of a fault there or "")."""
    program = where.cluster.program
    if code == FAULT_LOCAL:
        return local_place(program.local_offsets, address - LOCAL_BASE), ""
    if "local" in where.instr.mods:
        return f"local memory + {address} B, of which each thread has {program.local_bytes} B", "past-local"
    if _in_shared(where.instr, address):
        if before := before_shared(address):
            return f"{before} B before shared memory", "past-shared"
        offset = shared_place(address)[1]
        last = reporter.buffer_before(offset)
        short = last is not None and last[0] in reporter.dynamic
        return reporter.outside_shared(offset), "dynamic-short" if short else "past-shared"
    place = reporter.memory.describe(address, straddles) if reporter.memory else hex(address)
    return place, "null" if place.split(" ")[0] == "null" else ""


def _in_shared(instr: Instr, address: int) -> bool:
    """Whether an instruction's address is meant for shared memory. Null is not."""
    small = 0 <= address <= WINDOW_MASK
    return bool(is_shared(address)) or small and any(mod.startswith("shared") for mod in instr.mods)
