"""Registry of unit instructions: everything that is not a scalar operation, a plain load / store or a jump.

A unit declares the syntax boxes of its instructions (isa/syntax.py) in `@unit`. An instruction whose
modifiers or operand count match no box is refused before the unit's factory sees it; otherwise its modifiers
are put in the order of the box. The factory decodes an instruction once, when the module is loaded, and
returns the handler that runs it. Handlers are called as `handler(cluster, split, args)`; `args` are the
resolved operands, or what the unit's `prepare` makes of them. They return None (done; continue), BLOCK (not
done: run the handler again when woken) or PARK (done, but sleep until woken).
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
    """The usual case of a unit instruction in compiled code, for runs without observers, or if the
    instruction makes no event for them.

    All other cases go to the handler, as if there were no fast form. The compiled functions are in the module
    that registers the instruction. `inner` functions become part of the main loop: short and common ones. A
    `called` function is compiled when a kernel needs it.
    """

    # (instr, args) -> columns of the bytecode row, or None: handler only
    # with `called`: (instr, args, slots that the kernel may read before it writes them) -> Block, or None
    encode: Callable
    called: Callable | None = None  # a function of jit/called.py
    each: str = ""  # name of f(c, m, registers, predicates, rank, control) -> done? for lanes m at row c
    together: str = ""  # name of f(control, number) -> moved? for all splits, once none of them can continue
    gathers: bool = False  # it needs other warps: its handler runs after those of other instructions
    unheard: bool = False  # it makes no event: even with observers, the main loop does it for a whole warp


@dataclass(frozen=True)
class UnitSpec:
    name: str  # dotted prefix of the opcode, e.g. "mbarrier.try_wait"
    forms: tuple[Syntax, ...]  # the forms that are modelled
    factory: Callable[[Instr], Callable]  # returns the handler
    writes: tuple[int, ...]  # positions of destination operands
    async_destination: bool  # a hardware unit writes the destinations later: their registers are never shared
    section: str  # PTX ISA section
    observer_only: bool = False  # moves no data: runs only if there are observers
    fire_and_forget: bool = False  # the thread issues it to another unit of the chip and gets no result
    signals: str | None = None  # with this modifier, it signals the mbarrier at its last address; "": always
    fast: FastForm | None = None
    prepare: Callable[[tuple], object] = tuple  # resolved operands -> `args` of the handler
    tensor_core: bool = False  # it goes to the queue of the tensor core

    def accept(self, instr: Instr) -> Instr:
        """The instruction with its modifiers in order; raises PtxError if no form has them."""
        named = self.name.split(".")[1:]
        if instr.op in _ANY_ORDER and instr.mods[: len(named)] != tuple(named):
            rest = list(instr.mods)
            for word in named:
                rest.remove(word)
            instr = replace(instr, mods=(*named, *rest))
        return conform(instr, self.forms, self.section)


# ptxas accepts .sync and .sp anywhere in them: CUB puts .sync last, CUTLASS .sp behind .kind
_ANY_ORDER = {"vote", "shfl", "match", "redux", "mma"}
UNITS: dict[str, UnitSpec] = {}
FAST_FORMS: list[tuple[FastForm, str]] = []  # (form, name of the module with its compiled functions)


@functools.cache
def fast_calls() -> tuple[FastCall, ...]:
    """The fast forms as `main_loop` needs them. Call it after all units are registered."""
    return tuple(
        FastCall(n, module, form.each, form.together, form.unheard) for n, (form, module) in _numbered()
    )


def fast_number(form: FastForm) -> int:
    """The number of a fast form: the value in the UNIT_FORM column of its rows."""
    return next(n for n, (known, _) in _numbered() if known is form)


def _numbered() -> Iterable[tuple[int, tuple[FastForm, str]]]:
    """(number, fast form) sorted by name, not by import order, so that the loop is compiled only once."""
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
    """Registers the decorated factory for the instructions of these boxes, under their names (or `name`)."""
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
    """The unit whose name is the longest dotted prefix of the opcode. Where modifiers come in any order: the
    longest name whose words the opcode all has.
    """
    parts = (instr.op, *instr.mods)
    if instr.op in _ANY_ORDER:
        named = [spec for spec in UNITS.values() if set(spec.name.split(".")) <= set(parts)]
        return max(named, key=lambda spec: len(spec.name), default=None)
    for length in range(len(parts), 0, -1):
        spec = UNITS.get(".".join(parts[:length]))
        if spec is not None:
            return spec
    return None


def signalled(instr: Instr) -> Mem | None:
    """The operand with the address of the mbarrier that an instruction signals, or None."""
    spec = find_unit(instr)
    if spec is None or spec.signals is None or (spec.signals and spec.signals not in instr.mods):
        return None
    return [operand for operand in instr.operands if isinstance(operand, Mem)][-1]


def for_tensor_core(instr: Instr | None) -> bool:
    """Whether an instruction goes to the queue of the tensor core."""
    found = find_unit(instr) if instr is not None else None
    return found is not None and found.tensor_core


def gathers(instr: Instr | None) -> bool:
    """Whether the main loop executes an instruction for several warps at once."""
    found = find_unit(instr) if instr is not None else None
    return found is not None and found.fast is not None and found.fast.gathers


def slots_of(operand) -> tuple:
    """The slots of an operand that is a vector of registers or a single one."""
    return operand if isinstance(operand, tuple) else (operand,)


def always(handler: Callable) -> Callable:
    """A factory that returns this handler for every instruction: there is nothing to decode."""
    return functools.wraps(handler)(lambda instr: handler)  # `wraps` sets the handler's module


def refuse(instr: Instr, what: str) -> PtxError:
    """The error for an instruction that is not modelled."""
    return PtxError(what, instr.line, instr.text)
