"""`ptxsim exec PROGRAM ARGS`: runs an unmodified CUDA program on the simulator, with a verdict per launch."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import typer

from ptxsim.cli.common import CHECKS, EXIT, ORDER, Bad, check_output, order_of
from ptxsim.driver.telling import Teller, announce_compilation, patience, say, worst


def command(
    context: typer.Context,
    program: str = typer.Argument(..., help="The program, followed by its own arguments."),
    chip: str = typer.Option(
        "auto", help="The chip that the program sees: a100, h200, b200, rtx5090; auto: as its PTX needs."
    ),
    order: str = ORDER,
    checks: bool = CHECKS,
    first: int = typer.Option(
        0, "--check-first", min=0, help="Check only the first N launches of each kernel; 0: all."
    ),
    jobs: int = typer.Option(0, min=0, help="Processes; 0: one per core if that is faster."),
    most: int = typer.Option(
        0, "--max-instructions", min=0, help="Stop a cluster after N warp instructions; 0: 4 G."
    ),
    quiet: bool = typer.Option(
        False, "--quiet", "-q", help="Only findings and the summary, no line per launch."
    ),
    json_file: Path | None = typer.Option(
        None, "--json", help="Write all launches and findings to this file."
    ),
) -> int:
    """Run an unmodified CUDA program and check every kernel that it launches.

    Exit code: the program's own if it is not 0. Otherwise 1 if a launch has an error, 3 if a kernel uses
    something that is not modelled, else 0.
    """
    path = shutil.which(program)
    if path is None:
        raise Bad(f"{program} does not exist or is not executable")
    from ptxsim.driver.build import BuildError, library
    from ptxsim.driver.chips import CHIPS

    if chip != "auto" and chip not in CHIPS:
        raise Bad(f"--chip must be one of {', '.join(CHIPS)}, auto (got {chip!r})")
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
        say("ptxsim: times printed by the program are simulation times, not those of a chip")
    if json_file:
        from ptxsim.report.formats import launches_json

        json_file.write_text(launches_json(device.records))
    if code:
        return code if code > 0 else 128 - code
    return EXIT.get(worst(r.verdict for r in device.records), 0)


# Makes CuPy compile to PTX, and reduce with kernels it compiles instead of the machine code in its wheel
_CUPY = {"CUPY_COMPILE_WITH_PTX": "1", "CUPY_ACCELERATORS": ""}


def environment(folder: Path, program: Path) -> dict[str, str]:
    """The environment in which a program loads the stand-in for CUDA's driver and runtime."""
    paths = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    preload = [str(folder / "libcuda.so.1"), os.environ.get("LD_PRELOAD", "")]
    return {
        **_CUPY,
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
        "LD_PRELOAD": ":".join(filter(None, preload)),
        "PTXSIM_CUDART": "12" if b"cudaGetDeviceProperties_v2" in program.read_bytes() else "13",
    }


def chip_for(program: Path) -> str:
    """The chip that the newest PTX in a program is for; h200 if the program holds no PTX."""
    from ptxsim.driver.fatbin import PTX, inside

    targets = {i.target for i in inside(program.read_bytes()) if i.kind == PTX}
    newest = max((arch for arch, _ in targets), default=0)
    if newest >= 100:
        return "rtx5090" if newest >= 120 else "b200"
    special = {arch for arch, feature in targets if feature}
    return "a100" if special and max(special) < 90 else "h200"
