"""Parses function bodies: blocks, labels, instructions and their operands (PTX ISA 4.3, 4.6, 6).

`parse_body` fills in the Function; `find_labels` looks ahead, so that a branch can name a label further down.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict

from ptxsim.frontend.ast import (
    NOWHERE,
    Function,
    Imm,
    Inlined,
    Instr,
    Label,
    LabelDef,
    Location,
    Mem,
    Module,
    Pair,
    Paren,
    Pred,
    Reg,
    Sink,
    Sym,
    Var,
    Vec,
)
from ptxsim.frontend.declarations import SPACES, declaration, prototype, symbol_expression
from ptxsim.frontend.lexer import Tokens, constant

_SPECIAL = re.compile(
    r"%(n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)(\.[xyzw])?$|%(laneid|n?warpid|n?smid|gridid|is_explicit_cluster"
    r"|cluster_n?ctarank|lanemask_(eq|lt|le|gt|ge)|clock|clock_hi|clock64|pm\d+(_64)?|envreg\d+"
    r"|globaltimer(_lo|_hi)?|reserved_smem_offset_\w+|(total|aggr|dynamic)_smem_size|current_graph_exec)$|WARP_SZ$"
)
_SELECTOR = re.compile(r"b[0-3]{1,4}$|h[01]{1,2}$|[xyzwrgba]$")
_NOT_BEFORE_LABEL = frozenset("?+-*/%(!~&|^<>=,")  # `a ? b : c` does not contain a label
_MAX_NESTING = 64

# token index of a `{` -> labels of that block: (name, token index)
BlockLabels = dict[int, list[tuple[str, int]]]


def find_labels(tokens: Tokens) -> BlockLabels:
    """The labels of every block of the text; called before any block is parsed."""
    labels, stack, values, kinds = defaultdict(list), [], tokens.values, tokens.kinds
    for index, value in enumerate(values):
        if value == "{":
            stack.append(index)
        elif value == "}" and stack:
            stack.pop()
        elif value != ":" or not stack or kinds[index - 1] != "word":
            continue
        elif values[index - 2] not in _NOT_BEFORE_LABEL:
            labels[stack[-1]].append((values[index - 1], index - 1))
    return labels


def parse_body(tokens: Tokens, fn: Function, module: Module, names: dict, labels: BlockLabels) -> None:
    """Parse `{ ... }` at the cursor into fn. `names` are the symbols of module scope."""
    body = _Body(tokens, fn, module, names, labels)
    body.parse()


class _Body:
    """Parses one function body; `scopes` is the chain of name -> operand tables, innermost last."""

    def __init__(self, tokens: Tokens, fn: Function, module: Module, names: dict, labels: BlockLabels):
        self.tokens, self.fn, self.module, self.names, self.labels = tokens, fn, module, names, labels
        self.scopes: list[dict] = [names, {}]
        self.taken: set[str] = set()
        self.numbers: dict[str, int] = {}  # name declared in several blocks -> next suffix to try
        self.at = NOWHERE
        self.around: dict[tuple, list[Inlined | None]] = {}  # place of a .loc -> what it is inlined in
        # the same -> line inlined there -> how often it came, at most in an earlier call and in the newest
        self.counts: dict[tuple, dict[tuple, list[int]]] = defaultdict(dict)
        # since the last label or branch: places that had a .loc; place -> what was inlined there before it
        self.opened: set[tuple] = set()
        self.early: dict[tuple, list[Location]] = {}
        self.marker = bisect_left(self.tokens.markers, (self.tokens.i,))  # the first one in this body

    def parse(self) -> None:
        for var in self.fn.returns + self.fn.params:
            self._declare(var.name, Reg if var.space == "reg" else Sym)
            if var.space == "reg":
                self.fn.regs[var.name] = var.type
        start = self.tokens.i
        self._open()
        while len(self.scopes) > 2:
            if self.tokens.kind() == "end":
                raise self.tokens.error(f"no matching '}}' for the body of '{self.fn.name}'", start)
            self._statement()

    def _open(self) -> None:
        labels = self.labels.get(self.tokens.i, ())
        self.tokens.expect("{")
        if len(self.scopes) > _MAX_NESTING:
            raise self.tokens.error("blocks nested too deep")
        self.scopes.append({})
        for name, at in labels:
            self._declare(name, Label, at)

    def _declare(self, name: str, make, at: int | None = None) -> str:
        """Enter a name into the innermost scope; returns its unique name within the function."""
        if name in self.scopes[-1]:
            raise self.tokens.error(f"'{name}' is declared twice in this block", at)
        unique, number = name, self.numbers.get(name, 1)
        while unique in self.taken or (unique in self.names and make is not Label):
            unique, number = f"{name}${number}", number + 1
        self.numbers[name] = number
        self.taken.add(unique)
        if unique != name:
            self.fn.renamed[unique] = name
        self.scopes[-1][name] = make(unique)
        return unique

    # --- statements ---

    def _statement(self) -> None:
        tokens = self.tokens
        kind, value = tokens.kind(), tokens.peek()
        if kind == "word" and tokens.values[tokens.i + 1] == ":":
            self._label(value)
        elif kind == "word" or value == "@":
            self._instruction()
        elif value == "{":
            self._open()
        elif value == "}":
            tokens.i += 1
            self.scopes.pop()
        elif kind == "dot":
            self._directive(value)
        elif not tokens.accept(";"):
            raise tokens.error(f"expected a statement, found '{value}'")

    def _label(self, name: str) -> None:
        tokens = self.tokens
        if name not in self.scopes[-1]:
            raise tokens.error("a label must be at the start of a statement")
        line, unique = tokens.line(tokens.i), self.scopes[-1][name].name
        tokens.i += 2
        directive = tokens.peek()
        if directive == ".branchtargets":
            tokens.i += 1
            self.fn.branchtargets[unique] = self._list(Label)
        elif directive == ".calltargets":
            tokens.i += 1
            self.fn.calltargets[unique] = self._list(Sym)
        elif directive == ".callprototype":
            tokens.i += 1
            self.fn.prototypes[unique] = prototype(tokens, unique)
        else:
            self.fn.body.append(LabelDef(unique, line))
            self._new_block()
            return
        tokens.expect(";")

    def _list(self, of: type) -> list:
        found: list = []
        while not found or self.tokens.accept(","):
            at = self.tokens.i
            found.append(self._name(self.tokens.take("word", "a name"), at))
            if not isinstance(found[-1], of):
                raise self.tokens.error("not a label" if of is Label else "not a function", at)
        return found

    def _directive(self, directive: str) -> None:
        tokens = self.tokens
        if directive[1:] in SPACES:
            for var in declaration(tokens):
                self._variable(var)
            tokens.expect(";")
        elif directive == ".loc":
            tokens.i += 1
            place, call = location(tokens)
            inlined = self._inlined(place, call) if call is not None else None
            self._reopen(place, inlined)
            self.at = Location(self.at.line, self.at.file, place, inlined)
            if call is not None and call[1:] not in self.opened:
                self.early.setdefault(call[1:], []).append(self.at)
        elif directive == ".pragma":
            tokens.skip_past(";")
        else:
            raise tokens.error(f"unknown directive '{directive}' in a function")

    def _reopen(self, place: tuple, inlined: Inlined | None) -> None:
        """Notes what a place is inlined in from here on. What was called from there just before, with no
        label or branch between, belongs to it: the test of a loop whose branch stands in the caller.
        """
        for at in self.early.pop(place, ()):
            if at.inlined is not None and inlined in self.around.get(place, ()):
                at.inlined = at.inlined._replace(outer=inlined, others=())
        self.opened.add(place)
        known = self.around.get(place, [])
        if known and known[-1] == inlined:
            return
        self.around[place] = [one for one in known if one != inlined] + [inlined]
        for counts in self.counts[place].values():
            counts[:] = max(counts), 0

    def _new_block(self) -> None:
        self.opened.clear()
        self.early.clear()

    def _inlined(self, place: tuple, call: tuple) -> Inlined:
        """The call in whose place a line stands.

        A compiler names the places around an inlined line before it, the first time that it inlines the line
        there. Where a loop with two such calls is unrolled, later copies may be in either: lines that come
        more often than in the calls before.
        """
        *others, outer = self.around.get(call[1:], [None])
        counts = self.counts[call[1:]].setdefault(place, [0, 0])
        counts[1] += 1
        inlined = Inlined(*call)
        if outer is not None and any(one[1:4] == call[1:] for one in outer.chain()):
            return inlined  # a function inlined in itself has no end
        return inlined._replace(outer=outer, others=tuple(others) if counts[1] > max(1, counts[0]) else ())

    def _variable(self, var: Var) -> None:
        if var.space != "reg":
            var.name = self._declare(var.name, Sym)
            self.fn.vars.append(var)
        elif var.count == 1:
            self.fn.regs[self._declare(var.name, Reg)] = var.type
        else:
            unique = self._declare(var.name, Reg)
            lanes = [f"{unique}.{lane}" for lane in "xyzw"[: var.count]]
            self.scopes[-1][var.name] = Vec(tuple(Reg(lane) for lane in lanes))
            self.fn.regs.update(dict.fromkeys(lanes, var.type))

    def _instruction(self) -> None:
        tokens, guard, first = self.tokens, None, self.tokens.i
        self._follow_markers(first)
        if tokens.accept("@"):
            negated = tokens.accept("!")
            guard = Pred(self._register(), negated)
        opcode = tokens.take("word", "an instruction")
        while tokens.kind() == "dot":
            opcode += tokens.peek()
            tokens.i += 1
        op, *mods = opcode.split(".")
        if op[0] in "%$":
            raise tokens.error(f"'{op}' is not an instruction", first)
        operands = []
        while tokens.peek() != ";":
            operands.append(self._operand(op))
            if not tokens.accept(","):
                break
        tokens.expect(";")
        text = tokens.slice(first, tokens.i - 1)
        line = tokens.line(first)
        self.fn.body.append(Instr(guard, op, tuple(mods), tuple(operands), line, text, self.at))
        if op in ("bra", "brx"):
            self._new_block()

    def _follow_markers(self, index: int) -> None:
        markers = self.tokens.markers
        while self.marker < len(markers) and markers[self.marker][0] <= index:
            self.at = Location(*markers[self.marker][1:], self.at.loc, self.at.inlined)
            self.marker += 1

    # --- operands ---

    def _name(self, name: str, at: int):
        """The operand that a name means here; searches the innermost scope first."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name[0] in "%W" and _SPECIAL.match(name):
            return Reg(name)
        base, _, selector = name.partition(".")
        if selector and _SELECTOR.match(selector):
            found = self._name(base, at)
            if isinstance(found, Vec):
                lane = "xyzw".find(selector) if selector in "xyzw" else "rgba".find(selector)
                if 0 <= lane < len(found.items):
                    return found.items[lane]
            elif isinstance(found, Reg) and len(selector) > 1:
                return Reg(f"{found.name}.{selector}")
        kind = "register" if name[0] == "%" else "name"
        raise self.tokens.error(f"undeclared {kind} '{name}'", at)

    def _register(self) -> Reg:
        at = self.tokens.i
        found = self._name(self.tokens.take("word", "a register"), at)
        if not isinstance(found, Reg):
            raise self.tokens.error("expected a register", at)
        return found

    def _operand(self, op: str, depth: int = 0):
        tokens, at = self.tokens, self.tokens.i
        kind, value = tokens.kinds[at], tokens.values[at]
        if depth > _MAX_NESTING:
            raise tokens.error("operand nested too deep")
        if kind == "word":
            return self._named_operand(op)
        if value == "[":
            return self._memory(op, depth)
        if value == "{":
            return Vec(self._sequence("{", "}", op, depth))
        if value == "(" and op == "call":
            return Paren(self._sequence("(", ")", op, depth))
        if value == "!" and tokens.kinds[at + 1] == "word":
            tokens.i += 1
            return Pred(self._register(), True)
        if value == "-" and tokens.kinds[at + 1] == "word":
            raise tokens.error("a register cannot be negated in an operand", at)
        return constant(tokens)

    def _named_operand(self, op: str):
        tokens, at = self.tokens, self.tokens.i
        name = tokens.values[at]
        tokens.i += 1
        if name == "_":
            found = Sink()
        elif name == "generic" and tokens.peek() == "(":
            tokens.i = at
            return symbol_expression(tokens)
        else:
            found = self._name(name, at)
        follow = tokens.peek()
        if follow == "|" and isinstance(found, (Reg, Sink)):
            tokens.i += 1
            second = Sink() if tokens.accept("_") else self._register()
            return Pair(found, second)
        if isinstance(found, Sym) and follow in ("+", "-"):
            return Sym(found.name, tokens.integer())
        if isinstance(found, Sym) and follow == "[":
            symbol = self._element(found)
            return symbol if op in ("mov", "cvta") else Mem(Sym(symbol.name), symbol.offset)
        return found

    def _element(self, symbol: Sym) -> Sym:
        """`array[index]`: the address of an element (PTX ISA 6.4.2)."""
        tokens = self.tokens
        var = next((v for v in self.fn.vars if v.name == symbol.name), self.module.vars.get(symbol.name))
        if var is None or var.count == 0 and not var.extern:
            raise tokens.error(f"'{symbol.name}' is not an array")
        tokens.expect("[")
        index = tokens.integer()
        tokens.expect("]")
        return Sym(symbol.name, index * (var.size // var.count if var.count else 1))

    def _sequence(self, opening: str, closing: str, op: str, depth: int) -> tuple:
        tokens, items = self.tokens, []
        tokens.expect(opening)
        while tokens.peek() != closing:
            items.append(self._operand(op, depth + 1))
            if not tokens.accept(","):
                break
        tokens.expect(closing)
        return tuple(items)

    def _memory(self, op: str, depth: int) -> Mem:
        tokens, at = self.tokens, self.tokens.i
        tokens.expect("[")
        base = self._operand("mov", depth + 1)
        offset = 0
        if isinstance(base, Sym):
            base, offset = Sym(base.name, 0, base.generic), base.offset
        elif not isinstance(base, (Reg, Imm)):
            raise tokens.error("an address must be a register, a variable or a constant", at)
        if tokens.peek() in ("+", "-"):
            offset += tokens.integer()
        parts = []
        while tokens.accept(","):
            parts.append(self._operand(op, depth + 1))
        tokens.expect("]")
        return Mem(base, offset, tuple(parts))


def location(tokens: Tokens) -> tuple[tuple[int, int, int], tuple[str, int, int, int] | None]:
    """Parse `.loc file line column [, function_name label [+ n], inlined_at file line column]` (PTX ISA
    11.5.3).

    Returns (place, None or the label and the place where it was inlined).
    """
    place, label, outer = (tokens.number(), tokens.number(), tokens.number()), "", None
    while tokens.accept(","):
        if tokens.accept("function_name"):
            label = tokens.take("word", "a label")
            if tokens.accept("+"):
                tokens.number()
        else:
            tokens.expect("inlined_at")
            outer = (tokens.number(), tokens.number(), tokens.number())
    return place, (label, *outer) if outer else None
