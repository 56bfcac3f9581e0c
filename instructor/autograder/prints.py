"""The fingerprint of a kernels file: its runs of tokens.

Comments, names, numbers, brackets, layout and the skeleton do not count. Runs in a confined child, see
reader.py: some texts take Python's tokenizer minutes.
"""

from __future__ import annotations

import hashlib
import io
import keyword
import tokenize
from array import array

from tirxlab.steps import SKELETON, StepError, sections

RUN = 24  # tokens
MANY = 20_000  # runs of one submission that are compared: twice what the reference has
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
    found, line = [], []
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
