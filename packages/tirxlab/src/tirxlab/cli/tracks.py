"""The tracks on the command line: `./lab check|trace|inspect|bench hopper|ampere [RUNG]`.

A rung is taken from the student's file if it is written there, else from the solution if this copy has it.
"""

from __future__ import annotations

import hashlib
import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tirxlab.builders import misfit
from tirxlab.cli.common import ROOT, UserError, fold, notes, output, print_json, shown
from tirxlab.explain.builder_slips import guarded
from tirxlab.steps import StepError, UntouchedStep, load_kernels, parse_size, size_text

if TYPE_CHECKING:
    from tirxlab.functions import Function
    from tracks.common import Rung, Track

NAMES = ("ampere", "hopper")
ORDERS = ("program", "adverse")
TRACE_SIZES = {"ampere": (512, 512, 256), "hopper": (512, 512, 256)}
RungArgument = Annotated[
    str | None, typer.Argument(metavar="[RUNG]", help="of hopper or ampere: 1, 2, .. or several as 2,5 [all]")
]


def is_track(text: str) -> bool:
    return text in NAMES


def no_rung(rung: str | None) -> None:
    """UserError if a rung is named, for commands on steps: a step has no rungs."""
    if rung is not None:
        raise UserError(
            f"{rung!r} is not expected here: write several steps as 1,2 and a size as --size 256 "
            "(only hopper and ampere have rungs)"
        )


def track_of(name: str) -> Track:
    if not (ROOT / "tracks").is_dir():
        raise UserError(f"the {name} track is not part of this copy of the lab: the folder tracks is missing")
    return importlib.import_module(f"tracks.{name}.reference").TRACK


def rungs_of(track: Track, text: str | None) -> list[Rung]:
    """`3`, `2,5`, `all` or None (all) -> rungs, in the order given."""
    if text in (None, "all"):
        return list(track.rungs)
    known = {str(rung.number): rung for rung in track.rungs}
    for part in text.split(","):
        if part not in known:
            raise UserError(f"{part!r} is not a rung of {track.name}; the rungs are 1 to {len(known)}")
    return [known[part] for part in dict.fromkeys(text.split(","))]


def one_rung(track: Track, text: str | None) -> Rung:
    """The one rung that is named, the last if none is; UserError for several."""
    if text is None:
        return track.rungs[-1]
    (rung, *more) = rungs_of(track, text)
    if more:
        raise UserError(f"this command takes one rung, not {text!r}")
    return rung


def source(track: Track, rung: Rung, kernels: Path | None) -> Path:
    """The file to take a rung from. UntouchedStep if no file has it written."""
    from tracks.common import written

    solution = ROOT / "instructor" / "solutions" / f"{track.name}_kernels.py"
    for path in [kernels] if kernels else [track.kernels, solution]:
        if kernels and not path.is_file():
            raise UserError(f"{path}: no such file; name a kernels file with --kernels FILE")
        if path.is_file() and written(path, rung):
            if path == solution:
                notes().print(
                    f"rung {rung.number} is not written in {shown(track.kernels)}: this is the solution",
                    markup=False,
                )
            return path
    raise UntouchedStep(f"rung {rung.number}, {rung.builder}, is not implemented yet")


