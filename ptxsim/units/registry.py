"""Registry of unit instructions: everything that is not a scalar operation, a plain load / store or a jump.

A unit instruction is decoded once, when the module is loaded: its factory checks every modifier and returns
the handler that runs it. Handlers are called as `handler(cluster, split, args)`; `args` are the resolved
operands. They return None (done, go on), BLOCK (run me again when woken) or PARK (done, but sleep until
woken).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxsim.frontend.parser import Instr, PtxError


@dataclass(frozen=True)
class UnitSpec:
    name: str  # dotted prefix of the opcode, e.g. "mbarrier.try_wait"
    factory: Callable[[Instr], Callable]  # refuses what is not modelled, returns the handler
    writes: tuple[int, ...]  # positions of destination operands
    keeps: bool  # destinations are filled later by a hardware unit: their registers are never shared
    section: str  # PTX ISA section
    silent: bool = False  # moves no data: run only when a check watches
    issued: bool = False  # the thread only hands it to another unit of the chip: nothing comes back to it


UNITS: dict[str, UnitSpec] = {}


def unit(
    *names: str,
    writes: tuple[int, ...] = (),
    keeps: bool = False,
    section: str = "",
    silent: bool = False,
    issued: bool = False,
):
    """Registers a factory for opcodes that start with one of `names`."""

    def register(factory):
        for name in names:
            UNITS[name] = UnitSpec(name, factory, writes, keeps, section, silent, issued)
        return factory

    return register


def find_unit(instr: Instr) -> UnitSpec | None:
    """The unit whose name is the longest dotted prefix of the opcode."""
    parts = (instr.op, *instr.mods)
    for length in range(len(parts), 0, -1):
        spec = UNITS.get(".".join(parts[:length]))
        if spec is not None:
            return spec
    return None


def refuse(instr: Instr, what: str) -> PtxError:
    """The error for an instruction that this machine does not model."""
    return PtxError(what, instr.line, instr.text)


def check_mods(instr: Instr, known: set[str], start: int = 0) -> set[str]:
    """The modifiers behind position `start`, refusing any that is not in `known`."""
    mods = instr.mods[start:]
    unknown = [m for m in mods if m not in known]
    if unknown:
        raise refuse(instr, f"modifier .{unknown[0]} of {instr.op} is not modelled")
    return set(mods)
