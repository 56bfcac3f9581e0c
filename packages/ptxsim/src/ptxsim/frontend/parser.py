"""PTX text -> Module: `parse(text)`.

Handles syntax, scopes and constants only. Instructions with any opcode are accepted; the meaning of opcodes
is left to the tables in `ptxsim.isa`. Nested `{ }` blocks have their own registers, variables and labels (PTX
ISA 4.6, 5.2): a name that is declared again gets a unique name (`P1$2`; `Function.renamed` maps it back).
"""

from __future__ import annotations

import re

from ptxsim.frontend import heap
from ptxsim.frontend.ast import Function, Module, PtxError, Sym, Var
from ptxsim.frontend.declarations import SPACES, declaration, function_directive, signature
from ptxsim.frontend.functions import find_labels, location, parse_body
from ptxsim.frontend.lexer import Tokens
from ptxsim.frontend.told_lines import tell_lines

_LINKAGE = (".visible", ".extern", ".weak", ".common")


def parse(text: str) -> Module:
    """Parse a PTX module.

    Raises PtxError (with line and text) for text that is not PTX or that uses an undeclared name.
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str):
        self.tokens = Tokens(text)
        self.module = Module(text=text)
        self.names: dict[str, Sym] = {}  # module scope
        self.labels = find_labels(self.tokens)

    def parse(self) -> Module:
        tokens = self.tokens
        if tokens.peek() != ".version":
            raise tokens.error("PTX starts with .version")
        while tokens.kind() != "end":
            self._module_statement()
        for var in self.module.vars.values():
            for _, symbol in var.relocs:
                if symbol.name not in self.names:
                    raise PtxError(f"initialiser names undeclared '{symbol.name}'", var.line, var.name)
        for function in self.module.functions.values() if not tokens.markers else ():
            tell_lines(function, self.module.files)
        self._add_heap()
        return self.module

    def _add_heap(self) -> None:
        """Defines malloc and free if the module only declares them."""
        known = self.module.functions
        if wanted := [name for name in heap.FUNCTIONS if name in known and known[name].extern]:
            library = _Parser(heap.TEXT).parse()
            known |= {name: library.functions[name] for name in wanted}
            self.module.vars |= library.vars

    def _module_statement(self) -> None:
        tokens, module = self.tokens, self.module
        directive = tokens.peek()
        linkage: tuple[str, ...] = ()
        handler = _MODULE_DIRECTIVES.get(directive)
        if handler:
            tokens.i += 1
            handler(tokens, module)
            return
        while tokens.peek() in _LINKAGE:
            linkage += (tokens.peek()[1:],)
            tokens.i += 1
        if tokens.peek() in (".entry", ".func"):
            self._function()
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

    def _function(self) -> None:
        tokens = self.tokens
        line = tokens.line(tokens.i)
        fn = Function("", tokens.peek() == ".entry", line=line, extern=True)
        tokens.i += 1
        while tokens.peek() in (".attribute", ".noreturn"):
            function_directive(tokens, fn)
        fn.name = signature(tokens, fn, "a function name")
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
        parse_body(tokens, fn, self.module, self.names, self.labels)


_TARGET = re.compile(r"sm_\d+[af]?|texmode_\w+|debug|map_f64_to_f32")  # PTX ISA 11.1.2


def _version(tokens: Tokens, module: Module) -> None:
    module.version = tokens.take("real", "a version number such as 9.0")


def _target(tokens: Tokens, module: Module) -> None:
    names = [tokens.take("word", "a target")]
    while tokens.accept(","):
        names.append(tokens.take("word", "a target"))
    for name in names:
        if not _TARGET.fullmatch(name):
            raise tokens.error(f"'{name}' is not a target", tokens.i - 1)
    module.target = tuple(names)


def _address_size(tokens: Tokens, module: Module) -> None:
    module.address_size = tokens.integer()
    if module.address_size != 64:
        raise tokens.error("addresses of other than 64 bits are not modelled", tokens.i - 1)


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


_MODULE_DIRECTIVES = {
    ".version": _version,
    ".target": _target,
    ".address_size": _address_size,
    ".file": _file,
    ".section": _section,
    ".alias": _alias,
    ".pragma": lambda tokens, module: tokens.skip_past(";"),
    ".loc": lambda tokens, module: location(tokens),
}
