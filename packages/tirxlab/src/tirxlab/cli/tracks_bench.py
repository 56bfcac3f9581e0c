"""`./lab bench hopper|ampere [RUNG]`: sustained speed of a track's rungs beside cuBLAS, in one run.

If the machine with the GPU has no TVM: `--save DIR` on a machine that has it, then `--artifacts DIR` there.
"""

import datetime
import importlib.util
import json as jsonlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli import tracks
from tirxlab.cli.common import ROOT, UserError, notes, output, print_json, write_file
from tirxlab.steps import parse_size, size_text

SIZES = ((2048,) * 3, (4096,) * 3, (8192,) * 3)
LADDER_SIZE = (4096,) * 3  # at which all rungs are measured without --size
RECORDED = {"hopper": "gemm_highperf", "ampere": "gemm_highperf"}  # pyptx's kernels, as named in PYPTX
PYPTX = ROOT / "research" / "chip" / "results" / "baseline-nvidia-h200.csv"

AgainstOption = Annotated[
    str, typer.Option("--against", metavar="LIST", help="tracks: cublas (same run), pyptx (as recorded)")
]
DtypeOption = Annotated[
    str | None,
    typer.Option("--dtype", metavar="TYPE", help="tracks: hopper: input type; ampere: D's [bfloat16]"),
]
RoundsOption = Annotated[int, typer.Option("--rounds", metavar="N", help="tracks: samples of each kernel")]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="tracks: .svg for a plot, .json for all numbers")
]
SaveOption = Annotated[
    Path | None, typer.Option("--save", metavar="DIR", help="tracks: build only, one artifact per kernel")
]
ArtifactsOption = Annotated[
    Path | None, typer.Option("--artifacts", metavar="DIR", help="tracks: run saved artifacts, build nothing")
]


@dataclass
class Plan:
    """The options of the command line."""

    track: str
    rung: str | None
    sizes: list[str]
    kernels: Path | None
    against: str
    dtype: str | None
    rounds: int
    out: Path | None
    save: Path | None
    artifacts: Path | None

    def jobs(self) -> list[tuple]:
        """(rung, size), ordered by size; without --size: all rungs at 4096, the last one at all SIZES."""
        track = tracks.track_of(self.track)
        rungs = tracks.rungs_of(track, self.rung)
        if self.dtype not in (None, "bfloat16"):  # the walkthrough's kernels take no other type
            rungs = [rung for rung in rungs if rung.variants[0]] or rungs
        if self.sizes:
            return [(rung, parse_size(text)) for text in self.sizes for rung in rungs]
        return [(r, s) for s in SIZES for r in rungs if s == LADDER_SIZE or r is rungs[-1]]


def run(plan: Plan, json: bool) -> None:
    """Save artifacts, or measure and print; without a suitable GPU, print one line (exit status 0)."""
    check_options(plan)
    track, jobs = tracks.track_of(plan.track), plan.jobs()
    if plan.save:
        return save(plan, plan.save, track, jobs)
    missing = no_gpu(track)
    if missing:
        if json:
            print_json({"device": "sim", "measured": False, "rows": []})
        else:
            print(f"speed not measured: {missing}")
        return None
    rows = [row for size in dict.fromkeys(s for _, s in jobs) for row in measured(plan, track, jobs, size)]
    record = about(plan, rows)
    if plan.out:
        write_file(plan.out, content(plan.out, record).encode())
    if json:
        print_json(record)
    else:
        show(record, plan)
    return None


def check_options(plan: Plan) -> None:
    known = {"cublas", "pyptx"}
    for name in plan.against.split(","):
        if name not in known:
            raise UserError(f"--against {name}: takes {' and '.join(sorted(known))}")
    if plan.rounds < 1:
        raise UserError("--rounds takes a number of samples, 1 or more")
    if plan.out and plan.out.suffix not in (".svg", ".json"):
        raise UserError(f"--out {plan.out}: the name must end in .svg or .json")
    if plan.artifacts and not plan.artifacts.is_dir():
        raise UserError(f"--artifacts {plan.artifacts}: no such folder; make it with --save")
    types = {"hopper": ("bfloat16", "float16"), "ampere": ("bfloat16", "float32")}[plan.track]
    if plan.dtype not in (None, *types):
        raise UserError(f"--dtype {plan.dtype}: {plan.track} takes {' or '.join(types)}")


def no_gpu(track) -> str:
    """Why nothing can be measured here; "" if it can."""
    from tirxlab.devices import driver

    want, have = track.capability, driver.capabilities()
    text = f"{track.name} kernels need a GPU of compute capability {want[0]}.{want[1]}"
    if not have or have[0] < want or (track.name == "hopper" and have[0] != want):
        return text + (f"; this one has {have[0][0]}.{have[0][1]}" if have else "; there is none here")
    if importlib.util.find_spec("torch") is None:
        raise UserError("measuring needs torch: .venv/bin/python -m pip install 'torch>=2.9'")
    return ""


# ---- kernels ----


