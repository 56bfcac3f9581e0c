"""The fingerprint of a kernels file: its runs of tokens.

Comments, names, numbers, brackets, layout and the skeleton do not count. Runs in a confined child, see
reader.py: some texts take Python's tokenizer minutes.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import keyword
import re
import tokenize
import zipfile
from array import array
from collections.abc import Iterable

from tirxlab.artifact import Artifact, ArtifactError
from tirxlab.porting import PACKAGES, split
from tirxlab.steps import SKELETON, StepError, sections

RUN = 24  # tokens
MANY = 20_000  # runs of one submission that are compared: twice what the reference has
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*|\S")
_LEFT_OUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
}
_SAYS_NOTHING = set("()[]{},;") | {"pass"}
_CONSTANTS = {"None", "True", "False"}
_KINDS = {tokenize.STRING: "text", tokenize.NUMBER: "number"}
# What a text can be kept out of sight with: it is run, looked up by a name that is put together, or written.
_HIDES = {
    *("exec", "eval", "compile", "getattr", "setattr", "globals", "locals", "vars", "open", "breakpoint"),
    *("from_source", "load_json", "runstring", "rundocs", "tofile", "savetxt", "save", "memmap"),
}
_HARMLESS = {
    *("__future__", "collections", "contextlib", "dataclasses", "enum", "functools", "itertools", "math"),
    *("numpy", "typing"),
}
_OPEN_NAMES = {"__name__", "__init__", "__call__", "__enter__", "__exit__", "__len__", "__getitem__"}


def tokens(text: str) -> list[str]:
    """The text's tokens as far as it can be read: names, numbers and strings without what they say.

    Brackets, commas, `pass` and statements that do nothing are left out: they can stand anywhere.
    """
    lines = io.StringIO(text).readlines()
    found: list = []
    at = 0
    while at < len(lines):  # a text may be meant to break: what stands behind is read too
        words, at = _words(lines, at)
        found += words
    return found


def _words(lines: list[str], at: int) -> tuple[list[str], int]:
    """(what `tokens` says of the lines from this one on, where to go on behind one that is no Python)."""
    rest = (lines[n] for n in range(at, len(lines)))
    found: list = []
    line: list = []
    begin = 1
    try:
        for token in tokenize.generate_tokens(rest.__next__):
            begin = token.end[0]
            if token.type == tokenize.NEWLINE:
                found += [] if set(line) <= {"name", "text", "number", "..."} and len(line) < 2 else line
                line = []
            elif token.type not in _LEFT_OUT and token.string not in _SAYS_NOTHING:
                line.append(_plain(token))
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        return found + line, at + begin
    return found + line, len(lines)


def _plain(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and token.string in _CONSTANTS:
        return "number"
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) else "name"
    return _KINDS.get(token.type, token.string)


def hides(data: bytes) -> bytes:
    """b"yes" if the text can run text that is not in sight, or is no Python: what it builds says more."""
    try:
        tree = ast.parse(data.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return b"yes"
    return b"yes" if any(map(_hides, ast.walk(tree))) else b""


def _hides(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] not in _HARMLESS for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        package = (node.module or "").split(".")[0]
        known = package in _HARMLESS or package in ("tirxlab", *PACKAGES) and not split(node.names)[1]
        return not known or any(alias.name in _HIDES for alias in node.names)
    name = getattr(node, "id", getattr(node, "attr", ""))  # as Python reads it, in whatever letters
    return name in _HIDES or (name.startswith("__") and name.endswith("__") and name not in _OPEN_NAMES)


def fingerprint(data: bytes) -> bytes:
    """Hashes of the runs of tokens, those of the skeleton left out; MANY of them at most."""
    found = _runs(data.decode()) - _runs(SKELETON.read_text(encoding="utf-8"))
    return array("Q", sorted(found)[:MANY]).tobytes()


def _runs(text: str) -> set[int]:
    try:
        parts = list(sections(text).values())
    except StepError:
        parts = [text]
    found = set()
    for part in parts:
        words = tokens(part)
        for i in range(len(words) - RUN + 1):
            run = "\0".join(words[i : i + RUN]).encode()
            found.add(int.from_bytes(hashlib.blake2b(run, digest_size=8).digest(), "little"))
    return found


def built(data: bytes) -> bytes:
    """What a bundle's artifacts are made of: a hash of each step's CUDA, in which names say nothing."""
    found = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if not name.startswith("artifacts/"):
                continue
            try:
                cuda = Artifact.from_bytes(archive.read(name)).cuda
            except ArtifactError:
                continue
            found.append(f"{name} {hashlib.sha256(' '.join(_renamed(cuda)).encode()).hexdigest()}")
    return json.dumps(sorted(found)).encode()


def _renamed(cuda: str) -> Iterable[str]:
    """Its words, every name replaced by the number of its first use."""
    numbers: dict[str, str] = {}
    for word in _WORD.findall(_COMMENT.sub(" ", cuda)):
        yield numbers.setdefault(word, f"n{len(numbers)}") if word[0].isalpha() or word[0] == "_" else word
