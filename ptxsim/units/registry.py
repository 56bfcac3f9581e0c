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
from ptxsim.jit.bytecode import FIRST_FAST
from ptxsim.jit.codegen import FastCall


@dataclass(frozen=True, eq=False)
class FastForm:
    """The usual case of a unit instruction as compiled code, for runs without observers.

    What it leaves out goes to the handler, as if there were no fast form. The compiled functions are njit, in
    the file that registers the instruction; `main_loop` calls them.
    """

    encode: Callable  # (instr, args) -> columns of the bytecode row, or None: handler only
    each: str = ""  # name of f(c, m, registers, predicates, rank, control) -> done? for lanes m at row c
    together: str = ""  # name of f(control, number) -> moved? for all splits, when every one of them stands


@dataclass(frozen=True)
class UnitSpec:
    name: str  # dotted prefix of the opcode, e.g. "mbarrier.try_wait"
    factory: Callable[[Instr], Callable]  # refuses what is not modelled, returns the handler
    writes: tuple[int, ...]  # positions of destination operands
    async_destination: (
        bool  # destinations are filled later by a hardware unit: their registers are never shared
    )
    section: str  # PTX ISA section
    observer_only: bool = False  # moves no data: run only when there are observers
    fire_and_forget: bool = False  # the thread hands it to another unit of the chip: nothing comes back
    fast: FastForm | None = None


UNITS: dict[str, UnitSpec] = {}
FAST_FORMS: list[tuple[FastForm, str]] = []  # and the module that holds the compiled functions


def fast_calls() -> tuple[FastCall, ...]:
    """The fast forms as `main_loop` needs them."""
    numbered = enumerate(FAST_FORMS, FIRST_FAST)
    return tuple(FastCall(n, module, form.each, form.together) for n, (form, module) in numbered)


def fast_number(form: FastForm) -> int:
    """What the AUX column of its rows holds."""
    return next(n for n, (known, _) in enumerate(FAST_FORMS, FIRST_FAST) if known is form)


def unit(
    *names: str,
    writes: tuple[int, ...] = (),
    async_destination: bool = False,
    section: str = "",
    observer_only: bool = False,
    fire_and_forget: bool = False,
    fast: FastForm | None = None,
):
    """Registers a factory for opcodes that start with one of `names`."""

    def register(factory):
        for name in names:
            UNITS[name] = UnitSpec(
                name, factory, writes, async_destination, section, observer_only, fire_and_forget, fast
            )
        if fast is not None:
            FAST_FORMS.append((fast, factory.__module__))
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
    """The modifiers after position `start`, refusing any that is not in `known`."""
    mods = instr.mods[start:]
    unknown = [m for m in mods if m not in known]
    if unknown:
        raise refuse(instr, f"modifier .{unknown[0]} of {instr.op} is not modelled")
    return set(mods)
