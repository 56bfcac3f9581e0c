"""PTX text -> Module: `parse(text)`.

Syntax, scopes and constants only: an instruction is accepted whatever its opcode; what the opcode means is for
the tables in `ptxsim.isa`. Nested `{ }` blocks have their own registers, variables and labels (PTX ISA 4.6, 5.2): a
name declared again gets a unique one (`P1$2`; `Function.renamed` leads back).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict

from .declarations import SPACES, declaration, symbol_expression
from .syntax import (
    Function,
    Imm,
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
from .tokens import Tokens, constant

__all__ = [
    "Function",
    "Imm",
    "Instr",
    "Label",
    "LabelDef",
    "Mem",
    "Module",
    "Pair",
    "Paren",
    "Pred",
    "PtxError",
]
__all__ += ["Reg", "Sink", "Sym", "Var", "Vec", "parse"]

_SPECIAL = re.compile(
    r"%(n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)(\.[xyzw])?$|%(laneid|n?warpid|n?smid|gridid|is_explicit_cluster"
    r"|cluster_n?ctarank|lanemask_(eq|lt|le|gt|ge)|clock|clock_hi|clock64|pm\d+(_64)?|envreg\d+"
    r"|globaltimer(_lo|_hi)?|reserved_smem_offset_\w+|(total|aggr|dynamic)_smem_size|current_graph_exec)$|WARP_SZ$"
)
_SELECTOR = re.compile(r"b[0-3]{1,4}$|h[01]{1,2}$|[xyzwrgba]$")
_LINKAGE = (".visible", ".extern", ".weak", ".common")
_NOT_BEFORE_LABEL = frozenset(
    ["?", "+", "-", "*", "/", "%", "(", "!", "~", "&", "|", "^", "<", ">", "=", ","]
)
_MAX_NESTING = 64


def parse(text: str) -> Module:
    """Parse a PTX module. Raises PtxError (line, text) for whatever is not PTX or names something undeclared."""
    return _Parser(text).module_()


class _Parser:
    def __init__(self, text: str):
        self.tokens = Tokens(text)
        self.module = Module(text=text)
        self.names: dict[str, Sym] = {}  # module scope
        self.block_labels = self._find_labels()

    def _find_labels(self) -> dict[int, list[tuple[str, int]]]:
        """Labels of each block, keyed by the token index of its `{`: forward branches resolve through it."""
        labels, stack, values, kinds = defaultdict(list), [], self.tokens.values, self.tokens.kinds
        for index, value in enumerate(values):
            if value == "{":
                stack.append(index)
            elif value == "}" and stack:
                stack.pop()
            elif (
                value == ":"
                and stack
                and kinds[index - 1] == "word"
                and values[index - 2] not in _NOT_BEFORE_LABEL
            ):
                labels[stack[-1]].append((values[index - 1], index - 1))
        return labels

    # --- module scope -----------------------------------------------------------------------------------------

    def module_(self) -> Module:
        tokens = self.tokens
        if tokens.peek() != ".version":
            raise tokens.error("PTX starts with .version")
        while tokens.kind() != "end":
            self._module_statement()
        for var in self.module.vars.values():
            for _, symbol in var.relocs:
                if symbol.name not in self.names:
                    raise PtxError(f"initialiser names undeclared '{symbol.name}'", var.line, var.name)
        return self.module

    def _module_statement(self) -> None:
        tokens, module = self.tokens, self.module
        directive, linkage = tokens.peek(), ()
        handler = _MODULE_DIRECTIVES.get(directive)
        if handler:
            tokens.i += 1
            handler(tokens, module)
            return
        while tokens.peek() in _LINKAGE:
            linkage += (tokens.peek()[1:],)
            tokens.i += 1
        if tokens.peek() in (".entry", ".func"):
            self._function(linkage)
        elif tokens.peek()[1:] in SPACES:
            for var in declaration(tokens, linkage):
                self._declare_module_variable(var)
            tokens.expect(";")
        elif tokens.peek() == ";":
            tokens.i += 1
        elif tokens.kind() == "dot":
            raise tokens.error(f"unknown directive '{tokens.peek()}'")
        else:
            raise tokens.error(f"expected a directive at module scope, found '{tokens.peek()}'")

    def _declare_module_variable(self, var: Var) -> None:
        before = self.module.vars.get(var.name)
        if before and not (before.extern or var.extern):
            raise self.tokens.error(f"'{var.name}' is declared twice")
        if not (before and var.extern):
            self.module.vars[var.name] = var
        self.names[var.name] = Sym(var.name)

    # --- functions --------------------------------------------------------------------------------------------

    def _function(self, linkage: tuple[str, ...]) -> None:
        tokens = self.tokens
        line = tokens.line(tokens.i)
        fn = Function("", tokens.peek() == ".entry", linkage=linkage, line=line, extern=True)
        tokens.i += 1
        while tokens.peek() in (".attribute", ".noreturn"):
            self._function_directive(fn)
        if tokens.peek() == "(":
            fn.returns = self._parameters()
        fn.name = tokens.take("word", "a function name")
        if tokens.peek() == "(":
            fn.params = self._parameters()
        while tokens.kind() == "dot":
            self._function_directive(fn)
        known = self.module.functions.get(fn.name)
        self.names[fn.name] = Sym(fn.name)
        if tokens.accept(";"):
            self.module.functions.setdefault(fn.name, fn)
            return
        if known and not known.extern:
            raise tokens.error(f"function '{fn.name}' is defined twice")
        if tokens.peek() != "{":
            raise tokens.error(f"expected the body of '{fn.name}', found '{tokens.peek()}'")
        fn.extern = False
        self.module.functions[fn.name] = fn
        _Body(self, fn).parse()

    def _parameters(self) -> list[Var]:
        tokens, found = self.tokens, []
        tokens.expect("(")
        while tokens.peek() != ")":
            found += declaration(tokens, single=True)
            if not tokens.accept(","):
                break
        tokens.expect(")")
        return found

    def _function_directive(self, fn: Function) -> None:
        tokens = self.tokens
        name = tokens.peek()[1:]
        tokens.i += 1
        first = tokens.i
        if tokens.peek() == "(":
            tokens.skip_group("(", ")")
            fn.directives[name] = (tokens.slice(first, tokens.i - 1),)
            return
        values = []
        while tokens.kind() in ("int", "str", "word", "real"):
            values.append(tokens.integer() if tokens.kind() == "int" else tokens.peek().strip('"'))
            tokens.i += isinstance(values[-1], str)
            if not tokens.accept(","):
                break
        if name == "pragma":
            tokens.accept(";")
            values = [*fn.directives.get(name, ()), *values]
        fn.directives[name] = tuple(values)

    def prototype(self, name: str) -> Function:
        """`.callprototype (returns) _ (params) directives;`, the cursor behind the directive."""
        tokens = self.tokens
        fn = Function(name, False, extern=True, line=tokens.line(tokens.i))
        if tokens.peek() == "(":
            fn.returns = self._parameters()
        tokens.take("word", "'_'")
        if tokens.peek() == "(":
            fn.params = self._parameters()
        while tokens.kind() == "dot":
            self._function_directive(fn)
        return fn


class _Body:
    """Parses one function body; `scopes` is the chain of name -> operand tables, innermost last."""

    def __init__(self, parser: _Parser, fn: Function):
        self.parser, self.tokens, self.fn = parser, parser.tokens, fn
        self.scopes: list[dict] = [parser.names, {}]
        self.taken: set[str] = set()
        self.loc: tuple[int, int, int] | None = None
        self.src: tuple[int | None, str | None] = (None, None)
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
        labels = self.parser.block_labels.get(self.tokens.i, ())
        self.tokens.expect("{")
        if len(self.scopes) > _MAX_NESTING:
            raise self.tokens.error("blocks nested too deep")
        self.scopes.append({})
        for name, at in labels:
            self._declare(name, Label, at)

    def _declare(self, name: str, make, at: int | None = None) -> str:
        """Enter a name into the innermost scope; returns the name it has in the whole function."""
        if name in self.scopes[-1]:
            raise self.tokens.error(f"'{name}' is declared twice in this block", at)
        unique, number = name, 1
        while unique in self.taken or (unique in self.parser.names and make is not Label):
            unique, number = f"{name}${number}", number + 1
        self.taken.add(unique)
        if unique != name:
            self.fn.renamed[unique] = name
        self.scopes[-1][name] = make(unique)
        return unique

    # --- statements -------------------------------------------------------------------------------------------

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
            self.fn.prototypes[unique] = self.parser.prototype(unique)
        else:
            self.fn.body.append(LabelDef(unique, line))
            return
        tokens.expect(";")

    def _list(self, of: type) -> list:
        found = []
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
            self.loc = _location(tokens)
        elif directive == ".pragma":
            tokens.i += 1
            _skip_statement(tokens, None)
        else:
            raise tokens.error(f"unknown directive '{directive}' in a function")

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
        src, path = self.src
        self.fn.body.append(Instr(guard, op, tuple(mods), tuple(operands), line, text, src, self.loc, path))

    def _follow_markers(self, index: int) -> None:
        markers = self.tokens.markers
        while self.marker < len(markers) and markers[self.marker][0] <= index:
            self.src = markers[self.marker][1:]
            self.marker += 1

    # --- operands ---------------------------------------------------------------------------------------------

    def _name(self, name: str, at: int):
        """What a name means here, innermost scope first."""
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
        var = next(
            (v for v in self.fn.vars if v.name == symbol.name), self.parser.module.vars.get(symbol.name)
        )
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
            raise tokens.error("an address is a register, a variable or a constant", at)
        if tokens.peek() in ("+", "-"):
            offset += tokens.integer()
        parts = []
        while tokens.accept(","):
            parts.append(self._operand(op, depth + 1))
        tokens.expect("]")
        return Mem(base, offset, tuple(parts))


# --- directives without structure of their own ----------------------------------------------------------------


def _location(tokens: Tokens) -> tuple[int, int, int]:
    """`.loc file line column [, function_name label [+ n], inlined_at file line column]` (PTX ISA 11.5.3)."""
    place = (tokens.number(), tokens.number(), tokens.number())
    while tokens.accept(","):
        if tokens.accept("function_name"):
            tokens.take("word", "a label")
            if tokens.accept("+"):
                tokens.number()
        else:
            tokens.expect("inlined_at")
            for _ in range(3):
                tokens.number()
    return place


def _version(tokens: Tokens, module: Module) -> None:
    module.version = tokens.take("real", "a version number such as 9.0")


def _target(tokens: Tokens, module: Module) -> None:
    names = [tokens.take("word", "a target")]
    while tokens.accept(","):
        names.append(tokens.take("word", "a target"))
    module.target = tuple(names)


def _address_size(tokens: Tokens, module: Module) -> None:
    module.address_size = tokens.integer()
    if module.address_size not in (32, 64):
        raise tokens.error("the address size is 32 or 64", tokens.i - 1)


def _file(tokens: Tokens, module: Module) -> None:
    number = tokens.integer()
    module.files[number] = tokens.take("str", "a file name")[1:-1]
    while tokens.accept(","):
        tokens.integer()


def _section(tokens: Tokens, module: Module) -> None:
    tokens.i += tokens.kind() != "end"
    tokens.skip_group("{", "}")


def _alias(tokens: Tokens, module: Module) -> None:
    at = tokens.i
    new = tokens.take("word", "a name")
    tokens.expect(",")
    old = tokens.take("word", "a name")
    tokens.expect(";")
    if old not in module.functions:
        raise tokens.error(f"'.alias' of undeclared '{old}'", at)
    module.functions[new] = module.functions[old]


def _skip_statement(tokens: Tokens, module: Module | None) -> None:
    while not tokens.accept(";"):
        if tokens.kind() == "end":
            raise tokens.error("expected ';'")
        tokens.i += 1


_MODULE_DIRECTIVES = {
    ".version": _version,
    ".target": _target,
    ".address_size": _address_size,
    ".file": _file,
    ".section": _section,
    ".alias": _alias,
    ".pragma": _skip_statement,
    ".loc": lambda tokens, module: _location(tokens),
}
