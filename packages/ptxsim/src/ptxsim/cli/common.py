"""Shared by the subcommands: the error for bad input, exit codes, arguments and options."""

from __future__ import annotations

from pathlib import Path

import typer

EXIT = {"error": 1, "incomplete": 3}  # verdict -> exit code; 0 for all other verdicts

FILE = typer.Argument(..., help=".ptx, .cu, a fat binary, or a program with PTX inside.")
ENTRY = typer.Option("", help="The kernel; needed if the module has several.")
GRID = typer.Option("1", help="The grid in CTAs, such as 16x4.")
BLOCK = typer.Option("1", help="Threads per CTA.")
CLUSTER = typer.Option("1", help="CTAs per cluster.")
SHARED = typer.Option(0, min=0, help="Bytes of dynamic shared memory.")
ARCH = typer.Option("sm_90a", help="The architecture that a .cu file is compiled for.")
ORDER = typer.Option("program", help="Order of completion: program, adverse (as late as allowed) or a seed.")
CHECKS = typer.Option(True, help="Look for races, missing fences and so on, or only run.")


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
