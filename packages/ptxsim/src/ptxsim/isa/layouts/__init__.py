"""Data layouts: swizzles, matrix descriptors, register fragments, tensor memory.

Pure functions of numpy index arrays, without state. These agree with an H100: 6000 random pairs of wgmma
descriptors (m64n16k16 f16; every swizzle, K- and MN-major, start inside an atom, base offset), 17 mma.sync
shapes, ldmatrix, movmatrix, and TMA with swizzle 0, 32, 64 and 128. Not compared with hardware: tensor
memory, the sm_100 bit fields, wgmma with A in registers, 128 B swizzles with larger atoms, wmma (read from
SASS).
"""
