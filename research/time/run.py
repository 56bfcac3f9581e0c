"""Sustained times of saved kernels on this GPU: `python -m research.time.run [SET ..] --half H --out FILE`.

A SET is a store (research/store.py) of artifacts with an index.json, or a folder of *.lab files that `./lab
bench hopper --save FOLDER` wrote; by default the sets of the first two rounds. Needs torch and a driver, no
TVM. Inputs are random normal; samples as in tracks/measure.py: shuffled rounds, 0.3 s of warm-up, a window of
0.5 s, CUDA graphs, medians.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
from dataclasses import dataclass
from pathlib import Path

from research import store
from tirxlab.artifact import Artifact
from tirxlab.devices import driver
from tracks import measure

SAVED = Path(__file__).parent / "kernels.tar.xz"  # the sets of all rounds, a folder each
SETS = [SAVED / name for name in ("first", "first-ladders")]
HALVES = ("calibration", "unseen", "all")
INT8_SCALE = 32  # standard deviation of 8-bit numbers, so that they use their range
TOGETHER = 6  # kernels that share shuffled rounds, and the GPU's memory


@dataclass(frozen=True)
class Saved:
    """A kernel of a set; `half` is "" in a folder, which has no halves."""

    name: str
    artifact: Artifact
    half: str
    flops: float


def load(path: Path) -> list[Saved]:
    """The kernels of a set, in its order."""
    if path.is_dir():
        files = sorted(path.glob("*.lab"))
        return [Saved(f.stem, a, "", flops_of(a)) for f in files for a in [Artifact.load(f)]]
    files = store.load(path)
    return [
        Saved(name, Artifact.from_bytes(files[f"{name}.lab"]), about["half"], about["flops"])
        for name, about in json.loads(files["index.json"]).items()
    ]


def save(path: Path, kernels: list[Saved]) -> None:
    """Writes a set."""
    files = {f"{saved.name}.lab": saved.artifact.to_bytes() for saved in kernels}
    index = {saved.name: {"half": saved.half, "flops": saved.flops} for saved in kernels}
    store.save(path, files | {"index.json": json.dumps(index, indent=1).encode()})


def flops_of(artifact: Artifact) -> float:
    """Operations of a matmul D = A B: two per product."""
    (out,) = [b for b in artifact.buffers if b.role == "out"]
    a = artifact.buffers[0]
    return 2.0 * out.shape[0] * out.shape[1] * a.shape[1]


def contender(saved: Saved) -> measure.Contender:
    """The kernel with its buffers on the GPU: enough sets of them that no launch finds its own in L2."""
    import torch

    kernel = driver.Kernel(saved.artifact)
    buffers = saved.artifact.buffers
    bytes_ = sum(
        math.prod(b.shape) * torch.empty(0, dtype=getattr(torch, b.dtype)).element_size() for b in buffers
    )
    count = max(1, min(8, -(-measure.L2_BYTES // bytes_)))
    sets = [{b.name: _filled(b) for b in buffers} for _ in range(count)]
    pointers = [{name: tensor.data_ptr() for name, tensor in one.items()} for one in sets]

    def launch(i: int) -> None:
        kernel.launch(pointers[i], torch.cuda.current_stream().cuda_stream)

    return measure.Contender(saved.name, launch, count, saved.flops, results=sets)


def _filled(buffer):
    import torch

    dtype = getattr(torch, buffer.dtype)
    if buffer.role != "in":
        return torch.zeros(buffer.shape, device="cuda", dtype=dtype)
    made = torch.randn(buffer.shape, device="cuda", dtype=torch.float32)
    return (made * INT8_SCALE).clamp(-127, 127).to(dtype) if dtype == torch.int8 else made.to(dtype)


def measured(kernels: list[Saved], rounds: int) -> list[dict]:
    """One row per kernel; the row of a kernel that the driver refuses says so."""
    import torch

    rows, contenders = [], []
    for saved in kernels:
        try:
            contenders.append(contender(saved))
            contenders[-1].launch(0)
            torch.cuda.synchronize()
        except (driver.LaunchError, RuntimeError) as error:
            rows.append({"kernel": saved.name, "failed": str(error).splitlines()[0]})
            contenders = [c for c in contenders if c.name != saved.name]
    if contenders:
        measure.measure(contenders, rounds)
    rows += [measure.row(one, None) for one in contenders]
    halves = {saved.name: saved.half for saved in kernels}
    return [{"half": halves[row["kernel"]], **row} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, default=SETS)
    parser.add_argument("--half", choices=HALVES, default="all", help="which half, for sets that have halves")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    import torch

    chosen = [s for path in given.sets for s in load(path) if given.half in ("all", s.half) or not s.half]
    rows: list[dict] = []
    for start in range(0, len(chosen), TOGETHER):
        rows += measured(chosen[start : start + TOGETHER], given.rounds)
        torch.cuda.empty_cache()
        print(*rows[-TOGETHER:], sep="\n", flush=True)
        record = {
            "gpu": torch.cuda.get_device_name(),
            "date": datetime.date.today().isoformat(),
            "method": f"random normal data, {measure.WARMUP} s warm-up, {measure.WINDOW} s window, "
            f"{given.rounds} shuffled rounds, CUDA graphs, medians",
            "rows": rows,
        }
        if given.out:
            given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
