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
    choose_written,
    fold,
    kernels_file,
    left_out,
    output,
    parse_steps,
    print_json,
    usable_device,
)
from tirxlab.steps import builder, parse_size, size_text

SIDE_BY_SIDE = 4  # steps in a table, so that it fits on 80 columns
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
    asked = list(dict.fromkeys(number for text in steps for number in parse_steps(text)))
    if len(asked) < 2:
        raise UserError("compare takes two steps or more, for example ./lab compare 7 8")
    numbers, left = choose_written(path, asked)
    kernels_made = fitting(path, numbers, shape, left)
    device = usable_device(device)
    columns = {number: measure(kernel, shape, device) for number, kernel in kernels_made.items()}
    if json:
        print_json({"size": size_text(shape), "steps": columns, "not_run": left})
        return
    output().print(f"at {size_text(shape)}", markup=False)
    numbers = list(columns)
    for first in range(0, len(numbers), SIDE_BY_SIDE):
        output().print(table({n: columns[n] for n in numbers[first : first + SIDE_BY_SIDE]}))
    if left:
        output().print(left_out(left), markup=False)


def table(columns: dict[int, dict]) -> Table:
    """Steps side by side."""
    made = Table("", *(f"step {number}" for number in columns), box=None, pad_edge=False)
    for column in made.columns[1:]:
        column.justify = "right"
    for name in next(iter(columns.values())):
        made.add_row(name, *(show(column[name]) for column in columns.values()))
    return made


def fitting(path, numbers: list[int], size: tuple[int, int, int], left: dict[int, str]) -> dict:
    """Step -> its kernel at the size; steps that do not take it go to `left`. UserError if none does."""
    kernels = {}
    for number in numbers:
        try:
            kernels[number] = builder(path, number)(*size)
        except ValueError as error:
            if type(error) is not ValueError:  # the kernel itself is wrong
                raise UserError(fold(str(error))) from None
            left[number] = f"at {size_text(size)}: {error}"
    if not kernels:
        raise UserError(f"step {numbers[0]} {left[numbers[0]]}")
    return kernels


def measure(kernel, size: tuple[int, int, int], device: str | None) -> dict:
    """One step's column."""
    import utils

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
