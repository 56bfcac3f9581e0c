"""Casts to narrow types."""

from deep_gemm.utils.math import (
    cast_back_from_fp4,
    per_block_cast_to_fp8,
    per_custom_dims_cast_to_fp8,
    per_token_cast_to_fp4,
    per_token_cast_to_fp8,
)

__all__ = [
    "cast_back_from_fp4",
    "per_block_cast_to_fp8",
    "per_custom_dims_cast_to_fp8",
    "per_token_cast_to_fp4",
    "per_token_cast_to_fp8",
]
