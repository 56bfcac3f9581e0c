"""What the Ampere kernel must compute."""

from pathlib import Path

from tracks.common import Track


def gemm_ref(A, B_T):
    """A @ B_T.T in float32, for numpy, JAX and PyTorch arrays: A (M, K), B_T (N, K)."""
    if hasattr(A, "float"):
        return A.float() @ B_T.float().T
    return A.astype("float32") @ B_T.astype("float32").T


TRACK = Track("ampere", "build_gemm_pipelined", Path(__file__).parent / "kernels.py", True, gemm_ref)
