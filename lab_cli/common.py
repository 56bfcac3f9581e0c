"""What the commands share: where things are, how steps and sizes are written, how results are printed."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tirxlab.steps import STEPS

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
STUDENT = ROOT / "gemm_kernels.py"

StepsArgument = Annotated[str, typer.Argument(metavar="S", help="a step 1..10, several as 1,3,5, or all")]
StepArgument = Annotated[str, typer.Argument(metavar="S", help="a step 1..10")]
SizesOption = Annotated[
    list[str] | None,
    typer.Option("--size", metavar="SIZE", help="1024 or MxNxK; may be repeated"),
]
KernelsOption = Annotated[
    Path | None, typer.Option("--kernels", metavar="FILE", help="kernels file [default: gemm_kernels.py]")
]
DeviceOption = Annotated[
    str | None,
    typer.Option("--device", metavar="NAME", help="sim or cuda [default: $LAB_DEVICE, else by machine]"),
]
OrderOption = Annotated[
    str,
    typer.Option("--order", metavar="ORDER", help="order in which async work ends: program, adverse, a seed"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]


class UserError(ValueError):
    """Bad input: the message is one line that says what is wrong and what to do. Exit status 2."""


def parse_steps(text: str) -> list[int]:
    """`all`, `3` or `1,3,5` -> the steps in the order given, each once."""
    if text == "all":
        return list(STEPS)
    try:
        steps = [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"{text!r} is not a step: write 1 to 10, several as 1,3,5, or all") from None
    for step in steps:
        if step not in STEPS:
            raise UserError(f"step {step} does not exist; the steps are 1 to 10")
    return list(dict.fromkeys(steps))


def parse_step(text: str) -> int:
    """Exactly one step."""
    steps = parse_steps(text)
    if len(steps) != 1:
        raise UserError(f"this command takes one step, not {text!r}")
    return steps[0]


def parse_order(text: str) -> str | int:
    """`program`, `adverse` or a seed."""
    if text in ("program", "adverse"):
        return text
    if text.isdigit():
        return int(text)
    raise UserError(f"{text!r} is not an order: write program, adverse, or a whole number as a seed")


def kernels_file(path: Path | None, *, reference: bool = False) -> Path:
    """The kernels file to use: the one named, else (with `reference`) the solutions, else the student's."""
    if path is None:
        path = REFERENCE if reference and REFERENCE.exists() else STUDENT
    if not path.is_file():
        raise UserError(f"{path}: no such file; name a kernels file with --kernels FILE")
    return path


def usable_device(name: str | None) -> str:
    """The name of the device to use; DeviceError or UserError if it cannot be used here."""
    from tirxlab.devices import driver, get_device

    device = get_device(name).NAME
    if device == "cuda":
        driver.api()
        if importlib.util.find_spec("torch") is None:
            raise UserError("--device cuda needs torch: .venv/bin/python -m pip install 'torch>=2.9'")
    return device


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str))


def output() -> Console:
    """For results; colours only on a terminal (rich decides), and no wrapping of long lines into a pipe."""
    return Console(soft_wrap=not sys.stdout.isatty(), highlight=False)


def notes() -> Console:
    """For progress and remarks, on standard error."""
    return Console(stderr=True, highlight=False)


def fold(message: str) -> str:
    """A message on one line."""
    return " ".join(message.split())
