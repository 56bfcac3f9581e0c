"""PTX text -> tokens, and constant expressions over them (PTX ISA 4.1-4.5).

`Tokens(text)` runs one regular expression over the whole text, to which a long list of plain numbers (an
initialiser, or a line of debugging data) is one token. A cursor with `peek`, `take`, `accept` and `expect`
walks the result. Every error is a `PtxError` that names the line.
"""

from __future__ import annotations

import operator
import re
import struct
from bisect import bisect_right

from ptxsim.frontend.ast import Imm, PtxError

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<note>//[^\n]*|/\*.*?\*/)
  | (?P<list>(?:(?:0|[1-9]\d{0,17})\s*,\s*){31,}(?:0|[1-9]\d{0,17})(?=\s*[,}]))
  | (?P<word>%?[A-Za-z_$][\w$]*(?:\.\w+(?:::\w+)*)*)
  | (?P<dot>\.[A-Za-z_]\w*(?:::\w+)*)
  | (?P<real>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
  | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
  | (?P<str>"[^"\n]*")
  | (?P<op><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%!~&|^<>=?:;,()\[\]{}@])
  | (?P<bad>\S)
  )""",
    re.ASCII | re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MARKER = re.compile(r"//\s*@src\s+(?:(\S.*):)?(\d{1,9})\s*$")
_MAX_DEPTH = 64
_M64 = (1 << 64) - 1


class Tokens:
    """The tokens of `text` and a cursor `i` into them; the last token has kind "end"."""

    def __init__(self, text: str):
        self.text = text
        self.i = 0
        self.kinds: list[str] = []
        self.values: list[str] = []
        self.starts: list[int] = []
        self.markers: list[tuple[int, int, str | None]] = []  # (token index, N, PATH) of `// @src PATH:N`
        self._lines = [m.end() for m in re.finditer("\n", text)]
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or "bad"
            if kind == "note":
                self._note(match.group(kind))
                continue
            self.kinds.append(kind)
            self.values.append(match.group(kind))
            self.starts.append(match.start(kind))
            if kind == "list" and self.kinds[-2:-1] != ["dot"] and self.values[-3:-1] != ["=", "{"]:
                self.unfold(len(self.kinds) - 1)
            if kind == "bad":
                raise self.error("unexpected character", len(self.kinds) - 1)
        self.kinds.append("end")
        self.values.append("")
        self.starts.append(len(text.rstrip()))

    def unfold(self, at: int) -> None:
        """Replaces a "list" token (a long list of numbers) by tokens for its numbers and commas."""
        items = list(re.finditer(r"\d+|,", self.values[at]))
        start, more = self.starts[at], len(items) - 1
        self.markers = [(i + more * (i > at), line, path) for i, line, path in self.markers]
        self.starts[at : at + 1] = [start + item.start() for item in items]
        self.kinds[at : at + 1] = ["op" if item[0] == "," else "int" for item in items]
        self.values[at : at + 1] = [item[0] for item in items]

    def _note(self, comment: str) -> None:
        if "@src" in comment and (found := _MARKER.match(comment)):
            self.markers.append((len(self.kinds), int(found[2]), found[1]))

    def line(self, index: int) -> int:
        """The 1-based line of a token."""
        return bisect_right(self._lines, self.starts[index]) + 1

    def error(self, what: str, index: int | None = None) -> PtxError:
        """The error to raise about a token (the current one by default)."""
        index = min(self.i if index is None else index, len(self.kinds) - 1)
        if self.kinds[index] == "end":
            what += " (the text ends here)"
        line = self.line(index)
        start = self._lines[line - 2] if line > 1 else 0
        shown = self.text[start:].split("\n", 1)[0].strip()
        shown = "".join(c if c.isprintable() else " " for c in shown)
        return PtxError(what, line, shown if len(shown) <= 120 else shown[:117] + "...")

    def slice(self, first: int, last: int) -> str:
        """The source text of tokens first..last on one line, without comments."""
        text = self.text[self.starts[first] : self.starts[last] + len(self.values[last])]
        if "//" in text or "/*" in text:
            text = _COMMENT.sub(" ", text)
        return " ".join(text.split())

    def peek(self) -> str:
        return self.values[self.i]

    def kind(self) -> str:
        return self.kinds[self.i]

    def accept(self, value: str) -> bool:
        """Step over the current token if it is `value`."""
        if self.values[self.i] != value:
            return False
        self.i += 1
        return True

    def expect(self, value: str) -> None:
        if not self.accept(value):
            raise self.error(f"expected '{value}', found '{self.peek()}'")

    def take(self, kind: str, what: str) -> str:
        """Step over a token of this kind and return its text."""
        if self.kinds[self.i] != kind:
            raise self.error(f"expected {what}, found '{self.peek()}'")
        self.i += 1
        return self.values[self.i - 1]

    def number(self) -> int:
        """Take one integer literal, when a following operator is not part of an expression, as in `%r<8>`."""
        at = self.i
        value, kind = _literal(self)
        if kind not in "su":
            raise self.error("expected an integer", at)
        return value

    def integer(self) -> int:
        """Take a constant expression that must be an integer."""
        at = self.i
        value = constant(self)
        if value.kind != "int":
            raise self.error("expected an integer constant", at)
        return value.bits

    def skip_group(self, opening: str, closing: str) -> None:
        """Step over a balanced group; the cursor is at its opening token."""
        start, depth = self.i, 0
        while self.kinds[self.i] != "end":
            depth += (self.values[self.i] == opening) - (self.values[self.i] == closing)
            self.i += 1
            if depth == 0:
                return
        raise self.error(f"no matching '{closing}'", start)

    def skip_past(self, value: str) -> None:
        """Step past the next token that is `value`."""
        while not self.accept(value):
            if self.kind() == "end":
                raise self.error(f"expected '{value}'")
            self.i += 1


# --- constant expressions ---
# In an expression, a value is (number, type); type: "s", "u" (64-bit integers), "f32" or "f64" (raw bits).

_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %")  # loosest first
_PRECEDENCE = {sign: level for level, signs in enumerate(_LEVELS, 1) for sign in signs.split()}
_COMPARE = {
    **{"||": lambda a, b: bool(a or b), "&&": lambda a, b: bool(a and b)},
    **{"==": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
_ARITHMETIC = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul},
    **{"&": operator.and_, "|": operator.or_, "^": operator.xor},
    "/": lambda a, b: _truncating_div(a, b),
    "%": lambda a, b: a - b * _truncating_div(a, b),
    "<<": lambda a, b: a << min(b & _M64, 64),
    ">>": lambda a, b: a >> min(b & _M64, 64),
}


def _truncating_div(a, b):
    if isinstance(a, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def constant(tokens: Tokens) -> Imm:
    """Parse a constant expression at the cursor: C operators on 64-bit integers; + - * / and comparisons on
    doubles (PTX ISA 4.5.3-4.5.6). A single integer keeps its value, so 0xFFFFFFFFFFFFFFFF stays positive."""
    number, kind = _ternary(tokens, 0)
    return Imm(number, "int" if kind in "su" else kind)


def _ternary(tokens: Tokens, depth: int):
    if depth > _MAX_DEPTH:
        raise tokens.error("expression nested too deep")
    condition = _binary(tokens, 1, depth)
    if not tokens.accept("?"):
        return condition
    first = _ternary(tokens, depth + 1)
    tokens.expect(":")
    second = _ternary(tokens, depth + 1)
    return first if condition[0] else second


def _binary(tokens: Tokens, level: int, depth: int):
    left = _unary(tokens, depth + 1)
    while (strength := _PRECEDENCE.get(sign := tokens.peek(), 0)) >= level:
        at = tokens.i
        tokens.i += 1
        right = _binary(tokens, strength + 1, depth + 1)
        try:
            left = _apply(sign, left, right)
        except (ZeroDivisionError, OverflowError, TypeError, ValueError):
            raise tokens.error(f"this constant expression has no value ('{sign}')", at) from None
    return left


def _apply(sign: str, left, right):
    if "f32" in (left[1], right[1]):
        raise ValueError("0f constants do not take part in expressions")
    real = "f64" in (left[1], right[1])
    a, b = (_as_float(x) if real else x[0] for x in (left, right))
    if sign in _COMPARE:
        return int(_COMPARE[sign](a, b)), "s"
    if real:
        if sign not in "+-*/":
            raise TypeError(sign)
        return _double_bits(_ARITHMETIC[sign](a, b)), "f64"
    shift = sign in ("<<", ">>")
    kind = "u" if left[1] == "u" or (right[1] == "u" and not shift) else "s"
    first = _wrap(left[0], kind)
    second = right[0] if shift else _wrap(right[0], kind)
    return _wrap(_ARITHMETIC[sign](first, second), kind), kind


def _wrap(value: int, kind: str) -> int:
    value &= _M64
    return value - (1 << 64) if kind == "s" and value >> 63 else value


def _as_float(value) -> float:
    return struct.unpack("<d", struct.pack("<Q", value[0]))[0] if value[1] == "f64" else float(value[0])


def _double_bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def _unary(tokens: Tokens, depth: int):
    if depth > _MAX_DEPTH:
        raise tokens.error("expression nested too deep")
    at, token = tokens.i, tokens.peek()
    if token == "(":
        return _parenthesis(tokens, depth)
    if token in ("-", "+", "~", "!"):
        tokens.i += 1
        number, kind = _unary(tokens, depth + 1)
        if token == "+":
            return number, kind
        if token == "-" and kind in ("f32", "f64"):
            return number ^ (1 << (31 if kind == "f32" else 63)), kind
        if kind in ("f32", "f64"):
            raise tokens.error(f"'{token}' needs an integer", at)
        if token == "!":
            return int(not number), "s"
        if token == "-":
            return (-number if number <= 1 << 63 else _wrap(-number, kind)), kind
        return _wrap(~number, kind), kind
    return _literal(tokens)


def _parenthesis(tokens: Tokens, depth: int):
    tokens.expect("(")
    if tokens.peek() in (".s64", ".u64"):
        kind = tokens.peek()[1]
        tokens.i += 1
        tokens.expect(")")
        number, was = _unary(tokens, depth + 1)
        if was not in "su":
            raise tokens.error("only integers can be cast")
        return _wrap(number, kind), kind
    value = _ternary(tokens, depth + 1)
    tokens.expect(")")
    return value


def _literal(tokens: Tokens):
    kind, token = tokens.kind(), tokens.peek()
    if token == "WARP_SZ":
        tokens.i += 1
        return 32, "s"
    if kind == "real":
        tokens.i += 1
        if token[:2] in ("0f", "0F"):
            return int(token[2:], 16), "f32"
        if token[:2] in ("0d", "0D"):
            return int(token[2:], 16), "f64"
        return _double_bits(float(token)), "f64"
    digits = token.rstrip("U")
    if kind != "int" or len(digits) > 66:
        raise tokens.error(
            "the integer is too long" if kind == "int" else f"expected a constant, found '{token}'"
        )
    base = {"0x": 16, "0X": 16, "0b": 2, "0B": 2}.get(digits[:2]) or (8 if digits[0] == "0" else 10)
    try:
        number = int(digits[2:] if base in (2, 16) else digits, base)
    except ValueError:
        raise tokens.error(f"'{token}' is not an octal number") from None
    if number > _M64:
        raise tokens.error(f"'{token}' does not fit in 64 bits")
    tokens.i += 1
    return number, "u" if token.endswith("U") or number >> 63 else "s"
