"""`./lab test`: in the project, its style checks and its own tests; in a handout, the student's tests.

pytest runs last, so that its closing line ends the output.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.checkout import environment
from tirxlab.cli.common import (
    REFERENCE,
    ROOT,
    DeviceOption,
    KernelsOption,
    UserError,
    choose_written,
    kernels_file,
    left_out,
    notes,
    parse_steps,
)
from tirxlab.steps import STEPS, UntouchedStep

COMMAND_OPTIONS = {"context_settings": {"ignore_unknown_options": True, "allow_extra_args": True}}
# pytest's options whose value is the next argument, which may be a number.
WITH_VALUE = {
    "-n",
    "-k",
    "-m",
    "-p",
    "-o",
    "-c",
    "-r",
    "-W",
    "--maxfail",
    "--durations",
    "--timeout",
    "--order",
}
WITH_VALUE |= {"--durations-min", "--deselect", "--ignore", "--tb", "--verbosity", "--junit-xml"}
USAGE = 4  # pytest's exit status for unknown options
PARTS = {  # of the project, by their names in `./lab test ptxsim`
    "ptxsim": "packages/ptxsim/tests",
    "tirxlab": "packages/tirxlab/tests",
    "instructor": "instructor/tests",
    "research": "research/tests",
}
STYLE = (["check", "--quiet", "."], ["format", "--check", "--quiet", "."])


def run(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="the slow tests and the large sizes too")] = False,
    full: Annotated[bool, typer.Option("--full", help="sizes over 1024 too, also on the simulator")] = False,
    kernels: KernelsOption = None,
    device: DeviceOption = None,
) -> None:
    """Run the tests of the steps named (`./lab test 1`, `./lab test 1,3`), else of all written steps.

    Steps that are still skeletons are listed (exit status 1).
    In the project, `./lab test ptxsim` runs the tests of one part: ptxsim, tirxlab, instructor or research.
    Other arguments go to pytest: `./lab test 3 -x`, `./lab test -k 1024`.
    """
    project = (ROOT / "research").is_dir()
    given = step_files(context.args)
    styled = not project or bool(given) or check_style()
    left: dict[int, str] = {}
    if not project:
        try:
            given, left = written_first(kernels_file(kernels), given)
        except UntouchedStep:
            print("no step is written yet: begin with docs/steps/step01.md, then ./lab check 1")
            raise typer.Exit(0) from None
    arguments = pytest_arguments(given, kernels, project)
    workers = parallel(given) if project else []
    arguments += workers
    arguments += ["-m", ""] if everything else []
    arguments += ["--full"] if full or everything else []
    arguments += ["--device", device] if device else []
    command = [sys.executable, "-m", "tirxlab.cli.pytest_child", *arguments]
    status = subprocess.run(command, cwd=ROOT, env=surroundings(bool(workers))).returncode
    if not styled:
        print("lab: the style check failed, see the top of this output", file=sys.stderr)
    raise typer.Exit(2 if status == USAGE else 0 if status == 0 and styled and not left else 1)


def written_first(path: Path, given: list[str]) -> tuple[list[str], dict[int, str]]:
    """(arguments for pytest, step left out -> why); without a test named: the tests of the written steps."""
    if any((ROOT / argument.split("::")[0]).exists() for argument in given if argument):
        return given, {}
    steps, left = choose_written(path, list(STEPS))
    if left:
        notes().print(left_out(left), markup=False)
    return [*step_files([",".join(map(str, steps))]), *given], left


def step_files(arguments: list[str]) -> list[str]:
    """The arguments for pytest, with steps (`1`, `1,3`, `all`) and parts (`ptxsim`) as files and folders.

    UserError for a number that is not a step. The value of an option such as `-n 2` is left alone.
    """
    made: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        is_step = re.fullmatch(r"\d+(,\d+)*|all", argument)
        if before in WITH_VALUE or not (is_step or argument in PARTS):
            made.append(argument)
        elif is_step:
            made += [f"tests/test_step{step:02}.py" for step in parse_steps(argument)]
        else:
            made.append(part(argument))
    return made


def part(name: str) -> str:
    """The folder with the tests of a part of the project; UserError where it is missing, as in a handout."""
    if not (ROOT / PARTS[name]).is_dir():
        raise UserError(f"the tests of {name} are not in this copy of the lab; `./lab test` runs yours")
    return PARTS[name]


def parallel(named: list[str]) -> list[str]:
    """pytest-xdist's options for a run of the whole project, or of parts of it: one worker per core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    large = set(named) <= set(PARTS.values())
    return ["-n", str(cores), "--dist", "worksteal"] if large and cores > 1 else []


def surroundings(workers: bool) -> dict[str, str]:
    """The environment of pytest. With a worker on every core numpy's matrix products use one thread each:
    several threads would only wait for one another, which took three quarters of the time of some tests.
    """
    return {"OPENBLAS_NUM_THREADS": "1", **environment()} if workers else environment()


def check_style() -> bool:
    """Whether ruff's two checks pass over the whole project; if not, prints the command that fixes them."""
    good = True
    for arguments in STYLE:
        good &= subprocess.run([sys.executable, "-m", "ruff", *arguments], cwd=ROOT).returncode == 0
    if not good:
        hint = "lab: fix with .venv/bin/ruff check --fix . && .venv/bin/ruff format ."
        print(hint, file=sys.stderr)
    return good


def pytest_arguments(extra: list[str], kernels: Path | None, project: bool) -> list[str]:
    """pytest's arguments; it picks its own tests if none is named. The project tests the reference."""
    if kernels:
        return ["--kernels", str(kernels_file(kernels).resolve()), *extra]
    named = [Path(argument.split("::")[0]) for argument in extra]
    if project and REFERENCE.exists() and any(path.parts[:1] == ("tests",) for path in named):
        return ["--kernels", str(REFERENCE), *extra]
    return list(extra)
