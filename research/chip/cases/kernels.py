"""The first kernels of the Ampere and Hopper tracks, and a small kernel that CUDA compiled."""

from __future__ import annotations

import numpy as np

from instructor.solutions.ampere_kernels import build_gemm_pipelined
from instructor.solutions.hopper_kernels import build_gemm_m64n64
from research.chip.case import Case
from tracks.ampere.reference import TRACK as AMPERE
from tracks.common import inputs
from tracks.hopper.reference import TRACK as HOPPER


class KernelCase(Case):
    """A case around an artifact that already exists."""

    def artifact(self, entry: str = ""):
        return self.built


def cases() -> list[Case]:
    found = []
    for track, build in ((AMPERE, build_gemm_pipelined), (HOPPER, build_gemm_m64n64)):
        for size in ((64, 64, 64), (64, 64, 256), (128, 192, 80)):
            found.append(gemm(track, build(*size), size))
    return [*found, gemm(HOPPER, build_gemm_m64n64(64, 128, 192, tile_k=64), (64, 128, 192), ".tile_k64")]


def gemm(track, function, size, suffix: str = "") -> Case:
    """Integer-valued matrices: every sum is exact in float32."""
    a, b = (np.rint(x.astype(np.float32) * 20).astype(x.dtype) for x in inputs(track, size))
    d = np.zeros((size[0], size[1]), np.float32)
    names = [x.name for x in function.artifact.buffers]
    case = KernelCase(
        f"gemm.{track.name}.{'x'.join(map(str, size))}{suffix}", function.artifact.ptx,
        dict(zip(names, (a, b, d), strict=True)), (names[2],),
    )  # fmt: skip
    case.built = function.artifact
    return case
