"""The part of a kernels file that can run: all of it or, with syntax errors, what they leave intact.

A section is split into its top-level statements; those that do not compile are replaced by empty lines, so
that all other lines keep their numbers. The imports of a file for TVM's preview wheel are rewritten, too.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

from tirxlab.porting import of_the_wheel, port
from tirxlab.steps import StepError, refuse_syntax_errors, sections

STATEMENTS = 200  # how many of a section are tried one by one
_TOP = re.compile(r"^(?=[A-Za-z_@])", re.MULTILINE)


@dataclass(frozen=True)
class Runnable:
    """A text that compiles, and the steps that are not in it, with the reason in one line each."""

    text: str
    broken: dict[int, str] = field(default_factory=dict)


def runnable(text: str, name: str) -> Runnable:
    """The runnable part of a text; StepError if the part before the first step, which all steps use, has a
    syntax error, or if a step is defined twice.
    """
    try:
        refuse_syntax_errors(text, name)
    except StepError as error:
        try:
            parts = sections(text, broken=True)
        except StepError:
            raise error from None  # report the syntax error first: a half-done paste may double a step
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
    """The pieces, with each decorator joined to the statement that follows it."""
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
