"""What the subcommands share: bad input, exit codes, orders."""

from __future__ import annotations

from pathlib import Path

EXIT = {"error": 1, "incomplete": 3}  # verdict -> exit code; the others: 0


class Bad(Exception):
    """Bad input: one line that says what is wrong and what to do."""


def check_output(path: Path | None) -> None:
    """Bad for a file that cannot be written, before a run has spent its time."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        why = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise Bad(f"{path} cannot be written: {why}")


def order_of(text: str) -> str | int:
    """program, adverse or a seed; Bad for anything else."""
    if text in ("program", "adverse"):
        return text
    if text.isdecimal():
        return int(text)
    raise Bad(f"--order is program, adverse or a seed such as 7 (got {text!r})")
