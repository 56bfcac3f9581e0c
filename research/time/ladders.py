"""Rungs at the sizes that drawn.py draws: `python -m research.time.ladders OUT.tar.xz`.

Needs TVM, no GPU. The rungs are built from the solutions. The set has the form of by_triton's, without source
text; all of it belongs to the half "unseen".
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from research.time import drawn
from research.time.run import Saved, save
from tirxlab.artifact import Artifact
from tirxlab.cli import tracks

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "instructor" / "solutions"


def rung(track: str, number: int, size: tuple[int, int, int], dtype: str = "bfloat16") -> Artifact:
    """A rung of the solutions. dtype: that of the operands, or of an Ampere rung's result."""
    (one,) = [r for r in tracks.track_of(track).rungs if r.number == number]
    options = dict.fromkeys(one.variants[0], dtype)
    return tracks.build(one, SOLUTIONS / f"{track}_kernels.py", size, **options).artifact


def main(out: Path) -> None:
    made = []
    for track, numbers, size in drawn.ladders():  # two sizes of each track have edges
        for number in numbers:
            artifact = rung(track, number, size)
            name = f"{track}{number}_{'x'.join(map(str, size))}_bfloat16"
            a, d = artifact.buffers[0].shape, artifact.outputs[0].shape
            bare = replace(artifact, cuda="", source={}, names=())
            made.append(Saved(name, bare, "unseen", 2.0 * d[0] * d[1] * a[1]))
            print(name, artifact.registers, artifact.shared_bytes, flush=True)
    save(out, made)
    print(f"{len(made)} kernels, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
