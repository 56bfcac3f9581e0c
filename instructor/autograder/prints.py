"""The fingerprint of a kernels file: its runs of tokens.

Comments, names, layout and the skeleton do not count. Runs in a confined child, see reader.py: some texts
take Python's tokenizer minutes.
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
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
}


def tokens(text: str) -> list[str]:
    """The text's tokens, names and strings without what they say; as far as it can be read."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                found.append(token.string if keyword.iskeyword(token.string) else "name")
            elif token.type == tokenize.STRING:
                found.append("text")
            elif token.type not in _LEFT_OUT:
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        pass
    return found


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
