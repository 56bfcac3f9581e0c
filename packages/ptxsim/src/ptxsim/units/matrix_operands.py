"""Matrix operands in shared memory, which tcgen05.mma and wgmma read through descriptors.

An operand is a list of 16-byte chunks, the units of the canonical layouts (PTX ISA 9.7.16.5.1).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ptxsim.isa.layouts.descriptors import decode_matrix_descriptor, operand_addresses
from ptxsim.isa.layouts.swizzle import Mode
from ptxsim.isa.number_formats import DECODERS, IN_SHARED
from ptxsim.jit.simd_matrix import gather_halves
from ptxsim.machine.cluster import Cluster

K_BYTES = 32  # bytes of a row in one instruction, for every kind; twice that for B if A is sparse


@dataclass(frozen=True, eq=False)
class Chunks:
    """The 16-byte chunks of shared memory that an operand occupies; `index` is (rows, K) or, MN-major, (K,
    rows).
    """

    index: np.ndarray
    first: int  # first and last byte of the window that is read
    last: int
    swizzle: Mode  # by which the first descriptor says that they are arranged


@functools.lru_cache(maxsize=1024)
def operand_chunks(
    descriptors: tuple[int, ...],
    rows: int,
    width: int,
    mn: bool,
    chip: str = "sm_100",
    k_bytes: int = K_BYTES,
) -> Chunks:
    """The chunks of consecutive K steps, one descriptor for each; width: bytes of an element. Raises
    ValueError if a descriptor is not legal.
    """
    depth, per = k_bytes // width, 16 // width
    decoded = [decode_matrix_descriptor(bits, chip) for bits in descriptors]
    addresses = np.concatenate([operand_addresses(d, rows, depth, width, mn) for d in decoded], axis=1)
    index = np.ascontiguousarray(addresses[::per].T if mn else addresses[:, ::per]) >> 4
    return Chunks(index, int(index.min()) * 16, int(index.max()) * 16 + 15, decoded[0].swizzle)


def read_operand(cluster: Cluster, rank: int, chunks: Chunks, rows: int, kind: str, mn: bool) -> np.ndarray:
    """float32 (rows, K): an operand in the window of CTA `rank`. All chunks must lie in the window."""
    if kind in ("f16", "bf16"):
        values = gather_halves(cluster.shared[rank], chunks.index, kind)
    else:
        decoder = IN_SHARED.get(kind) or DECODERS[kind]
        values = decoder.decode(cluster.shared_chunks[rank][chunks.index].view(decoder.raw))
    return np.ascontiguousarray(values.reshape(-1, rows).T) if mn else values.reshape(rows, -1)
