"""Registry of unit instructions: everything that is not a scalar operation, a plain load / store or a jump.

A unit declares the syntax boxes of its instructions (isa/syntax.py) in `@unit`: modifiers and operand counts
that none of them has are refused before its factory sees an instruction, and the modifiers that it sees stand
in the order of the box. The factory decodes it once, when the module is loaded, and returns the handler that
runs it. Handlers are called as `handler(cluster, split, args)`; `args` are the resolved operands, or what the
unit's `prepare` makes of them. They return None (done, go on), BLOCK (run me again when woken) or PARK (done,
but sleep until woken).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ptxsim.frontend.ast import Instr, Mem, PtxError
from ptxsim.isa.syntax import Syntax, conform, syntax
from ptxsim.jit.bytecode import FIRST_FAST
from ptxsim.jit.codegen import FastCall


@dataclass(frozen=True, eq=False)
class FastForm:
    """The usual case of a unit instruction as compiled code, for runs without observers, or if they hear
    nothing of it.

    What it leaves out goes to the handler, as if there were no fast form. The compiled functions are in the
    file that registers the instruction. `inner` ones become part of the main loop: what is short, and common.
    A `called` one is compiled when a kernel needs it.
    """

    # (instr, args) -> columns of the bytecode row, or None: handler only
    # with `called`: (instr, args, slots that the kernel may read before it writes them) -> Block, or None
    encode: Callable
    called: Callable | None = None  # a function of jit/called.py
    each: str = ""  # name of f(c, m, registers, predicates, rank, control) -> done? for lanes m at row c
    together: str = ""  # name of f(control, number) -> moved? for all splits, when every one of them stands
    gathers: bool = False  # it needs other warps: its handler is asked when those without are done
    unheard: bool = False  # it makes no event: with observers, too, the loop does it for a whole warp


@dataclass(frozen=True)
class UnitSpec:
    name: str  # dotted prefix of the opcode, e.g. "mbarrier.try_wait"
    forms: tuple[Syntax, ...]  # that are modelled
    factory: Callable[[Instr], Callable]  # returns the handler
    writes: tuple[int, ...]  # positions of destination operands
    async_destination: bool  # a hardware unit fills destinations later: their registers are never shared
    section: str  # PTX ISA section
    observer_only: bool = False  # moves no data: run only when there are observers
    fire_and_forget: bool = False  # the thread hands it to another unit of the chip: nothing comes back
    signals: str | None = None  # it signals the mbarrier at its last address with this modifier; "": always
    fast: FastForm | None = None
    prepare: Callable[[tuple], object] = tuple  # resolved operands -> `args` of its handler
    tensor_core: bool = False  # it goes to the queue of the tensor core

    def accept(self, instr: Instr) -> Instr:
        """The instruction with its modifiers in order; PtxError if no form has them."""
        named = self.name.split(".")[1:]
        if instr.op in _ANY_ORDER and instr.mods[: len(named)] != tuple(named):
            rest = list(instr.mods)
            for word in named:
                rest.remove(word)
            instr = replace(instr, mods=(*named, *rest))
        return conform(instr, self.forms, self.section)


_ANY_ORDER = {"vote", "shfl", "match", "redux"}  # ptxas takes their .sync anywhere, and CUB writes it last
UNITS: dict[str, UnitSpec] = {}
FAST_FORMS: list[tuple[FastForm, str]] = []  # and the module that holds the compiled functions


@functools.cache
def fast_calls() -> tuple[FastCall, ...]:
    """The fast forms as `main_loop` needs them, once all units are there."""
    return tuple(
        FastCall(n, module, form.each, form.together, form.unheard) for n, (form, module) in _numbered()
    )


def fast_number(form: FastForm) -> int:
    """What the UNIT_FORM column of its rows holds."""
    return next(n for n, (known, _) in _numbered() if known is form)


def _numbered() -> Iterable[tuple[int, tuple[FastForm, str]]]:
    """By name, whichever unit was imported first: the loop is compiled once, not once for each order."""
    return enumerate(sorted(FAST_FORMS, key=lambda one: (one[1], one[0].each, one[0].together)), FIRST_FAST)


def unit(
    *boxes: str,
    section: str,
    name: str = "",
    writes: tuple[int, ...] = (),
    async_destination: bool = False,
    observer_only: bool = False,
    fire_and_forget: bool = False,
    signals: str | None = None,
    fast: FastForm | None = None,
    prepare: Callable[[tuple], object] = tuple,
    tensor_core: bool = False,
    **sets: str,
):
    """Registers a factory for the instructions of these syntax boxes, under their names (or `name`)."""
    by_name: dict[str, list[Syntax]] = {}
    for form in (syntax(box, **sets) for box in boxes):
        by_name.setdefault(name or ".".join(form.name), []).append(form)
    traits = (writes, async_destination, section, observer_only, fire_and_forget, signals)

    def register(factory):
        for key, forms in by_name.items():
            UNITS[key] = UnitSpec(key, tuple(forms), factory, *traits, fast, prepare, tensor_core)
        if fast is not None and fast.called is None:
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
    if instr.op in _ANY_ORDER:
        return next((s for s in UNITS.values() if set(s.name.split(".")) <= set(parts)), None)
    return None


def signalled(instr: Instr) -> Mem | None:
    """The address of the mbarrier that an instruction arrives on, or reports its bytes or its end to."""
    spec = find_unit(instr)
    if spec is None or spec.signals is None or (spec.signals and spec.signals not in instr.mods):
        return None
    return [operand for operand in instr.operands if isinstance(operand, Mem)][-1]


def for_tensor_core(instr: Instr | None) -> bool:
    """Whether it goes to the queue of the tensor core."""
    found = find_unit(instr) if instr is not None else None
    return found is not None and found.tensor_core


def gathers(instr: Instr | None) -> bool:
    """Whether the main loop does an instruction for several warps at once."""
    found = find_unit(instr) if instr is not None else None
    return found is not None and found.fast is not None and found.fast.gathers


def slots_of(operand) -> tuple:
    """The slots of an operand that is a vector of registers, or one."""
    return operand if isinstance(operand, tuple) else (operand,)


def always(handler: Callable) -> Callable:
    """A factory for instructions that all have this handler: nothing in them is to be decoded."""
    return functools.wraps(handler)(lambda instr: handler)  # in the module of the handler


def refuse(instr: Instr, what: str) -> PtxError:
    """The error for an instruction that this machine does not model."""
    return PtxError(what, instr.line, instr.text)
