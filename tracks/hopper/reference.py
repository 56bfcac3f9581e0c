"""What the Hopper kernels must compute, and the ladder they form."""

from pathlib import Path

from tracks.common import Rung, Track

TYPES = ({"dtype": "bfloat16"}, {"dtype": "float16"})
EVEN: tuple[tuple, dict] = ((128, 256, 64), {})
UNEVEN = ((200, 392, 136), {"dtype": "float16"})  # edges in every direction, a last K tile of 8
LONG: tuple[tuple, dict] = ((72, 136, 584), {})  # more K tiles than a ring holds in two rounds
SEVERAL = ((264, 776, 264), {"sms": 4})  # few CTAs: each computes several tiles, and begins at other stages
TALL = ((2184, 264, 8), {"sms": 4})  # more rows of tiles than a group has


def gemm_ref(A, B):
    """A @ B in float32, for numpy, JAX and PyTorch arrays: A (M, K), B (K, N)."""
    if hasattr(A, "float"):
        return A.float() @ B.float()
    return A.astype("float32") @ B.astype("float32")


def _rung(number: int, name: str, title: str, *cases) -> Rung:
    return Rung(number, f"build_gemm_{name}", title, variants=TYPES, cases=(EVEN, UNEVEN, LONG, *cases))


RUNGS = (
    Rung(1, "build_gemm_m64n64", "the walkthrough: one warpgroup, 64 x 64", False,
         cases=(((64, 64, 64), {}), ((128, 192, 80), {}))),
    _rung(2, "ring", "128 x 128, a producer warp and a ring of 4 stages"),
    _rung(3, "wide", "128 x 256, setmaxnreg"),
    _rung(4, "lean", "lean barriers, one group of wgmma in flight"),
    _rung(5, "store", "stmatrix and TMA store"),
    _rung(6, "persistent", "persistent, the producer runs into the next tile", SEVERAL),
    _rung(7, "cluster", "cluster of 2, multicast", SEVERAL),
    _rung(8, "blocks", "tiles in blocks (no cluster)", SEVERAL, TALL),
    _rung(9, "curve", "tiles along a Hilbert curve, 128 CTAs", SEVERAL, TALL, ((512, 512, 64), {"sms": 2})),
)  # fmt: skip
TRACK = Track("hopper", "Hopper", Path(__file__).parent / "kernels.py", (9, 0), gemm_ref, RUNGS)
