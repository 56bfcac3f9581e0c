"""Shared by the subcommands: the error for bad input, exit codes, the option --order."""

from __future__ import annotations

from pathlib import Path

EXIT = {"error": 1, "incomplete": 3}  # verdict -> exit code; 0 for all other verdicts


class Bad(Exception):
    """Bad input. The message is one line that says what is wrong and what to do about it."""


def check_output(path: Path | None) -> None:
    """Raises Bad if the file cannot be written, so that the user learns it before the run and not after."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        why = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise Bad(f"{path} cannot be written: {why}")


def order_of(text: str) -> str | int:
    """The value of --order: "program", "adverse" or a seed as an int. Raises Bad for anything else."""
    if text in ("program", "adverse"):
        return text
    if text.isdecimal():
        return int(text)
    raise Bad(f"--order must be program, adverse or a seed such as 7 (got {text!r})")
