"""Casts to narrow types."""

from deep_gemm.utils.math import per_block_cast_to_fp8, per_token_cast_to_fp4, per_token_cast_to_fp8

__all__ = ["per_block_cast_to_fp8", "per_token_cast_to_fp4", "per_token_cast_to_fp8"]
