"""The command `ptxsim`: its subcommands, and how bad input is reported (one line, exit code 2)."""

from __future__ import annotations

import sys

import typer

from ptxsim.cli import execute, nvcc, predict, run, scripts, show
from ptxsim.cli.common import Bad
from ptxsim.driver.telling import say
from ptxsim.grid.cores import cores
from ptxsim.version import VERSION

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Runs compiled CUDA kernels (PTX) on the CPU, checks them, and reports what is wrong with them.",
)
OWN_WORDS = {"allow_extra_args": True, "allow_interspersed_args": False}


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ptxsim {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    try:
        cores()
    except ValueError as error:
        raise Bad(str(error)) from None


app.command("exec", context_settings=OWN_WORDS)(execute.command)
app.command("nvcc", context_settings=OWN_WORDS | {"ignore_unknown_options": True}, add_help_option=False)(
    nvcc.command
)
app.command("run")(run.command)
app.command("show")(show.command)
app.command("predict")(predict.command)
for language in scripts.LANGUAGES:
    app.command(language, context_settings=OWN_WORDS)(scripts.command_of(language))


def main() -> None:
    """Runs the command. For bad input it prints one line to stderr and exits with code 2."""
    try:
        code = app(standalone_mode=False)
    except Bad as bad:
        say(f"ptxsim: {bad}")
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except MemoryError:
        say("ptxsim: this computer does not have enough memory for this run")
        code = 2
    except OSError as error:
        say(f"ptxsim: {error.filename or 'a file'}: {error.strerror or error}")
        code = 2
    except Exception as error:
        message_of = getattr(error, "format_message", None)  # of click, which newer versions of typer bundle
        if message_of is None:
            raise
        told = message_of()
        print(told) if "Usage:" in told else say(f"ptxsim: {told}")
        code = 2
    sys.exit(code if isinstance(code, int) else 0)
