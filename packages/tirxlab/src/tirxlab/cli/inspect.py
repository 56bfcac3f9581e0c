"""`./lab inspect S`: the CUDA, PTX, SASS or resources of a step; the same as inspect_cuda.py."""

import sys
from typing import Annotated

import typer

import inspect_cuda
from tirxlab.cli import tracks
from tirxlab.cli.common import KernelsOption, StepArgument, UserError, fold, kernels_file, parse_step
from tirxlab.steps import UntouchedStep, parse_size


def run(
    step: StepArgument,
    size: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SIZE]", help="1024 or MxNxK [1024; steps 1, 2: one tile]; of a track: [RUNG [SIZE]]"
        ),
    ] = None,
    view: Annotated[str, typer.Option("--as", metavar="VIEW", help="cuda, ptx, sass or regs")] = "cuda",
    body: Annotated[
        bool, typer.Option("--body", help="only the kernel, without the helper functions")
    ] = False,
    lines: Annotated[bool, typer.Option("--lines", help="your file and line before each statement")] = False,
    kernels: KernelsOption = None,
) -> None:
    """Print what the compiler made of a step, as plain text on standard output: `./lab inspect 7 > v7.cu`."""
    words = size or []
    if len(words) > 1 + tracks.is_track(step):
        raise UserError(f"{words[-1]!r} is one argument too many")
    try:
        if tracks.is_track(step):
            text = tracks.inspect(step, words, view, kernels, body=body, lines=lines)
        else:
            number, shape = parse_step(step), parse_size(words[0]) if words else None
            text = inspect_cuda.inspect(kernels_file(kernels), number, shape, view, body=body, lines=lines)
    except UntouchedStep:
        raise
    except ValueError as error:
        if type(error).__name__ not in ("NoKernel", "BuildError", "BuilderError", "KernelError"):
            raise UserError(fold(str(error))) from error
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    sys.stdout.write(text)
    sys.stdout.flush()
