"""`ptxsim triton SCRIPT ARGS`: a Python program whose Triton kernels run on the simulator."""

from __future__ import annotations

import contextlib
import runpy
import sys
import traceback
from pathlib import Path

import typer

from ptxsim.cli.common import EXIT, Bad, order_of


def command(
    context: typer.Context,
    script: Path = typer.Argument(..., help="The Python file, then its own arguments."),
    chip: str = typer.Option("h200", help="The chip that Triton compiles for: a100, h200, b200."),
    order: str = typer.Option("program", help="program, adverse (as late as allowed) or a seed."),
    checks: bool = typer.Option(True, help="Look for races, missing fences and so on; without it, only run."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No line per launch."),
) -> int:
    """Run a Python program with its Triton kernels on the simulator, on torch tensors of the CPU.

    Exit code: 1 for an error, 3 for kernels that were not modelled; the program's own code where it exits
    with one.
    """
    if not script.is_file():
        raise Bad(f"{script} is not there")
    from ptxsim.plugins.triton import triton

    sys.argv = [str(script), *context.args]
    sys.path.insert(0, str(script.parent))
    with contextlib.ExitStack() as stack:
        try:
            session = stack.enter_context(triton(chip, order_of(order), checks, quiet))
        except (ImportError, ValueError) as error:
            raise Bad(str(error)) from None
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Exception as error:
            traceback.print_exception(error.with_traceback(within(error.__traceback__, str(script))))
            return 1
    return EXIT.get(session.verdict, 0)


def within(trace, script: str):
    """The traceback from the script's first frame on."""
    at = trace
    while at is not None and at.tb_frame.f_code.co_filename != script:
        at = at.tb_next
    return at or trace
