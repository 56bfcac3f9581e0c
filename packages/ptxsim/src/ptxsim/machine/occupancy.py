"""How many CTAs of a launch one SM holds, by threads and shared memory (register use is not known here)."""

from __future__ import annotations

from ptxsim.machine.launch_view import Launch

SM_THREADS, SM_SHARED, SM_CTAS = 2048, 228 * 1024, 32  # CUDA C++ guide, compute capability 10.0


def ctas_per_sm(launch: Launch) -> int:
    """CTAs of the launch that one SM holds, at least one."""
    by_threads = SM_THREADS // (launch.warps_per_cta * 32)
    return max(1, min(SM_CTAS, by_threads, SM_SHARED // launch.shared_end))
