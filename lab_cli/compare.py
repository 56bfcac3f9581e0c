"""`./lab compare S S..`: steps side by side at one size: resources, launch, and what one run did."""

from collections.abc import Callable
from typing import Annotated

import typer
from rich.table import Table

from lab_cli.common import (
    DeviceOption,
    JsonOption,
    KernelsOption,
    UserError,
    kernels_file,
    output,
    parse_steps,
    print_json,
    usable_device,
)
from lab_cli.runs import require_written
from tirxlab.steps import builder, parse_size, size_text

# What to show, and how to read it off an artifact and a run.
ROWS: dict[str, Callable] = {
    "CTAs": lambda artifact, run: product(artifact.grid),
    "CTAs in a cluster": lambda artifact, run: product(artifact.cluster),
    "threads in a CTA": lambda artifact, run: product(artifact.block),
    "registers a thread": lambda artifact, run: artifact.registers,
    "bytes spilled": lambda artifact, run: artifact.spills,
    "dynamic shared bytes": lambda artifact, run: artifact.shared_bytes,
    "verdict": lambda artifact, run: run.verdict,
    "warp instructions": lambda artifact, run: run.stats.get("warp_instructions", "-"),
    "bytes by TMA": lambda artifact, run: run.stats.get("tma_bytes", "-"),
    "tensor operations": lambda artifact, run: run.stats.get("tensor_operations", "-"),
}


def run(
    steps: Annotated[list[str], typer.Argument(metavar="S S..", help="two steps or more, or all")],
    size: Annotated[str, typer.Option("--size", metavar="SIZE", help="1024 or MxNxK")] = "1024",
    kernels: KernelsOption = None,
    device: DeviceOption = None,
    json: JsonOption = False,
) -> None:
    """Put steps side by side at one size: resources, launch shape, what a run did, and its time on a GPU."""
    path, shape = kernels_file(kernels), parse_size(size)
    numbers = [number for text in steps for number in parse_steps(text)]
    if len(numbers) < 2:
        raise UserError("compare takes two steps or more, for example ./lab compare 7 8")
    require_written(path, numbers)
    device = usable_device(device)
    columns = {number: measure(path, number, shape, device) for number in dict.fromkeys(numbers)}
    if json:
        print_json({"size": size_text(shape), "steps": columns})
        return
    made = Table("", *(f"step {number}" for number in columns), box=None, pad_edge=False)
    for column in made.columns[1:]:
        column.justify = "right"
    for name in next(iter(columns.values())):
        made.add_row(name, *(show(column[name]) for column in columns.values()))
    output().print(f"at {size_text(shape)}", markup=False)
    output().print(made)


def measure(path, step: int, size: tuple[int, int, int], device: str | None) -> dict:
    """One step's column; UserError if the step does not take the size."""
    import utils

    try:
        kernel = builder(path, step)(*size)
    except ValueError as error:
        raise UserError(f"step {step} at {size_text(size)}: {error}") from None
    run, artifact = utils.launch(kernel, *utils.prepare_data(*size, seed=0, device=device), device=device)
    column = {name: read(artifact, run) for name, read in ROWS.items()}
    ms, _ = (None, None) if run.stats else utils.benchmark(artifact, *size, device=device)
    return column | {"milliseconds": ms if ms is not None else "not measured"}


def product(shape: tuple[int, ...]) -> int:
    result = 1
    for extent in shape:
        result *= extent
    return result


def show(value) -> str:
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)
    )
