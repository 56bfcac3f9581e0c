"""Where things lie: swizzles, matrix descriptors, register fragments, tensor memory.

Pure functions of numpy index arrays; nothing here keeps state.
"""

from .descriptors import (
    MMA_K,
    InstructionDescriptor,
    MatrixDescriptor,
    decode_instruction_descriptor,
    decode_matrix_descriptor,
    encode_matrix_descriptor,
    operand_addresses,
)
from .fragments import ldmatrix, mma_a, mma_b, mma_d, movmatrix, wgmma_a, wgmma_d
from .swizzle import PERIOD, SPAN, swizzle
from .tmem import LOAD_SHAPES, data_path, load_layout, operand_layout, result_layout

__all__ = [
    "LOAD_SHAPES",
    "MMA_K",
    "PERIOD",
    "SPAN",
    "InstructionDescriptor",
    "MatrixDescriptor",
    "data_path",
    "decode_instruction_descriptor",
    "decode_matrix_descriptor",
    "encode_matrix_descriptor",
    "ldmatrix",
    "load_layout",
    "mma_a",
    "mma_b",
    "mma_d",
    "movmatrix",
    "operand_addresses",
    "operand_layout",
    "result_layout",
    "swizzle",
    "wgmma_a",
    "wgmma_d",
]
