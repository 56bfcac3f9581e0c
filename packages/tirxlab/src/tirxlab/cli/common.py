"""What the commands share: paths, options, the syntax of steps and orders, and how results are printed."""

import importlib.util
import json
import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tirxlab.checkout import ROOT
from tirxlab.steps import (
    STEPS,
    UntouchedStep,
    is_untouched,
    read_text,
    refuse_syntax_errors,
    sections,
)

REFERENCE = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
STUDENT = ROOT / "gemm_kernels.py"

StepsArgument = Annotated[
    str, typer.Argument(metavar="S", help="a step 1..10, several as 1,3,5 or 1-4, or all")
]
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
    typer.Option("--order", metavar="ORDER", help="how async work completes: program, adverse or a seed"),
]
OneOrderOption = Annotated[
    str | None,
    typer.Option(
        "--order", metavar="ORDER", help="only this order: program, adverse or a seed [default: both]"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]


class UserError(ValueError):
    """Bad input; the message says in one line what is wrong and what to do. Exit status 2."""


def parse_steps(text: str) -> list[int]:
    """`all`, `3`, `1-4` or `1,3,5` -> the steps in the order given, each once; UserError for other text."""
    if text == "all":
        return list(STEPS)
    ends = [re.fullmatch(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?", part) for part in text.split(",")]
    if not all(ends):
        raise UserError(f"{text!r} is not a step: write 1 to 10, several as 1,3,5 or 1-4, or all") from None
    steps = [step for end in ends if end for step in range(int(end[1]), int(end[2] or end[1]) + 1)]
    if not steps:
        raise UserError(f"{text!r} names no step: write the smaller number first")
    for step in steps:
        if step not in STEPS:
            raise UserError(f"step {step} does not exist; the steps are 1 to 10")
    return list(dict.fromkeys(steps))


def parse_step(text: str) -> int:
    """The one step that the text names; UserError unless it is exactly one."""
    steps = parse_steps(text)
    if len(steps) != 1:
        raise UserError(f"this command takes one step, not {text!r}")
    return steps[0]


def parse_order(text: str) -> str | int:
    """`program`, `adverse`, `all`, or a seed as an int; UserError for other text."""
    if text in ("program", "adverse", "all"):
        return text
    if text.isdigit():
        return int(text)
    raise UserError(f"{text!r} is not an order: write program, adverse, all, or a whole number as a seed")


def choose_written(path: Path, steps: list[int]) -> tuple[list[int], dict[int, str]]:
    """(the steps that are written, the others -> why they cannot run).

    Raises UntouchedStep if none is written, StepError if the file cannot be loaded.
    """
    text, left = source_text(path), {}
    for step in steps:
        if is_untouched(text, step):
            left[step] = "not implemented yet"
        elif len(steps) > 1 and not re.search(rf"\bhgemm_v{step}\b", text):
            left[step] = f"{path.name} has no hgemm_v{step}(M, N, K)"
    if len(left) == len(steps):
        if len(steps) > 1:
            raise UntouchedStep(f"none of the steps {steps_text(steps)} is implemented yet")
        raise UntouchedStep(f"step {steps[0]} is not implemented yet")
    return [step for step in steps if step not in left], left


def source_text(path: Path) -> str:
    """The text of a kernels file that splits into steps; StepError, with the line, for any other."""
    text = read_text(path)
    refuse_syntax_errors(text, path.name)
    sections(text)
    return text


def left_out(left: dict[int, str]) -> str:
    """One line for each reason: `not run: steps 3, 5-10 (not implemented yet)`."""
    reasons: dict[str, list[int]] = {}
    for step, reason in left.items():
        reasons.setdefault(reason, []).append(step)
    plural = {True: "steps", False: "step"}
    return "\n".join(
        f"not run: {plural[len(some) > 1]} {steps_text(some)} ({reason})" for reason, some in reasons.items()
    )


def steps_text(steps: list[int]) -> str:
    """[3, 5, 6, 7] -> `3, 5-7`."""
    runs: list[list[int]] = []
    for step in sorted(steps):
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def kernels_file(path: Path | None, *, reference: bool = False) -> Path:
    """The kernels file to use: the one named, else (with `reference`) the solutions, else the student's."""
    if path is None:
        path = REFERENCE if reference and REFERENCE.exists() else STUDENT
    if not path.is_file():
        remedy = "get the skeletons with ./lab reset all, or name" if path == STUDENT else "name"
        what = "a folder, not a file" if path.is_dir() else "no such file"
        raise UserError(f"{path}: {what}; {remedy} a kernels file with --kernels FILE")
    return path


def shown(path: Path) -> str:
    """A path as a person would write it: relative to the lab's folder if it lies inside."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def usable_device(name: str | None) -> str:
    """The name of the device to use; DeviceError or UserError if it cannot be used here."""
    from tirxlab.devices import device_name

    device = device_name(name)
    if device == "cuda":
        from tirxlab.devices import driver

        driver.api()
        if importlib.util.find_spec("torch") is None:
            raise UserError("--device cuda needs torch: .venv/bin/python -m pip install 'torch>=2.9'")
    return device


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str))


class Paper(Console):
    """A console that indents the continuation of a plain line too long for the terminal."""

    def print(self, *objects, **options) -> None:
        if self.is_terminal and options.get("markup") is False:
            objects = tuple(hang(said, self.width) if isinstance(said, str) else said for said in objects)
        super().print(*objects, **options)


def hang(text: str, width: int) -> str:
    """A text wrapped at `width`; continuations are indented four spaces more than the line they continue."""
    made: list[str] = []
    for line in text.split("\n"):
        inside = " " * (len(line) - len(line.lstrip()) + 4)
        keep = textwrap.TextWrapper(
            max(width, 20), subsequent_indent=inside, break_long_words=False, break_on_hyphens=False
        )
        made += keep.wrap(line) or [""]
    return "\n".join(made)


def output() -> Console:
    """The console for results: colours only on a terminal (rich decides), no wrapping into a pipe."""
    return Paper(soft_wrap=not sys.stdout.isatty(), highlight=False)


def notes() -> Console:
    """The console for progress and remarks, on standard error."""
    return Paper(stderr=True, soft_wrap=not sys.stderr.isatty(), highlight=False)


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically; if that fails, UserError, and nothing is left behind."""
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "is a folder")
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            made = Path(file.name)
            try:
                file.write(data)
                file.flush()
                made.chmod(path.stat().st_mode if path.exists() else 0o666 & ~current_umask())
                os.replace(made, path)
            except BaseException:
                made.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def current_umask() -> int:
    """The process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def fold(message: str) -> str:
    """A message with all its white space folded, on one line."""
    return " ".join(message.split())
