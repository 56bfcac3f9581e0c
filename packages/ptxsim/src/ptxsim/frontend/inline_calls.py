"""Inlines calls of device functions, so that the rest of the simulator handles kernels only.

Each call site gets its own copy of the callee, with its own names; formal parameters become the caller's
.param variables, and `ret` becomes a jump past the copy (PTX ISA 7.1, 9.7.12.5). A call through a register
becomes a chain of comparisons with the functions of this prototype whose address is taken somewhere. A
function that calls itself is copied up to 48 deep, less if that makes too many instructions; deeper calls end
the run.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from ptxsim.frontend.ast import (
    Function,
    Instr,
    Label,
    LabelDef,
    Mem,
    Module,
    Pair,
    Paren,
    Pred,
    PtxError,
    Reg,
    Sink,
    Sym,
    Var,
    Vec,
)
from ptxsim.frontend.heap import FULL as HEAP_FULL

NO_FUNCTION, TOO_DEEP, MISALIGNED = "@no function", "@too deep", "@misaligned"
BUILT_IN = (
    "vprintf",
    "__assertfail",
    NO_FUNCTION,
    TOO_DEEP,
    MISALIGNED,
    HEAP_FULL,
)  # provided by the simulator itself
_MOST = 1_000_000  # instructions of an expanded kernel
_DEPTHS, _MOST_RECURSIVE = (3, 6, 12, 24, 48), 12_000  # copies within each other; the same with recursion


def expand(kernel: Function, module: Module) -> Function:
    """The kernel with calls of functions of its module inlined; the kernel itself if it has no calls.

    Raises PtxError for functions without a body.
    """
    if not any(isinstance(item, Instr) and item.op == "call" for item in kernel.body):
        return kernel
    best = None  # a function with one call is copied as deep as possible at once: copies do not multiply
    for depth in _DEPTHS:
        made = _Expander(kernel, module, depth)
        try:
            best = made.expand()
        except _TooLongError:
            break
        if not made.recursive:
            break
    if best is None:
        raise PtxError(f"{kernel.name} calls functions that call themselves, too often", kernel.line, "")
    return best


class _TooLongError(Exception):
    """Copies of functions that call themselves make too many instructions."""


class _Expander:
    def __init__(self, kernel: Function, module: Module, depth: int):
        self.module, self.depth, self.recursive = module, depth, False
        self.out = replace(kernel, body=[], regs=dict(kernel.regs), vars=list(kernel.vars))
        self.out.branchtargets = dict(kernel.branchtargets)
        self.source, self.copies = kernel, 0
        self.placed: set[str] = set()  # shared variables of callees that are already among out.vars

    def expand(self) -> Function:
        self._body(self.source.body, (self.source.name,))
        return self.out

    def _body(self, body: list, stack: tuple[str, ...]) -> None:
        for item in body:
            if not isinstance(item, Instr) or item.op != "call":
                self.out.body.append(item)
                continue
            target = next((o for o in item.operands if not isinstance(o, Paren)), None)
            if isinstance(target, Reg):
                self._through_register(item, target, stack)
            elif not isinstance(target, Sym) or target.name in BUILT_IN:
                self.out.body.append(item)
            else:
                self._enter(item, self._callee(item, target.name), stack)

    def _callee(self, call: Instr, name: str) -> Function:
        callee = self.module.functions.get(name)
        if callee is None or callee.extern:
            raise PtxError(f"call of {name}, which has no body here", call.line, call.text)
        return callee

    def _enter(self, call: Instr, callee: Function, stack: tuple[str, ...]) -> None:
        self.recursive |= callee.name in stack
        if self.recursive and len(self.out.body) > _MOST_RECURSIVE:
            raise _TooLongError
        if len(self.out.body) > _MOST:
            raise PtxError(f"calls expand to more than {_MOST} instructions", call.line, call.text)
        again = len(stack) - len(set(stack)) + 1 if callee.name in stack else 0
        if again >= (self.depth if self._calls(callee) > 1 else _DEPTHS[-1]):
            self.out.body.append(_made(call, "call", (Sym(TOO_DEEP), Sym(callee.name)), pred=call.pred))
        else:
            self._call(call, callee, (*stack, callee.name))

    def _calls(self, function: Function) -> int:
        """The calls in a function; one through a register counts once for each function that may be meant."""
        calls = [item for item in function.body if isinstance(item, Instr) and item.op == "call"]
        known = (any(isinstance(operand, Reg) for operand in call.operands) for call in calls)
        return sum(
            len(self._meant(call, function.name)) if through else 1
            for call, through in zip(calls, known, strict=True)
        )

    def _through_register(self, call: Instr, target: Reg, stack: tuple[str, ...]) -> None:
        """A call of each function that may be meant, if the register holds its address."""
        self.copies += 1
        number, equal = self.copies, Reg(f"call.p@{self.copies}")
        end = LabelDef(f"call.end@{number}", call.line)
        self.out.regs[equal.name] = "pred"
        if call.pred is not None:
            skip = Pred(call.pred.reg, not call.pred.negated)
            self.out.body.append(_made(call, "bra", (Label(end.name),), pred=skip))
        for callee in self._meant(call, stack[-1]):
            other = LabelDef(f"call.{callee.name}@{number}", call.line)
            test = _made(call, "setp", (equal, target, Sym(callee.name)), ("eq", "u64"))
            operands = tuple(Sym(callee.name) if o is target else o for o in call.operands)
            self.out.body += [test, _made(call, "bra", (Label(other.name),), pred=Pred(equal, True))]
            self._enter(_made(call, "call", operands, call.mods), callee, stack)
            self.out.body += [_made(call, "bra", (Label(end.name),)), other]
        self.out.body += [_made(call, "call", (Sym(NO_FUNCTION),)), end]

    def _meant(self, call: Instr, caller: str) -> list[Function]:
        """The functions that .calltargets lists, or those of its prototype whose address the module uses."""
        name, source = getattr(call.operands[-1], "name", ""), self.module.functions[caller]
        prototype, targets = source.prototypes.get(name), source.calltargets.get(name, ())
        names = [target.name for target in targets] or self._taken
        every = (self.module.functions[name] for name in names if name in self.module.functions)
        return [f for f in every if not f.extern and (prototype is None or _sizes(f) == _sizes(prototype))]

    @functools.cached_property
    def _taken(self) -> dict[str, None]:
        """The symbols whose addresses are used other than to call them."""
        found = [symbol.name for var in self.module.vars.values() for _, symbol in var.relocs]
        for function in self.module.functions.values():
            for item in function.body:
                if isinstance(item, Instr) and item.op != "call":
                    found += [o.name for o in item.operands if isinstance(o, Sym)]
        return dict.fromkeys(found)

    def _call(self, call: Instr, callee: Function, stack: tuple[str, ...]) -> None:
        self.copies += 1
        copy = _Copy(self.out, call, callee, self.copies, self.placed)
        end, behind = (LabelDef(f"{callee.name}.{n}@{self.copies}", call.line) for n in ("end", "behind"))
        if call.pred is not None:
            skip = Pred(call.pred.reg, not call.pred.negated)
            self.out.body.append(_made(call, "bra", (Label(behind.name),), pred=skip))
        before, after = copy.bind()
        saved, restored = self._stack(call, callee)
        self.out.body += [*before, *saved]
        self._body(copy.body(end.name), stack)
        self.out.body += [end, *restored, *after, behind]

    def _stack(self, call: Instr, callee: Function) -> tuple[list[Instr], list[Instr]]:
        """Instructions before and after a call that free what the callee takes by alloca (PTX ISA 9.7.17)."""
        if not any(isinstance(item, Instr) and item.op == "alloca" for item in callee.body):
            return [], []
        top = Reg(f"{callee.name}.stack@{self.copies}")
        self.out.regs[top.name] = "b64"
        return [_made(call, "stacksave", (top,))], [_made(call, "stackrestore", (top,))]


class _Copy:
    """One copy of a callee. `names` maps its names to those in the caller."""

    def __init__(self, out: Function, call: Instr, callee: Function, number: int, placed: set[str]):
        self.out, self.call, self.callee, self.number, self.placed = out, call, callee, number, placed
        self.names = {name: f"{name}@{number}" for name in callee.regs}
        self.labels = {i.name: f"{i.name}@{number}" for i in callee.body if isinstance(i, LabelDef)}
        out.regs.update({self.names[name]: kind for name, kind in callee.regs.items()})
        for var in callee.vars:
            self._variable(var)
        for name, targets in callee.branchtargets.items():
            self.labels[name] = f"{name}@{number}"
            out.branchtargets[self.labels[name]] = [Label(self.labels[t.name]) for t in targets]

    def _variable(self, var: Var) -> None:
        """Adds a variable of the callee: local and .param variables once per copy, shared ones once per
        function.
        """
        shared = var.space not in ("local", "param")
        self.names[var.name] = f"{self.callee.name}.{var.name}" if shared else f"{var.name}@{self.number}"
        if self.names[var.name] not in self.placed:
            self.out.vars.append(replace(var, name=self.names[var.name]))
            self.placed |= {self.names[var.name]} if shared else set()

    def bind(self) -> tuple[list[Instr], list[Instr]]:
        """Binds formal parameters and results to the actual ones; returns the moves (before,
        after) the copy.
        """
        call, callee = self.call, self.callee
        at = next(i for i, o in enumerate(call.operands) if not isinstance(o, Paren))
        results = call.operands[0].items if at else ()
        rest = call.operands[at + 1 :]
        actuals = rest[0].items if rest and isinstance(rest[0], Paren) else ()
        if len(actuals) != len(callee.params) or len(results) != len(callee.returns):
            what = f"{callee.name} takes {len(callee.params)} arguments, returns {len(callee.returns)}"
            raise PtxError(f"{what}; the call has {len(actuals)} and {len(results)}", call.line, call.text)
        moves: tuple[list, list] = ([], [])
        for out, formals, given in ((0, callee.params, actuals), (1, callee.returns, results)):
            for formal, actual in zip(formals, given, strict=True):
                moves[out].extend(self._bind(formal, actual, bool(out)))
        return moves

    def _bind(self, formal: Var, actual, returned: bool) -> list[Instr]:
        """Moves an argument to its parameter, or a result back; a .param variable stands for another."""
        stored, is_variable = formal.space == "param", isinstance(actual, Sym)
        if stored and is_variable:
            self.names[formal.name] = actual.name
            return []
        if stored:
            self._variable(formal)
        if isinstance(actual, Sink):
            return []
        place = self.names[formal.name]
        inner = Mem(Sym(place)) if stored else Reg(place)
        outer = Mem(actual) if is_variable else actual
        target, source = (outer, inner) if returned else (inner, outer)
        op = "st" if isinstance(target, Mem) else "ld" if isinstance(source, Mem) else "mov"
        mods = (formal.type,) if op == "mov" else ("param", formal.type)
        return [_made(self.call, op, (target, source), mods)]

    def body(self, end: str) -> list:
        """The callee's statements with their new names; `ret` jumps to `end`."""
        found: list[Instr | LabelDef] = []
        for item in self.callee.body:
            if isinstance(item, LabelDef):
                found.append(LabelDef(self.labels[item.name], item.line))
            else:
                found.append(self._instruction(item, end))
        return found

    def _instruction(self, instr: Instr, end: str) -> Instr:
        pred = self._operand(instr.pred) if instr.pred is not None else None
        at = instr.at if instr.src is not None else self.call.at
        if instr.op == "ret":
            return replace(instr, pred=pred, op="bra", mods=(), operands=(Label(end),), at=at)
        mods = instr.mods
        if instr.op in ("ld", "st") and any(
            isinstance(o, Mem) and isinstance(o.base, Reg) for o in instr.operands
        ):
            # a parameter whose address is taken is in the call frame, here local memory (PTX ISA 7.1)
            mods = tuple("local" if m.split("::")[0] == "param" else m for m in mods)
        operands = tuple(self._operand(o) for o in instr.operands)
        return replace(instr, pred=pred, mods=mods, operands=operands, at=at)

    def _operand(self, o):
        """An operand with its new names; special registers and module variables keep theirs."""
        if isinstance(o, Reg):
            base, dot, selector = o.name.partition(".")
            if o.name not in self.names and base in self.names:
                return Reg(self.names[base] + dot + selector)
            return Reg(self.names.get(o.name, o.name))
        if isinstance(o, Sym):
            return replace(o, name=self.names.get(o.name, o.name))
        if isinstance(o, Label):
            return Label(self.labels.get(o.name, o.name))
        if isinstance(o, Mem):
            return Mem(self._operand(o.base), o.offset, tuple(self._operand(p) for p in o.parts))
        if isinstance(o, Vec | Paren):
            return type(o)(tuple(self._operand(i) for i in o.items))
        if isinstance(o, Pair):
            return Pair(self._operand(o.first), self._operand(o.second))
        if isinstance(o, Pred):
            return Pred(self._operand(o.reg), o.negated)
        return o


def _sizes(function: Function) -> tuple[list[int], list[int]]:
    return [var.size for var in function.params], [var.size for var in function.returns]


def _made(
    call: Instr, op: str, operands: tuple, mods: tuple[str, ...] = (), pred: Pred | None = None
) -> Instr:
    """An instruction that does a part of the call."""
    return replace(call, pred=pred, op=op, mods=mods, operands=operands)
