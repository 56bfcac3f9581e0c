"""Rungs at new sizes: `python -m research.time.ladders second|third|fourth|fifth OUT.tar.xz [PYTHON PTXAS]`.

Needs TVM, no GPU. The rungs of a round are built from the solutions. PYTHON is an interpreter with pyptx 0.1,
whose `ampere/gemm_pipelined` the Ampere track follows: its PTX is launched as rung 1 is; for later rounds,
public_set.py does that. PTXAS determines its register count. The set has the form of by_triton's, without
source text; all of it belongs to the half "unseen".
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from research.time import drawn
from research.time.run import Saved, save
from tirxlab.artifact import Artifact
from tirxlab.cli import tracks

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "instructor" / "solutions"
ALL = range(1, 10)
SECOND = [  # (track, rungs, size). Hopper's 128x256 tiles for each of 132 CTAs: 1.5, 2.2, 3.0 and 6.1
    ("hopper", ALL, (2560,) * 3),
    ("hopper", range(5, 10), (3072,) * 3),  # timed before; included for its order
    ("hopper", ALL, (3584,) * 3),
    ("hopper", ALL, (5120,) * 3),
    ("ampere", ALL, (2560,) * 3),
    ("ampere", (5, 9), (5120,) * 3),
]
THIRD = [  # no size is a power of two or a cube; tiles for each CTA: 2.6, 1.7, 2.9; the last has edges
    ("hopper", ALL, (2944, 3840, 1856)),
    ("hopper", range(2, 10), (1152, 6400, 8256)),
    ("hopper", ALL, (7040, 1792, 704)),
    ("hopper", (3, 5, 9), (3272, 4168, 2232)),
    ("ampere", ALL, (1920, 3328, 1472)),
    ("ampere", (3, 4, 5, 6, 8, 9), (4224, 2176, 704)),
    ("ampere", (2, 6), (1000, 1672, 5000)),
]
FOURTH = [  # as in the third; tiles for each CTA of Hopper: 2.2, 2.7, 1.4; the last of each track has edges
    ("hopper", ALL, (2816, 3328, 1344)),
    ("hopper", range(2, 10), (2432, 4864, 2496)),
    ("hopper", (2, 3, 5, 6, 8, 9), (4680, 1224, 1672)),
    ("ampere", ALL, (2304, 2688, 1216)),
    ("ampere", (2, 3, 4, 5, 6, 8, 9), (1408, 3712, 832)),
    ("ampere", (2, 3, 4, 6, 9), (1544, 2376, 1736)),
]
FIFTH = drawn.ladders()  # two sizes of each track have edges
SETS = {"second": SECOND, "third": THIRD, "fourth": FOURTH, "fifth": FIFTH}
PUBLIC = ((2560, 2560, 2560), (5120, 5120, 1024))  # sizes of pyptx's kernel, which is unrolled over K
TRACE = """
import sys, types
for name in ("jax", "jax.numpy"):  # imported by the example; used only to run it
    sys.modules[name] = types.ModuleType(name)
sys.modules["jax"].numpy = sys.modules["jax.numpy"]
from pyptx.examples.ampere.gemm_pipelined import build_gemm_pipelined
open(sys.argv[1], "w").write(build_gemm_pipelined(*map(int, sys.argv[2:])).ptx())
"""


def rung(track: str, number: int, size: tuple[int, int, int], dtype: str = "bfloat16") -> Artifact:
    """A rung of the solutions. dtype: that of the operands, or of an Ampere rung's result."""
    (one,) = [r for r in tracks.track_of(track).rungs if r.number == number]
    options = dict.fromkeys(one.variants[0], dtype)
    return tracks.build(one, SOLUTIONS / f"{track}_kernels.py", size, **options).artifact


def public(python: str, ptxas: str, size: tuple[int, int, int]) -> Artifact:
    """pyptx's kernel; tile, grid, shared memory and parameters are those of our rung 1."""
    ours = rung("ampere", 1, size)
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        subprocess.run([python, "-c", TRACE, str(text), *map(str, size)], check=True)
        command = [ptxas, "-arch=sm_90a", "-v", str(text), "-o", str(cubin)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        registers = int(re.search(r"Used (\d+) registers", said)[1])
        made = text.read_text(), cubin.read_bytes()
    return replace(ours, arch="sm_90a", entry="gemm", ptx=made[0], cubin=made[1], registers=registers)


def kernels(which: str, tools: list[str]):
    """(name, artifact) of the whole set."""
    for track, numbers, size in SETS[which]:
        shape = str(size[0]) if which == "second" else "x".join(map(str, size))
        for number in numbers:
            yield f"{track}{number}_{shape}_bfloat16", rung(track, number, size)
    for size in PUBLIC if tools else ():
        yield "pyptx_pipelined_" + "x".join(map(str, size)), public(*tools, size)


def main(which: str, out: Path, tools: list[str]) -> None:
    made = []
    for name, artifact in kernels(which, tools):
        a, d = artifact.buffers[0].shape, artifact.outputs[0].shape
        bare = replace(artifact, cuda="", source={}, names=())
        made.append(Saved(name, bare, "unseen", 2.0 * d[0] * d[1] * a[1]))
        print(name, artifact.registers, artifact.shared_bytes, flush=True)
    save(out, made)
    print(f"{len(made)} kernels, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
