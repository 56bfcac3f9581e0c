"""What the subcommands share: bad input, lines on stderr, verdicts, readable names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from ptxsim.report.names import readable

EXIT = {"error": 1, "incomplete": 3}  # verdict -> exit code; the others: 0
WORST = ("error", "incomplete", "review", "clean", "not checked")


class Bad(Exception):
    """Bad input: one line that says what is wrong and what to do."""


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def worst(verdicts: Iterable[str]) -> str:
    """The worst of several verdicts; "clean" for none."""
    return min(verdicts, key=WORST.index, default="clean")


def short(name: str, most: int = 60) -> str:
    """The name without parameters and return type, cut to `most` characters."""
    text = readable(name)
    head = _without_parameters(text)
    return head if len(head) <= most else head[: most - 2] + ".."


def _without_parameters(text: str) -> str:
    depth = 0
    for at in range(len(text) - 1, -1, -1):  # the last parenthesis that is open at depth 0
        depth += (text[at] == ")") - (text[at] == "(")
        if text[at] == "(" and depth == 0:
            text = text[:at]
            break
    return text.removeprefix("void ").strip()


def shape(extents: tuple[int, int, int]) -> str:
    """`16x4` of (16, 4, 1)."""
    used = list(extents)
    while len(used) > 1 and used[-1] == 1:
        used.pop()
    return "x".join(map(str, used))


def amount(count: float) -> str:
    """`1.2 M` of 1_234_567."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count:.0f}"


def order_of(text: str) -> str | int:
    """program, adverse or a seed; Bad for anything else."""
    if text in ("program", "adverse"):
        return text
    if text.isdigit():
        return int(text)
    raise Bad(f"--order is program, adverse or a seed such as 7 (got {text!r})")


def announce_compilation() -> None:
    """Compiles the machine, with a message and a bar, if that was not done yet on this computer."""
    from ptxsim.jit.code_cache import ANNOUNCED, is_cold

    if is_cold():
        os.environ[ANNOUNCED] = "1"
        from ptxsim.cli.first_time import compile_with_bar

        compile_with_bar()
