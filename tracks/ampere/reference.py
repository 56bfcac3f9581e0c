"""What the Ampere kernels must compute, and the ladder they form."""

from pathlib import Path

from tracks.common import Rung, Track

TYPES = ({"out": "bfloat16"}, {"out": "float32"})
ONE_TILE: tuple[tuple, dict] = ((64, 64, 64), {})
UNEVEN = ((200, 392, 136), {"out": "bfloat16"})  # edges in every direction, a last K tile of 8
LONG: tuple[tuple, dict] = ((72, 136, 584), {})  # more K tiles than a ring holds in two rounds
TALL: tuple[tuple, dict] = ((2184, 264, 8), {})  # more rows of tiles than a group has


def gemm_ref(A, B_T):
    """A @ B_T.T in float32, for numpy, JAX and PyTorch arrays: A (M, K), B_T (N, K)."""
    if hasattr(A, "float"):
        return A.float() @ B_T.float().T
    return A.astype("float32") @ B_T.astype("float32").T


def _rung(number: int, name: str, title: str, *cases) -> Rung:
    return Rung(number, f"build_gemm_{name}", title, variants=TYPES, cases=(ONE_TILE, UNEVEN, LONG, *cases))


RUNGS = (
    Rung(1, "build_gemm_pipelined", "the walkthrough: 64 x 64, two stages, ld.shared",
         cases=(((64, 64, 64), {}), ((128, 192, 80), {}))),
    _rung(2, "ldmatrix", "fragments by ldmatrix"),
    _rung(3, "swizzle", "K tiles of 64, XOR swizzle, 3 stages"),
    _rung(4, "wide", "128 x 256, warp tiles of 64 x 64"),
    _rung(5, "fragments", "two sets of fragments"),
    _rung(6, "one_barrier", "one barrier a K tile"),
    _rung(7, "64x96", "warp tiles of 64 x 96"),
    _rung(8, "rows", "rung 6, D written in whole rows"),
    _rung(9, "blocks", "tiles in blocks", TALL),
)  # fmt: skip
TRACK = Track("ampere", "Ampere", Path(__file__).parent / "kernels.py", (8, 0), gemm_ref, RUNGS)
