"""What the Hopper kernel must compute."""

from pathlib import Path

from tracks.common import Track


def gemm_ref(A, B):
    """A @ B in float32, for numpy, JAX and PyTorch arrays: A (M, K), B (K, N)."""
    if hasattr(A, "float"):
        return A.float() @ B.float()
    return A.astype("float32") @ B.astype("float32")


TRACK = Track("hopper", "build_gemm_m64n64", Path(__file__).parent / "kernels.py", False, gemm_ref)
