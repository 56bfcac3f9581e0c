"""The fingerprint of a kernels file: its runs of tokens.

Comments, names, numbers, brackets, layout and the skeleton do not count. Runs in a confined child, see
reader.py: some texts take Python's tokenizer minutes.
"""

from __future__ import annotations

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
_HIDES = {
    "exec",
    "eval",
    "compile",
    "getattr",
    "setattr",
    "globals",
    "__import__",
    "importlib",
    "base64",
    "zlib",
}


def tokens(text: str) -> list[str]:
    """The text's tokens as far as it can be read: names, numbers and strings without what they say.

    Brackets, commas, `pass` and statements that do nothing are left out: they can stand anywhere.
    """
    found: list = []
    line: list = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                found += [] if set(line) <= {"name", "text", "number", "..."} and len(line) < 2 else line
                line = []
            elif token.type not in _LEFT_OUT and token.string not in _SAYS_NOTHING:
                line.append(_plain(token))
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        pass
    return found + line


def _plain(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and token.string in _CONSTANTS:
        return "number"
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) else "name"
    return _KINDS.get(token.type, token.string)


def hides(data: bytes) -> bytes:
    """b"yes" if the text runs or looks up text of its own: what it builds then says more than it does."""
    words = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(data.decode()).readline):
            words |= {token.string} & _HIDES
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        return b"yes"
    return b"yes" if words else b""


def fingerprint(data: bytes) -> bytes:
    """Hashes of the runs of tokens of the steps, those of the skeleton left out; MANY of them at most."""
    found = _runs(data.decode()) - _runs(SKELETON.read_text(encoding="utf-8"))
    return array("Q", sorted(found)[:MANY]).tobytes()


def _runs(text: str) -> set[int]:
    try:
        parts = [part for step, part in sections(text).items() if step]
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
