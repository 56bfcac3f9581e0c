"""`ptxsim exec PROGRAM ARGS`: an unmodified CUDA program on the simulator, with a verdict for each launch."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import typer

from ptxsim.cli.common import EXIT, Bad, check_output, order_of
from ptxsim.driver.telling import Teller, announce_compilation, patience, say, worst


def command(
    context: typer.Context,
    program: str = typer.Argument(..., help="The program, then its own arguments."),
    chip: str = typer.Option(
        "auto", help="The chip that the program sees: a100, h200, b200; auto: by its PTX."
    ),
    order: str = typer.Option("program", help="program, adverse (as late as allowed) or a seed."),
    checks: bool = typer.Option(True, help="Look for races, missing fences and so on; without it, only run."),
    first: int = typer.Option(0, "--check-first", min=0, help="Check only so many launches of each kernel."),
    jobs: int = typer.Option(0, min=0, help="Processes; 0: one per core where that pays."),
    most: int = typer.Option(0, "--max-instructions", min=0, help="Give a cluster up after so many; 0: 4 G."),
    quiet: bool = typer.Option(
        False, "--quiet", "-q", help="No line per launch, only findings and the summary."
    ),
    json_file: Path | None = typer.Option(
        None, "--json", help="Write all launches and findings to this file."
    ),
) -> int:
    """Run an unmodified CUDA program and check every kernel that it launches.

    Exit code: the program's own if it is not 0; else 1 for errors, 3 for kernels that were not modelled, 0.
    """
    path = shutil.which(program)
    if path is None:
        raise Bad(f"{program} is not there, or cannot be run")
    from ptxsim.driver.build import BuildError, library
    from ptxsim.driver.chips import CHIPS

    if chip != "auto" and chip not in CHIPS:
        raise Bad(f"--chip is one of {', '.join(CHIPS)}, auto (got {chip!r})")
    try:
        folder = library()
    except BuildError as error:
        raise Bad(str(error)) from None
    wanted = order_of(order)
    check_output(json_file)
    chip = chip if chip != "auto" else chip_for(Path(path))
    announce_compilation()
    from ptxsim.driver.device import Device, Options
    from ptxsim.driver.server import Server

    device = Device(Options(CHIPS[chip], checks, wanted, first, jobs or None, most or None))
    teller = Teller(quiet)
    waiting = contextlib.nullcontext if quiet else patience
    server = Server(device, lambda line: say(f"ptxsim: {line}"), teller.told, waiting)
    try:
        code = server.run([path, *context.args], environment(folder, Path(path)))
    except OSError as error:
        raise Bad(f"{program} cannot be run: {error.strerror or error}") from None
    teller.summary(device.records, device.options.chip.name, f"; the program ended with {code}")
    if device.records:
        say("ptxsim: times that the program printed are those of the simulation, not of a chip")
    if json_file:
        from ptxsim.report.formats import launches_json

        json_file.write_text(launches_json(device.records))
    if code:
        return code if code > 0 else 128 - code
    return EXIT.get(worst(r.verdict for r in device.records), 0)


# CuPy compiles to PTX, and does sums by kernels that it compiles, not by machine code of its wheel
_CUPY = {"CUPY_COMPILE_WITH_PTX": "1", "CUPY_ACCELERATORS": ""}


def environment(folder: Path, program: Path) -> dict[str, str]:
    """The environment in which a program finds the stand-in."""
    paths = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    preload = [str(folder / "libcuda.so.1"), os.environ.get("LD_PRELOAD", "")]
    return {
        **_CUPY,
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
        "LD_PRELOAD": ":".join(filter(None, preload)),
        "PTXSIM_CUDART": "12" if _needs(program, b"cudaGetDeviceProperties_v2") else "13",
    }


def _needs(program: Path, name: bytes) -> bool:
    return name in program.read_bytes()


def chip_for(program: Path) -> str:
    """The chip that the newest PTX in a program is for; an H200 where it holds none."""
    from ptxsim.driver.fatbin import PTX, inside

    targets = {i.target for i in inside(program.read_bytes()) if i.kind == PTX}
    if any(arch >= 100 for arch, _ in targets):
        return "b200"
    special = {arch for arch, feature in targets if feature}
    return "a100" if special and max(special) < 90 else "h200"
