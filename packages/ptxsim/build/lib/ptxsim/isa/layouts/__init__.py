"""Where things lie: swizzles, matrix descriptors, register fragments, tensor memory.

Pure functions of numpy index arrays; nothing here keeps state. Compared with an H100, all equal: 6000 random
pairs of wgmma descriptors (m64n16k16 f16; every swizzle, K- and MN-major, start inside an atom, base offset),
17 mma.sync shapes, ldmatrix, movmatrix, and what TMA writes with swizzle 0, 32, 64 and 128. Not compared with
hardware: tensor memory, the sm_100 bit fields, wgmma with A in registers, 128 B swizzles with larger atoms,
wmma (read from SASS).
"""

from ptxsim.isa.layouts.descriptors import (
    MMA_K,
    InstructionDescriptor,
    MatrixDescriptor,
    decode_instruction_descriptor,
    decode_matrix_descriptor,
    encode_matrix_descriptor,
    fixed_bits,
    operand_addresses,
)
from ptxsim.isa.layouts.fragments import ldmatrix, mma_a, mma_b, mma_d, movmatrix, wgmma_a, wgmma_d
from ptxsim.isa.layouts.swizzle import PERIOD, SPAN, swizzle
from ptxsim.isa.layouts.tmem import LOAD_SHAPES, data_path, load_layout, operand_layout, result_layout
from ptxsim.isa.layouts.wmma import wmma_fragment

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
    "fixed_bits",
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
    "wmma_fragment",
]
