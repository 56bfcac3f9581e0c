"""What the subcommands share: bad input, exit codes, orders."""

from __future__ import annotations

EXIT = {"error": 1, "incomplete": 3}  # verdict -> exit code; the others: 0


class Bad(Exception):
    """Bad input: one line that says what is wrong and what to do."""


def order_of(text: str) -> str | int:
    """program, adverse or a seed; Bad for anything else."""
    if text in ("program", "adverse"):
        return text
    if text.isdigit():
        return int(text)
    raise Bad(f"--order is program, adverse or a seed such as 7 (got {text!r})")
