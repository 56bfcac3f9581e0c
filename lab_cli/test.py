"""`./lab test`: in the project, its style checks and its own tests; in a handout, the student's tests.

pytest runs last and in this process's place, so that its closing line ends the output.
"""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from lab_cli.common import ROOT, DeviceOption, KernelsOption, kernels_file

COMMAND_OPTIONS = {"context_settings": {"ignore_unknown_options": True, "allow_extra_args": True}}
STYLE = (["check", "--quiet", "."], ["format", "--check", "--quiet", "."])


def run(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="the slow tests too")] = False,
    full: Annotated[bool, typer.Option("--full", help="sizes over 1024 too, also on the simulator")] = False,
    kernels: KernelsOption = None,
    device: DeviceOption = None,
) -> None:
    """Run the tests. The rest is for pytest: `./lab test tests/test_step03.py -x`, `./lab test -k 1024`."""
    project = (ROOT / "dev" / "tests").is_dir()
    styled = not project or check_style()
    arguments = pytest_arguments(project, kernels_file(kernels, reference=project), context.args)
    arguments += ["-m", ""] if everything else []
    arguments += ["--full"] if full or everything else []
    arguments += ["--device", device] if device else []
    status = subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT).returncode
    if not styled:
        print("lab: the style check failed, see the top of this output", file=sys.stderr)
    raise typer.Exit(0 if status == 0 and styled else 1)


def check_style() -> bool:
    """ruff's two checks over the whole project; says how to mend what it finds."""
    good = True
    for arguments in STYLE:
        good &= subprocess.run([sys.executable, "-m", "ruff", *arguments], cwd=ROOT).returncode == 0
    if not good:
        hint = "lab: mend with .venv/bin/ruff check --fix . && .venv/bin/ruff format ."
        print(hint, file=sys.stderr)
    return good


def pytest_arguments(project: bool, kernels: Path, extra: list[str]) -> list[str]:
    """Both suites in the project (the student's one against the reference), unless the user named tests."""
    named = [argument for argument in extra if (ROOT / argument.split("::")[0]).exists()]
    suites = [] if named else (["dev/tests"] if project else []) + ["tests"]
    about_kernels = ["--kernels", str(kernels)] if uses_student_tests(named or suites) else []
    return [*suites, *about_kernels, *extra]


def uses_student_tests(paths: list[str]) -> bool:
    """Whether tests/conftest.py, which owns the option --kernels, takes part in this run."""
    return any(Path(path.split("::")[0]).parts[:1] == ("tests",) for path in paths)
