"""What of a kernels file can run: all of it, or with a syntax error in it what the error does not touch.

A section is taken apart into its top-level statements; what does not compile gives way to empty lines, so
that all other lines keep their numbers. A file for TVM's preview wheel has its imports rewritten on the way.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

from tirxlab.porting import of_the_wheel, port
from tirxlab.steps import StepError, refuse_syntax_errors, sections

STATEMENTS = 200  # of a section that are tried one by one
_TOP = re.compile(r"^(?=[A-Za-z_@])", re.MULTILINE)


@dataclass(frozen=True)
class Runnable:
    """A text that compiles, and the steps that are not in it: why, in one line each."""

    text: str
    broken: dict[int, str] = field(default_factory=dict)


def runnable(text: str, name: str) -> Runnable:
    """StepError if the part before the first step, used by all, cannot be read, or one stands twice."""
    try:
        refuse_syntax_errors(text, name)
    except StepError as error:
        try:
            parts = sections(text, broken=True)
        except StepError:
            raise error from None  # the syntax first: half of a paste may be why a step stands twice
        return _without_errors(parts, name)
    return Runnable(port(text, keep_lines=True)[0] if of_the_wheel(text) else text)


def _without_errors(parts: dict[int, str], name: str) -> Runnable:
    kept, broken, line = [], {}, 0
    for step, part in parts.items():
        try:
            refuse_syntax_errors("\n" * line + part, name)
            kept.append(part)
        except StepError as error:
            if not step:
                raise
            broken[step] = str(error)
            kept.append(_statements(part))
        line += part.count("\n")
    rest = "".join(kept)
    refuse_syntax_errors(rest, name)
    return Runnable(port(rest, keep_lines=True)[0] if of_the_wheel(rest) else rest, broken)


def _statements(part: str) -> str:
    """The top-level statements of a section that compile; empty lines for the others."""
    pieces, kept, at = _TOP.split(part)[: STATEMENTS + 1], [], 0
    pieces = _with_decorators([piece for piece in pieces if piece])
    while at < len(pieces):
        taken = next((n for n in (1, 2, 3) if _compiles("".join(pieces[at : at + n]))), 0)
        kept.append("".join(pieces[at : at + taken]) if taken else "\n" * pieces[at].count("\n"))
        at += taken or 1
    return "".join(kept) + "\n" * (part.count("\n") - "".join(pieces).count("\n"))


def _with_decorators(pieces: list[str]) -> list[str]:
    """A decorator belongs to what follows it."""
    found: list[str] = []
    for piece in pieces:
        if found and found[-1].rpartition("\n@")[2].startswith("@"):
            found[-1] += piece
        else:
            found.append(piece)
    return found


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "part", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
