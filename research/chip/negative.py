"""Kernels with a bug that may hang or compute wrongly on a chip: ptxsim's verdict and a GPU's behaviour.

    python -m research.chip.negative make [FILE]   needs TVM: builds the broken kernels, runs them on ptxsim
    python -m research.chip.negative run [FILE]    on a GPU: each watched, ten times; prints a table

Every bug is a change of one line in the Ampere or Hopper kernel, or a few lines of PTX.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import ml_dtypes  # noqa: F401
import numpy as np

from research import packed, store
from research.chip.launches import LIMIT, launched, solution
from tirxlab.artifact import Artifact

HERE = Path(__file__).parent
FILE = HERE / "negative.tar.xz"
SIZE = (256, 256, 512)
# bug -> (track, text of the solution, its replacement)
BUGS = {
    "none (ampere)": ("ampere", "", ""),
    "none (hopper)": ("hopper", "", ""),
    "the last tile is not waited for": ("ampere", "wait_group(0)", "wait_group(STAGES - 1)"),
    "no wait for the copies": ("ampere", "wait_group(STAGES - 1)", "wait_group(STAGES)"),
    "no barrier behind the wait": (
        "ampere",
        "Tx.cuda.cta_sync()  # a thread waits for its own copies only; the others' are there now too",
        "pass",
    ),
    "no barrier before the prefetch": (
        "ampere",
        "Tx.cuda.cta_sync()  # every warp has read this stage: now it may be overwritten",
        "pass",
    ),
    "prefetch into the wrong stage": (
        "ampere",
        "prefetch(stage, k + STAGES)",
        "prefetch(1 - stage, k + STAGES)",
    ),
    "rows of A and B swapped in the copy": (
        "ampere",
        "A.ptr_to([m_st + row, k_st])",
        "A.ptr_to([n_st + row, k_st])",
    ),
    "D one row too far": (
        "ampere",
        "group + i // 2 * 8)\n                    D",
        "group + i // 2 * 8 + 1)\n                    D",
    ),
    "too few bytes announced": (
        "hopper",
        "TILE_BYTES = BM * A_ROW + tile_k * B_ROW",
        "TILE_BYTES = BM * A_ROW",
    ),
    "too many bytes announced": (
        "hopper",
        "TILE_BYTES = BM * A_ROW + tile_k * B_ROW",
        "TILE_BYTES = BM * A_ROW + tile_k * B_ROW + 16",
    ),
    "a barrier of two arrivals": ("hopper", "loaded.init(1)", "loaded.init(2)"),
    "wait for the other phase": ("hopper", "loaded.wait(k, 0)", "loaded.wait(k, 1)"),
    "no wait for TMA": ("hopper", "loaded.wait(k, 0)", "pass"),
    "no barrier in the loop": ("hopper", "                Tx.cuda.cta_sync()\n", ""),
    "no wait for wgmma": ("hopper", "wgmma.wait_group(0)", "wgmma.wait_group(1)"),
    "no wgmma.fence": ("hopper", "                Tx.ptx.wgmma.fence()\n", ""),
    "no commit": ("hopper", "                Tx.ptx.wgmma.commit_group()\n", ""),
    "B not transposed": ("hopper", "transB=True", "transB=False"),
    "wrong stride of A": ("hopper", "8 * A_ROW // 16, A_SWIZZLE", "8 * A_ROW // 8, A_SWIZZLE"),
    "accumulators not overwritten": ("hopper", "k + step == 0, 0, 1", "k + step == 0, 1, 1"),
    "coordinates of B swapped": (
        "hopper",
        "B[k_st : k_st + tile_k, n_st : n_st + BN]",
        "B[n_st : n_st + tile_k, k_st : k_st + BN]",
    ),
    "one warp does not take part in wgmma": (
        "hopper",
        "                for step in Tx.unroll(tile_k // MMA_K):\n                    mma(k, step)",
        "                if warp_id != 3:\n                    for step in Tx.unroll(tile_k // MMA_K):\n"
        "                        mma(k, step)",
    ),
    "one warp leaves before the loop's barrier": (
        "hopper",
        "            for k in range(K_TILES):\n",
        "            for k in range(Tx.if_then_else(warp_id == 3, K_TILES - 1, K_TILES)):\n",
    ),
}


def arrays(artifact: Artifact, track: str) -> list[np.ndarray]:
    from tracks.ampere.reference import TRACK as AMPERE
    from tracks.common import inputs
    from tracks.hopper.reference import TRACK as HOPPER

    a, b = inputs({"ampere": AMPERE, "hopper": HOPPER}[track], SIZE)
    return [a, b, np.full(SIZE[:2], np.nan, np.float32)]


def reference(track: str, a, b) -> np.ndarray:
    b = b.astype(np.float32)
    return a.astype(np.float32) @ (b.T if track == "ampere" else b)


def build(bug: str) -> Artifact:
    from tirxlab.steps import load_kernels

    track, good, bad = BUGS[bug]
    text = solution(track).read_text().partition("# ---- the ladder")[0]  # the mistakes are in rung 1
    if text.count(good) != 1 and good:
        raise SystemExit(f"{bug}: {good!r} occurs {text.count(good)} times in the solution")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.py"
        file.write_text(text.replace(good, bad) if good else text)
        builder = "build_gemm_pipelined" if track == "ampere" else "build_gemm_m64n64"
        return getattr(load_kernels(file), builder)(*SIZE).artifact


def simulate(artifact: Artifact, track: str) -> dict:
    """Findings and correctness under two orders."""
    from tirxlab.devices import sim

    says, right = {}, []
    for order in ("program", "adverse"):
        data = arrays(artifact, track)
        run = sim.run(artifact, data, order=order)
        for finding in run.findings:
            says.setdefault(f"{finding.severity}: {finding.kind}", finding.message)
        right.append(judge(data[2], reference(track, *data[:2])))
    return {"findings": says, "result": "; ".join(dict.fromkeys(right))}


def judge(d: np.ndarray, expected: np.ndarray) -> str:
    wrong = ~np.isclose(d, expected, rtol=1e-2, atol=1e-2)
    return f"{wrong.mean():.0%} wrong" if wrong.any() else "right"


def make(file: Path) -> None:
    index, files = {}, {}
    for i, bug in enumerate(BUGS):
        artifact = replace(build(bug), cubin=b"", cuda="")
        index[bug] = {"track": BUGS[bug][0], **simulate(artifact, BUGS[bug][0])}
        files[f"{i}.lab"] = artifact.to_bytes()
        said = ", ".join(index[bug]["findings"]) or "nothing found"
        print(f"{bug}: {said}; {index[bug]['result']}", flush=True)
    store.save(file, files | {"index.json": json.dumps(index, indent=1).encode()})


def on_the_chip(artifact: Artifact, track: str) -> str:
    """The outcomes of ten launches."""
    seen = launched(
        artifact, lambda: arrays(artifact, track), lambda data: judge(data[2], reference(track, *data[:2]))
    )
    return "; ".join(f"{what} ({count}x)" for what, count in seen.items())


def run(file: Path, results: Path) -> None:
    from research.chip.run import gpu

    os.environ.setdefault("LAB_TIMEOUT", LIMIT)
    table = {}
    files = store.load(file)
    for i, (bug, entry) in enumerate(json.loads(files["index.json"]).items()):
        artifact = Artifact.from_bytes(files[f"{i}.lab"])
        table[bug] = {"chip": on_the_chip(artifact, entry["track"]), **entry}
        said = ", ".join(entry["findings"]) or "nothing"
        print(f"{bug}\n    chip: {table[bug]['chip']}\n    ptxsim: {said}; {entry['result']}", flush=True)
    machine = gpu()
    results.mkdir(parents=True, exist_ok=True)
    out = results / f"negative-{machine['gpu'].lower().replace(' ', '-')}.json.xz"
    packed.write(out, json.dumps({**machine, "size": SIZE, "bugs": table}, indent=1) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    path = Path(rest[0]) if rest else FILE
    if command == "make":
        make(path)
    else:
        run(path, Path(rest[1]) if len(rest) > 1 else HERE / "results")
