"""The commands, and the one place that turns exceptions into exit codes."""

import importlib
import os
import re
import sys
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tirxlab.artifact import ArtifactError
from tirxlab.cli.common import REFERENCE, ROOT, UserError, fold, notes, shown
from tirxlab.cli.watch import STOPPED
from tirxlab.devices import DeviceError
from tirxlab.steps import StepError, UntouchedStep

# What `./lab --help` says of each command; the command's own help says more.
OWN = {
    "demo": "run finished kernels on the simulator, and one with a mistake",
    "test": "run the tests",
    "check": "build and run a step, and explain what is wrong",
    "progress": "show where you stand: steps, attempts, points",
    "hint": "give the next hint for a step, never the answer",
    "inspect": "show a step's CUDA, PTX, SASS or resources",
    "show": "draw a step's tiles, memory, roles and barriers",
    "trace": "draw what can overlap in a run, and who waits",
    "predict": "predict a step's time on a B200, and what bounds it",
    "compare": "put steps side by side",
    "bench": "measure speed on a GPU",
    "doctor": "say what this machine can do and what to install",
    "score": "apply the public rubric",
    "handin": "write handin.tar",
    "reset": "put a step back to its skeleton",
    "port": "rewrite the imports of a preview-wheel kernel",
}
MORE = "instructor.commands"  # a package with the instructor's; the handout does not have it

APP_OPTIONS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
HELP = (
    "Ten progressive Blackwell GEMM kernels in TIRX. First time here: `./lab doctor`, then `./lab demo`. "
    "Write step 1 in gemm_kernels.py, then `./lab check`. S is a step (1..10, `all`, or `1,3,5`)."
)


def commands() -> dict[str, str]:
    """Name -> summary of every command in this copy of the lab."""
    return OWN | _more()


def _more() -> dict[str, str]:
    there = ROOT.joinpath(*MORE.split(".")).is_dir()
    return importlib.import_module(MORE).SUMMARIES if there else {}


def load(name: str):
    """The command of one file; imported only on use, because most need numba or TVM."""
    folder = "tirxlab.cli" if name in OWN else MORE
    module = importlib.import_module(f"{folder}.{name.replace('-', '_')}")
    single = typer.Typer(**APP_OPTIONS)
    options = getattr(module, "COMMAND_OPTIONS", {})
    single.command(name, short_help=commands()[name], **options)(module.run)
    return typer.main.get_command(single)


class Commands(TyperGroup):
    """A group whose commands are imported when they are called; its help reads their summaries."""

    def list_commands(self, context) -> list[str]:
        return list(commands())

    def get_command(self, context, name: str):
        if name in commands():
            return load(name)
        near = get_close_matches(name, commands(), cutoff=0.65)
        return context.fail(f"no command {name!r}" + (f"; did you mean {near[0]}?" if near else ""))

    def format_commands(self, context, formatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(commands().items()))


def build_app() -> typer.Typer:
    app = typer.Typer(name="lab", help=HELP, cls=Commands, **APP_OPTIONS)
    app.callback(help=HELP, cls=Commands)(callback)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status; never shows a traceback for bad input."""
    command = typer.main.get_command(build_app())
    try:
        arguments = sys.argv[1:] if arguments is None else arguments
        arguments = ["--help"] if arguments in ([], ["help"]) else arguments
        status = command.main(arguments, prog_name="lab", standalone_mode=False)
    except UntouchedStep as error:
        return complain(str(error) + solutions_hint(), status=1)
    except (UserError, StepError, DeviceError, ArtifactError) as error:
        return complain(fold(str(error)))
    except (typer.Abort, KeyboardInterrupt):
        return STOPPED  # watch.py prints the message
    except MemoryError as error:
        return complain(f"not enough memory: {fold(str(error)) or 'take a smaller --size'}")
    except BrokenPipeError:
        # `./lab inspect 7 | head` closes our output early: no error, and the flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:  # not about a file that the user named: a fault in the lab
            raise
        return complain(f"{error.filename}: {error.strerror}")
    except Exception as error:
        message_of = getattr(error, "format_message", None)  # of click's errors, under any vendored name
        if message_of is None:
            raise
        context, about = getattr(error, "ctx", None), getattr(getattr(error, "param", None), "help", "")
        path = context.command_path if context else "lab"
        said = fold(message_of())
        if said.startswith("Missing argument") and about:
            said = f"{said.rstrip('.')}: {about}"
        return complain(f"{said} (see ./{path} --help)")
    return status if isinstance(status, int) else 0


def solutions_hint() -> str:
    """What to do about an untouched step: write it, or run the solution where this copy has the solutions."""
    write = "; fill in its TODOs in gemm_kernels.py, its page is in docs/steps/"
    return write + (f"; or run the solution: --kernels {shown(REFERENCE)}" if REFERENCE.exists() else "")


def version(wanted: bool) -> None:
    """`./lab --version`: the lab's version, from tirxlab's pyproject.toml."""
    if wanted:
        text = (ROOT / "packages" / "tirxlab" / "pyproject.toml").read_text(encoding="utf-8")
        print("lab", *re.findall(r'^version = "(.+)"', text, re.MULTILINE))
        raise typer.Exit(0)


def callback(
    about: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="show the version and exit")
    ] = False,
) -> None:
    """The options that come before the name of a command."""


def complain(message: str, status: int = 2) -> int:
    notes().print(f"lab: {message}", markup=False)
    return status
