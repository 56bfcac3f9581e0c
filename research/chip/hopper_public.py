"""The last Hopper rung against the public kernel of pyptx 0.1.1 and cuBLAS, on one GPU in one run, sustained.

    ./lab bench hopper 9 --save FOLDER --size 2048 --size 4096 --size 8192        where TVM is
    python -m research.chip.hopper_public FOLDER [--out FILE.json] [--rounds N]       on the GPU; torch, pyptx

bfloat16, random normal data; pyptx's `hopper/gemm_highperf_hopper` by its own PyTorch path, with its own
order of tiles. Samples as in tracks/measure.py: shuffled, 0.3 s of warm-up, 0.5 s of window, CUDA graphs.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path

from tirxlab.artifact import Artifact
from tracks import measure

ROOT = Path(__file__).resolve().parents[2]
SIZES = (2048, 4096, 8192)


def of_pyptx(sets: list[tuple], n: int) -> measure.Contender:
    """pyptx's kernel: D transposed, allocated by each call."""
    import torch
    from pyptx.examples.hopper import gemm_highperf_hopper as public

    tiles = n // (public.BM * public.CLUSTER_M), n // public.BN
    order = torch.tensor(public.create_hilbert_schedule(*tiles), device="cuda", dtype=torch.int32)
    results = [public.gemm_warp_specialized(a, b, order) for a, b in sets]

    def launch(i: int) -> None:
        results[i] = public.gemm_warp_specialized(*sets[i], order)

    return measure.Contender("pyptx", launch, len(sets), 2.0 * n**3, results=results)


def compare(folder: Path, n: int, rounds: int) -> list[dict]:
    import torch

    sets = measure.input_sets((n, n, n), "bfloat16")
    ours = Artifact.load(folder / f"hopper9_{n}_bfloat16.lab")
    contenders = [measure.of_artifact("ours", ours, sets), of_pyptx(sets, n), measure.of_cublas(sets)]
    contenders[1].launch(0)
    torch.cuda.synchronize()
    expected = (sets[0][0].float() @ sets[0][1].float().T).T
    error = float((contenders[1].results[0].float() - expected).norm() / expected.norm())
    errors = [contenders[0].error(sets[0]), error, contenders[2].error(sets[0])]
    measure.measure(contenders, rounds)
    rows = [measure.row(contender, contenders[1]) for contender in contenders]
    return [{"n": n, **row, "error": f"{e:.1e}"} for row, e in zip(rows, errors, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    import torch

    rows = []
    for n in SIZES:
        rows += compare(given.folder, n, given.rounds)
        print(*rows[-3:], sep="\n", flush=True)
    record = {"gpu": torch.cuda.get_device_name(), "date": datetime.date.today().isoformat(), "rows": rows}
    if given.out:
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
