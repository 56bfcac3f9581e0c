"""The Ampere kernel against the public one of pyptx 0.1.1, on the same GPU in the same run.

    python -m research.chip.ampere_public make PYTHON FOLDER    PYTHON has pyptx; no GPU needed
    python -m research.chip.ampere_public time FOLDER [--out FILE.json]     on a GPU; needs torch, not TVM

`make` writes the PTX of pyptx's own example `ampere/gemm_pipelined`. Its tile, grid, shared memory and
parameters are those of our kernel, so it is launched as our artifact with the PTX exchanged. `time`
alternates between the two (each time a CUDA graph of launches on rotated inputs), and prints the ratio of
medians (above 1: ours is faster).
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SIZES, ROUNDS = (1024, 2048, 4096), 5
TRACE = """
import sys, types
for name in ("jax", "jax.numpy"):  # imported by the example; used only to run it
    sys.modules[name] = types.ModuleType(name)
sys.modules["jax"].numpy = sys.modules["jax.numpy"]
from pyptx.examples.ampere.gemm_pipelined import build_gemm_pipelined
for n in map(int, sys.argv[2:]):
    open(f"{sys.argv[1]}/pyptx_{n}.ptx", "w").write(build_gemm_pipelined(n, n, n).ptx())
"""


def make(python: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([python, "-c", TRACE, str(folder), *map(str, SIZES)], check=True)


def kernels(folder: Path, n: int) -> dict:
    """name -> function of two tensors."""
    from research import store
    from tirxlab.artifact import Artifact
    from tirxlab.functions import Function

    ours = Artifact.from_bytes(store.load(ROOT / "research/chip/kernels.tar.xz")[f"ampere_{n}.lab"])
    public = replace(ours, ptx=(folder / f"pyptx_{n}.ptx").read_text(), entry="gemm")
    return {"ours": Function(ours), "pyptx": Function(public)}


def milliseconds(call, sets: list) -> float:
    """Time of one launch; a graph of 4 launches per set runs 5 times, the first untimed."""
    import torch

    graph, events = torch.cuda.CUDAGraph(), [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    with torch.cuda.graph(graph):
        for _ in range(4):
            for arrays in sets:
                call(*arrays)
    graph.replay()
    events[0].record()
    for _ in range(4):
        graph.replay()
    events[1].record()
    torch.cuda.synchronize()
    return events[0].elapsed_time(events[1]) / (16 * len(sets))


def compare(folder: Path, n: int) -> dict:
    import numpy as np
    import torch

    from tracks.ampere.reference import TRACK
    from tracks.common import inputs

    a, b = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).cuda() for x in inputs(TRACK, (n, n, n)))
    sets = [(a.clone(), b.clone()) for _ in range(8)]
    calls, expected = kernels(folder, n), a.float() @ b.float().T
    for name, call in calls.items():
        if not torch.allclose(call(a, b), expected, rtol=1e-2, atol=1e-2):
            raise SystemExit(f"{name} is wrong at {n}")
    times = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(milliseconds(call, sets))
    rate = {name: round(2 * n**3 * 1e-9 / float(np.median(ms)), 1) for name, ms in times.items()}
    return {"n": n, **{f"{name} TFLOP/s": value for name, value in rate.items()},
            "ratio": round(rate["ours"] / rate["pyptx"], 3)}  # fmt: skip


def time(folder: Path, out: Path | None) -> None:
    import torch

    rows = []
    for n in SIZES:
        rows.append(compare(folder, n))
        print(rows[-1], flush=True)
    record = {"gpu": torch.cuda.get_device_name(), "date": datetime.date.today().isoformat(), "rows": rows}
    if out:
        out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    making = modes.add_parser("make")
    making.add_argument("python")
    making.add_argument("folder", type=Path)
    timing = modes.add_parser("time")
    timing.add_argument("folder", type=Path)
    timing.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.mode == "make":
        make(given.python, given.folder)
    else:
        time(given.folder, given.out)
