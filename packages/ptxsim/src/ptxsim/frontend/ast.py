"""The syntax tree of a PTX program: operands, instructions, variables, functions, the module.

Operands are frozen (hashable) values in which every name is already resolved: registers, variables and labels
of nested `{ }` blocks have unique names within their function. `parse` in parser.py builds the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class PtxError(ValueError):
    """PTX that cannot be used; the message reads ``line 12: <what is wrong>: `<text>` ``."""

    def __init__(self, what: str, line: int, text: str):
        super().__init__(f"line {line}: {what}: `{text}`")
        self.what = what
        self.line = line
        self.text = text


@dataclass(frozen=True)
class Reg:
    name: str  # "%r12"; special registers, too: "%tid.x", "WARP_SZ"; byte selectors of video ops: "%r1.b0"


@dataclass(frozen=True)
class Imm:
    bits: int  # kind "int": the value, may be negative; "f32" / "f64": the raw IEEE bits
    kind: str  # "int", "f32" (0fXXXXXXXX), "f64" (0dXXXXXXXXXXXXXXXX or a decimal literal)


@dataclass(frozen=True)
class Sym:
    """The address of a variable or function used as a value."""

    name: str
    offset: int = 0  # bytes
    generic: bool = False  # written as generic(name): the generic address, not that in the variable's space
    mask: int | None = None  # initialisers only: 0xFF00(name) keeps these bits, shifted down to bit 0


@dataclass(frozen=True)
class Mem:
    """`[base+offset, parts...]`; parts are the further items inside the brackets (tensor coordinates)."""

    base: Reg | Sym | Imm | None
    offset: int = 0  # bytes; columns for an address in tensor memory
    parts: tuple = ()


@dataclass(frozen=True)
class Vec:
    items: tuple  # {a, b, _, 0}


@dataclass(frozen=True)
class Pred:
    """A guard (`@p`, `@!p`), or a negated predicate operand (`!p`)."""

    reg: Reg
    negated: bool


@dataclass(frozen=True)
class Pair:
    """`p|q`, `d|p`, `_|p`."""

    first: Reg | Sink
    second: Reg | Sink


@dataclass(frozen=True)
class Sink:
    """`_`: the result is discarded."""


@dataclass(frozen=True)
class Label:
    name: str  # a branch target, or the name of a .branchtargets / .callprototype / .calltargets list


@dataclass(frozen=True)
class Paren:
    items: tuple  # the ( ... ) lists of call


def registers_of(operands: Iterable) -> Iterator[str]:
    """The names of the registers in operands, in order, including those inside addresses and that of `!p`."""
    for operand in operands:
        if isinstance(operand, Reg):
            yield operand.name
        elif isinstance(operand, Pred):
            yield operand.reg.name
        elif isinstance(operand, Vec | Paren):
            yield from registers_of(operand.items)
        elif isinstance(operand, Pair):
            yield from registers_of((operand.first, operand.second))
        elif isinstance(operand, Mem):
            yield from registers_of((operand.base, *operand.parts))


class Inlined(NamedTuple):
    """A call in whose place the function stands that a .loc belongs to (PTX ISA 11.5.3)."""

    label: str  # of the function's name in .debug_str
    file: int
    line: int
    column: int
    outer: Inlined | None = None  # the call of the function that this call is in
    others: tuple[Inlined | None, ...] = ()  # that it may be in as well: the text does not tell

    def chain(self) -> Iterator[Inlined]:
        """This call, and those that it is in."""
        call: Inlined | None = self
        while call is not None:
            yield call
            call = call.outer


@dataclass(eq=False)
class Location:
    """Where instructions come from. `frontend/told_lines.py` chooses `line` and `file` of a .loc."""

    line: int | None = None  # by which messages name them: N of the last `// @src N`, else of a .loc
    file: str | None = None  # its file: PATH of `// @src PATH:N`, else the name of a .loc's file
    loc: tuple[int, int, int] | None = None  # (file, line, column) of the nearest preceding .loc
    inlined: Inlined | None = None  # of that .loc

    def calls(self) -> Iterator[Inlined]:
        """The calls that led here, from the innermost."""
        return self.inlined.chain() if self.inlined is not None else iter(())

    def places(self) -> list[tuple[int, int]]:
        """(file, line) of the .loc, then of each call that led to it."""
        return [self.loc[:2], *((call.file, call.line) for call in self.calls())] if self.loc else []

    @property
    def unsure(self) -> bool:
        """Whether the text leaves open from where a function was called."""
        return any(call.others for call in self.calls())


NOWHERE = Location()


@dataclass(frozen=True)
class Instr:
    pred: Pred | None  # guard
    op: str  # "ld"
    mods: tuple[str, ...]  # ("shared::cta", "b32")
    operands: tuple
    line: int  # 1-based line of the PTX text
    text: str  # as written, on one line, without comments
    at: Location = field(default=NOWHERE, compare=False)

    @property
    def name(self) -> str:
        """The opcode as written: "ld.shared::cta.b32"."""
        return ".".join((self.op, *self.mods))

    @property
    def src(self) -> int | None:
        """The line of the source by which messages name it."""
        return self.at.line


@dataclass(frozen=True)
class LabelDef:
    name: str
    line: int


@dataclass
class Var:
    name: str
    space: str  # "shared", "local", "const", "global", "param", "reg"
    type: str  # "b64", "f32", "pred", ...
    align: int  # bytes
    count: int  # elements over all dimensions, vector lanes included; 0 for `[]`
    size: int  # bytes
    init: bytes | None = None  # `size` bytes; None: no initialiser, which means 0 at module scope
    relocs: list[tuple[int, Sym]] = field(default_factory=list)  # (offset in init, address to write there)
    extern: bool = False
    attributes: tuple[str, ...] = ()  # "visible", "weak", "common", "managed", "ptr", "ptr.global", ...
    line: int = 0


@dataclass
class Function:
    name: str
    is_kernel: bool
    params: list[Var] = field(default_factory=list)
    returns: list[Var] = field(default_factory=list)
    body: list[Instr | LabelDef] = field(default_factory=list)
    regs: dict[str, str] = field(default_factory=dict)  # unique name -> type
    vars: list[Var] = field(default_factory=list)  # declared inside; unique names
    directives: dict[str, tuple] = field(default_factory=dict)  # "maxntid" -> (128, 1, 1)
    branchtargets: dict[str, list[Label]] = field(default_factory=dict)
    calltargets: dict[str, list[Sym]] = field(default_factory=dict)
    prototypes: dict[str, Function] = field(default_factory=dict)  # .callprototype: params and returns only
    renamed: dict[str, str] = field(default_factory=dict)  # unique name -> name as written, if they differ
    extern: bool = False  # declared here without a body
    line: int = 0

    @property
    def largest_block(self) -> tuple[int, ...]:
        """The extents by .maxntid or .reqntid, to which a CTA is limited; () without either."""
        return self.directives.get("maxntid") or self.directives.get("reqntid", ())

    @property
    def registers(self) -> int:
        """Registers of a thread by .maxnreg; 0 without it."""
        return int((self.directives.get("maxnreg") or (0,))[0])

    @property
    def required_cluster(self) -> tuple[int, int, int] | None:
        """The extents by .reqnctapercluster."""
        x, y, z = (*self.directives.get("reqnctapercluster", ()), 1, 1, 1)[:3]
        return (x, y, z) if "reqnctapercluster" in self.directives else None


FUNCTION_BASE = 1 << 42  # no load or store reaches anything there


@dataclass
class Module:
    version: str = ""  # "9.0"
    target: tuple[str, ...] = ()  # ("sm_100a",)
    address_size: int = 64
    functions: dict[str, Function] = field(default_factory=dict)
    vars: dict[str, Var] = field(default_factory=dict)  # module scope
    files: dict[int, str] = field(default_factory=dict)  # .file
    text: str = ""

    def address_of(self, name: str) -> int | None:
        """The address that stands for a function in a pointer to it; None if there is no such function."""
        known = list(self.functions)
        return FUNCTION_BASE + 16 * known.index(name) if name in self.functions else None