def build(rung: Rung, path: Path, size, **options) -> Function:
    """The rung as a function of arrays. UserError if the size does not fit; exit 1 if the build fails."""
    make: Callable[..., Function] | None = getattr(load_kernels(path), rung.builder, None)
    if not callable(make):
        raise StepError(f"{path.name} has no {rung.builder}(M, N, K)")
    make = guarded(make, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of TVM's, about its own choices
            made = make(*size, **options)
    except Exception as error:  # of the student's code, the dialect or the compiler
        if type(error) is ValueError:  # what a builder raises for a shape that does not fit
            raise UserError(f"rung {rung.number} at {size_text(size)}: {fold(str(error))}") from None
        typer.echo(f"rung {rung.number} at {size_text(size)}: {error}", err=True)
        raise typer.Exit(1) from None
    m, n, k = size
    shapes = (m, k), (n, k) if rung.b_transposed else (k, n), (m, n)
    taken, given = made.artifact.buffers, options.get("dtype", "bfloat16")
    if wrong := misfit(taken, shapes, (given, given, taken[-1].dtype if taken else given)):
        typer.echo(f"rung {rung.number} at {size_text(size)}: {_kernel_of(make, path)}: {wrong}", err=True)
        raise typer.Exit(1)
    if not made.outputs:
        typer.echo(
            f"rung {rung.number} at {size_text(size)}: the kernel writes none of its buffers", err=True
        )
        raise typer.Exit(1)
    return made


def _kernel_of(make: Callable, path: Path) -> str:
    """file:line of the kernel in a builder, else of the builder."""
    first = unwrap(make).__code__.co_firstlineno
    lines = enumerate(path.read_text(encoding="utf-8").splitlines()[first:], first + 1)
    line = next((n for n, text in lines if text.lstrip().startswith("@Tx.prim_func")), first)
    return f"{path.name}:{line}"


# ---- check ----


def check(name: str, rung: str | None, sizes: list[str], kernels: Path | None, order, json: bool) -> None:
    """Build and run rungs on the simulator with all checks, at even and uneven sizes, in two orders. A rung
    stops at its first failure.
    """
    from rich.table import Table

    track = track_of(name)
    rungs = rungs_of(track, rung)
    named: list[tuple[tuple, dict]] = [(parse_size(text), {}) for text in sizes]
    rows = []
    made = Table("rung", "size", "options", "order", "right?", "verdict", "seconds", box=None, pad_edge=False)
    for one in rungs:
        orders = ORDERS if order is None else (order,)
        for row in run_rung(track, one, source(track, one, kernels), named or one.cases, orders):
            rows.append(row)
            made.add_row(*[str(row[key]) for key in COLUMNS])
    passed = all(map(_passed, rows))
    if json:
        print_json({"passed": passed, "runs": rows})
        raise typer.Exit(0 if passed else 1)
    output().print(made)
    for message in dict.fromkeys(row["message"] for row in rows if row["message"]):
        output().print(message, markup=False)
    raise typer.Exit(0 if passed else 1)


COLUMNS = ("rung", "size", "options", "order", "right", "verdict", "seconds")


def run_rung(track: Track, rung: Rung, path: Path, cases, orders) -> Iterator[dict]:
    """The rows of a rung's runs, up to the first that fails."""
    for size, options in cases:
        call = build(rung, path, size, **options)
        for order in orders:
            row = run_case(track, rung, call, size, options, order)
            yield row
            if not _passed(row):
                return


def _passed(row: dict) -> bool:
    return row["right"] and row["verdict"] not in ("error", "incomplete")


def run_case(track: Track, rung: Rung, call, size, options: dict, order) -> dict:
    """Runs a rung once on the simulator; the row that the table and --json show."""
    import ptxsim
    import utils
    from tirxlab.devices import sim
    from tracks.common import inputs

    start = time.perf_counter()
    a, b = inputs(track, size, rung, call.inputs[0].dtype)
    d = utils.canaries(call.outputs[0].shape, call.outputs[0].dtype)
    try:
        done = sim.run(call.artifact, [a.copy(), b.copy(), d], order=order)
        verdict, said = done.verdict, utils.report(done, call.artifact) if done.findings else ""
        wrong = mismatch(rung, a, b, d, verdict)
    except ptxsim.Fault as error:
        verdict, said, wrong = "incomplete", str(error), ["the run was given up"]
    return {
        "rung": rung.number,
        "size": size_text(size),
        "options": ", ".join(f"{key}={value}" for key, value in options.items()) or "-",
        "order": order,
        "right": not wrong,
        "verdict": verdict,
        "seconds": round(time.perf_counter() - start, 1),
        "message": "\n".join(filter(None, [said, *wrong])),
        "digest": hashlib.sha256(d.tobytes()).hexdigest()[:16],
    }


def mismatch(rung: Rung, a, b, d, verdict: str) -> list[str]:
    """Lines that say where D is wrong and what it holds: one line after an error; none if it is right."""
    import numpy as np

    import utils
    from tirxlab.explain.blocks import K_TILE
    from tracks.common import product, tolerance

    limit = tolerance(d.dtype)
    whole = ((0, 0), (0, -a.shape[1] % K_TILE))  # zeros up to a whole K tile, as TMA fills them in
    rows, columns = np.pad(a, whole), np.pad(b if rung.b_transposed else b.T, whole)
    try:
        utils.compare(d, product(rung, a, b).astype(d.dtype), rows, columns, limit, limit)
    except utils.WrongResult as error:
        return str(error).splitlines()[: 1 if verdict == "error" else None]
    return []


# ---- inspect and trace ----


def inspect(name: str, words: list[str], view: str, kernels: Path | None, **how) -> str:
    """The text of one view of a rung (by default the last): `hopper [RUNG [SIZE]]`."""
    import inspect_cuda

    track = track_of(name)
    rung = one_rung(track, words[0] if words else None)
    size = parse_size(words[1]) if len(words) > 1 else (1024, 1024, 1024)
    if view not in inspect_cuda.VIEWS:
        raise UserError(f"there is no view {view!r}; --as takes {', '.join(inspect_cuda.VIEWS)}")
    path = source(track, rung, kernels)
    return inspect_cuda.view_of(build(rung, path, size).artifact, view, path.name, **how)


def traced(
    name: str, rung: str | None, size: str | None, kernels: Path | None, order, costs, cluster: int = 0
):
    """(Run of one cluster, Artifact, title) of a rung, by default the last."""
    import numpy as np

    from tirxlab.cli.trace_run import run_cluster
    from tracks.common import inputs

    track = track_of(name)
    one = one_rung(track, rung)
    shape = parse_size(size) if size else TRACE_SIZES[name]
    few = {"sms": 2} if size is None and any("sms" in options for _, options in one.cases) else {}
    call = build(one, source(track, one, kernels), shape, **few)
    a, b = inputs(track, shape, one, call.inputs[0].dtype)
    d = np.zeros(call.outputs[0].shape, call.outputs[0].dtype)
    done = run_cluster(call.artifact, [a, b, d], order, costs, cluster)
    return done, call.artifact, f"{track.title} rung {one.number} at {size_text(shape)}"
