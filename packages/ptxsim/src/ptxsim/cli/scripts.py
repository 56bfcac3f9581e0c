"""`ptxsim triton SCRIPT ARGS`, and the same for other languages: runs Python programs' kernels here."""

from __future__ import annotations

import contextlib
import importlib
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import typer

from ptxsim.cli.common import CHECKS, EXIT, ORDER, Bad, order_of

LANGUAGES = {"triton": "Triton", "cute": "CuTe DSL", "tilelang": "TileLang"}  # by their plugins
_HELP = """Run a Python program with its {} kernels on the simulator, on torch tensors of the CPU.

    Exit code: the program's own if it sets one. Otherwise 1 for an error, 3 if a kernel uses something that
    is not modelled, else 0.
    """


def command_of(plugin: str) -> Callable[..., int]:
    """The subcommand of a language's plugin."""

    def command(
        context: typer.Context,
        script: Path = typer.Argument(..., help="The Python file, followed by its own arguments."),
        chip: str = typer.Option("h200", help="The chip that kernels are compiled for: a100, h200, b200."),
        order: str = ORDER,
        checks: bool = CHECKS,
        quiet: bool = typer.Option(False, "--quiet", "-q", help="Print no line per launch."),
    ) -> int:
        def enter():
            opened = getattr(importlib.import_module(f"ptxsim.plugins.{plugin}"), plugin)
            return opened(chip, order_of(order), checks, quiet)

        return run_script(script, context.args, enter)

    command.__doc__ = _HELP.format(LANGUAGES[plugin])
    return command


def run_script(script: Path, own: list[str], enter: Callable[[], contextlib.AbstractContextManager]) -> int:
    """Runs a file as Python would, with its own arguments, inside the session that `enter` opens.

    Exit code: the program's own if it sets one. Otherwise 1 for an error, 3 if a kernel uses something that
    is not modelled, else 0.
    """
    if not script.is_file():
        raise Bad(f"{script} does not exist")
    sys.argv = [str(script), *own]
    sys.path.insert(0, str(script.parent))
    with contextlib.ExitStack() as stack:
        try:
            session = stack.enter_context(enter())
        except (ImportError, ValueError) as error:
            raise Bad(str(error)) from None
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Exception as error:
            traceback.print_exception(error.with_traceback(_within(error.__traceback__, str(script))))
            return 1
    return EXIT.get(session.verdict, 0)


def _within(trace, script: str):
    """The traceback, starting at the script's first frame."""
    at = trace
    while at is not None and at.tb_frame.f_code.co_filename != script:
        at = at.tb_next
    return at or trace
