"""`ptxsim predict FILE`: predicts the time of one launch on an H200 or a B200. Never a measurement."""

from __future__ import annotations

from pathlib import Path

import typer

from ptxsim.cli import common
from ptxsim.cli.common import Bad
from ptxsim.cli.files import module_of
from ptxsim.cli.run import entry_of
from ptxsim.cli.specs import argument, triple
from ptxsim.driver.telling import announce_compilation, short


def command(
    file: Path = common.FILE,
    args: list[str] = typer.Argument(None, help="The kernel's arguments, as for `ptxsim run`."),
    entry: str = common.ENTRY,
    grid: str = common.GRID,
    block: str = common.BLOCK,
    cluster: str = common.CLUSTER,
    shared: int = common.SHARED,
    arch: str = common.ARCH,
    chip: str = typer.Option("", help="h200 or b200; by default the chip that the PTX is for."),
    registers: int = typer.Option(0, min=0, max=255, help="Registers per thread, as ptxas -v reports."),
) -> int:
    """Predict the time of one launch. The figure comes from a model; nothing is measured."""
    from ptxsim.timing.assembler import assembled
    from ptxsim.timing.chip import CHIPS
    from ptxsim.timing.chip import chip as chip_model
    from ptxsim.timing.predict import predict, sample

    if chip and chip not in CHIPS:
        raise Bad(f"--chip must be one of {', '.join(CHIPS)} (got {chip!r})")
    extents = triple(grid, "--grid"), triple(block, "--block"), triple(cluster, "--cluster")
    module, text = module_of(file, arch)
    name = entry_of(module, entry, file)
    values = [argument(word) for word in args or []]
    announce_compilation()
    chip = chip or ("b200" if module.module.target[0].startswith("sm_10") else "h200")
    model = chip_model(chip)
    try:
        launch = module.prepare(name, *extents, shared, values)
        assembly = assembled(text, model.arch)
        told = predict(sample(launch, registers, sms=int(model.sms), assembly=assembly), model)
    except ValueError as error:
        raise Bad(str(error)) from None
    bound = next(iter(told.spent), "launching")
    time = f"{told.seconds * 1e3:.4g} ms predicted, most of it {bound}"
    print(f"{short(name)} on an {chip.upper()}: {time}; not measured")
    for note in told.notes:
        print(f"  {note}")
    return 0