def options_of(plan: Plan, rung) -> dict:
    """The builder's keyword arguments for the type asked for (the walkthrough's kernels have one type)."""
    (name,) = rung.variants[0] or ("",)
    return {name: plan.dtype or "bfloat16"} if name else {}


def artifact_file(plan: Plan, rung, size) -> str:
    return f"{plan.track}{rung.number}_{size_text(size)}_{plan.dtype or 'bfloat16'}.lab"


def save(plan: Plan, folder: Path, track, jobs) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for rung, size in jobs:
        path = tracks.source(track, rung, plan.kernels)
        call = tracks.build(rung, path, size, **options_of(plan, rung))
        call.artifact.save(folder / artifact_file(plan, rung, size))
        print(f"saved {folder / artifact_file(plan, rung, size)}", flush=True)


def artifact_of(plan: Plan, track, rung, size):
    from tirxlab.artifact import Artifact

    if plan.artifacts:
        return Artifact.load(plan.artifacts / artifact_file(plan, rung, size))
    path = tracks.source(track, rung, plan.kernels)
    return tracks.build(rung, path, size, **options_of(plan, rung)).artifact


# ---- measuring ----


def measured(plan: Plan, track, jobs, size) -> list[dict]:
    """The rows of one size: its rungs and cuBLAS, measured in shuffled rounds."""
    from tracks import measure

    rungs = [rung for rung, each in jobs if each == size]
    dtype = (plan.dtype if plan.track == "hopper" else None) or "bfloat16"
    sets = measure.input_sets(size, dtype)
    plain = [(a, b.T.contiguous()) for a, b in sets] if any(not r.b_transposed for r in rungs) else []
    contenders = [measure.of_cublas(sets)] if "cublas" in plan.against else []
    for rung in rungs:
        artifact = artifact_of(plan, track, rung, size)
        made = measure.of_artifact(rung.builder, artifact, sets if rung.b_transposed else plain)
        require_right(rung, made, sets[0])
        contenders.append(made)
    notes().print(f"{size_text(size)}: {len(contenders)} kernels, {plan.rounds} samples each", markup=False)
    measure.measure(contenders, plan.rounds, bursts=3)
    library = contenders[0] if contenders[0].name == "cublas" else None
    number = {rung.builder: rung.number for rung in rungs}
    return [
        {"size": size_text(size), "dtype": dtype, "rung": number.get(c.name), **measure.row(c, library)}
        for c in contenders
    ]


def require_right(rung, contender, pair) -> None:
    """UserError if the kernel's result is not the product."""
    error = contender.error(pair)
    if not error < 0.004:
        raise UserError(
            f"rung {rung.number} computes a wrong product (relative error {error:.2g}): not timed"
        )


def about(plan: Plan, rows: list[dict]) -> dict:
    import torch

    from tracks import measure

    return {
        "track": plan.track,
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        "method": f"random normal data, {measure.WARMUP:g} s warm-up and {measure.WINDOW:g} s window a "
        "sample, shuffled rounds, CUDA graphs, medians; spread is (max - min) / median, the ratio is to "
        "cuBLAS in the same run; burst: 10 launches after 2 s of rest",
        "rows": rows,
    }


# ---- output ----


def content(path: Path, record: dict) -> str:
    from tirxlab.cli.tracks_plot import svg

    return svg(record) if path.suffix == ".svg" else jsonlib.dumps(record, indent=1) + "\n"


def show(record: dict, plan: Plan) -> None:
    """Prints the table and, if asked for, the recorded speeds of pyptx below it."""
    from rich.table import Table

    heads = ("size", "rung", "kernel", "TFLOP/s", "spread", "/ cublas", "MHz", "W", "burst TFLOP/s")
    made = Table(*heads, box=None, pad_edge=False)
    for row in record["rows"]:
        ratio = f"{row['ratio']:.3f}" if row["ratio"] else "-"
        cells = (
            row["size"],
            row["rung"] or "",
            row["kernel"].removeprefix("build_gemm_"),
            row["tflops"],
            f"{row['spread']:.1%}",
            ratio,
        )
        made.add_row(
            *map(str, cells), *[str(row.get(k, "-")) for k in ("clock_mhz", "watts", "burst_tflops")]
        )
    output().print(made)
    output().print(f"{record['gpu']}: {record['method']}", markup=False)
    if "pyptx" in plan.against:
        for line in recorded(plan.track):
            output().print(line, markup=False)


def recorded(track: str) -> list[str]:
    """Lines on pyptx's own kernels as recorded on an H200; from another run, so without a ratio."""
    lines = PYPTX.read_text().splitlines() if PYPTX.exists() else []
    found = [line.split(",") for line in lines if line.startswith(f"pyptx {track} {RECORDED[track]}")]
    return [
        f"recorded in another run: {name}, {dtype}, {n}: {rate} TFLOP/s" for name, dtype, n, _, rate in found
    ] or [f"no recorded speeds of pyptx: {PYPTX} is missing"]
