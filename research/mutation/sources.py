"""The sources that are mutated: the ten references and the two tracks, each with small sizes that show
mistakes.

A run of a mutant represents `./lab check S`: the same engine and both orders at the first size, then the
other sizes. Only the number of CTAs differs: persistent kernels get two, or two pairs, so that every one has
several tiles and an index different from its neighbour's, and a run takes a tenth of a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "instructor" / "solutions"
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Source:
    """A kernel's file and how to run it."""

    name: str
    file: str  # relative to instructor/solutions
    builder: str  # the function that is mutated
    sizes: tuple[Size, ...]  # M, N, K; both orders at the first
    track: bool = False  # bfloat16 inputs and float32 output
    ctas: int = 0  # replaces SM_COUNT
    depth: int = 0  # replaces PIPE_DEPTH

    def text(self) -> str:
        text = (SOLUTIONS / self.file).read_text()
        for name, value in (("SM_COUNT", self.ctas), ("    PIPE_DEPTH", self.depth)):
            text = re.sub(rf"^{name} = \d+", f"{name} = {value}", text, flags=re.M) if value else text
        return text


def _step(number: int, *sizes: Size, ctas: int = 0) -> Source:
    return Source(f"step {number}", "gemm_kernels.py", f"hgemm_v{number}", sizes, ctas=ctas)


_ROLES = ((384, 256, 320), (256, 256, 64), (256, 512, 256))  # 3 tiles of 5 K tiles; 2 of 1; 4 of 4
SOURCES = (
    _step(1, (128, 128, 64)),
    _step(2, (128, 128, 64), (128, 128, 192)),
    _step(3, (256, 384, 192), (128, 128, 256)),
    _step(4, (256, 384, 192), (128, 128, 256)),
    _step(5, (256, 384, 192), (128, 128, 64), (128, 128, 256)),
    _step(6, *_ROLES, ctas=2),
    _step(7, *_ROLES, ctas=2),
    _step(8, *_ROLES, ctas=2),
    _step(9, (768, 512, 320), (512, 256, 64), (512, 512, 256), ctas=4),
    _step(10, (1024, 512, 320), (1024, 256, 64), (512, 768, 256), ctas=4),
    Source(
        "hopper", "hopper_kernels.py", "build_gemm_m64n64", ((64, 128, 48), (128, 64, 16), (64, 64, 64)), True
    ),
    Source(
        "ampere",
        "ampere_kernels.py",
        "build_gemm_pipelined",
        ((64, 128, 80), (128, 64, 16), (64, 64, 48)),
        True,
    ),
)
