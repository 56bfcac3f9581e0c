"""Matrix operands in shared memory, as tcgen05.mma and wgmma read them through descriptors.

An operand is a list of chunks of 16 bytes, of which the canonical layouts (PTX ISA 9.7.16.5.1) consist.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ptxsim.isa.layouts.descriptors import decode_matrix_descriptor, operand_addresses
from ptxsim.isa.number_formats import DECODERS, IN_SHARED
from ptxsim.jit.simd_matrix import gather_halves
from ptxsim.machine.cluster import Cluster

K_BYTES = 32  # of a row of every kind, in one instruction; of B beside a sparse A twice that


@dataclass(frozen=True, eq=False)
class Chunks:
    """The 16-byte chunks of shared memory that an operand occupies; `index` is (rows, K) or, MN-major, (K,
    rows).
    """

    index: np.ndarray
    first: int  # bytes of the window touched
    last: int


@functools.lru_cache(maxsize=1024)
def operand_chunks(
    descriptors: tuple[int, ...],
    rows: int,
    width: int,
    mn: bool,
    chip: str = "sm_100",
    k_bytes: int = K_BYTES,
) -> Chunks:
    """Chunks of consecutive K steps; elements have `width` bytes. ValueError: a descriptor is not legal."""
    depth, per = k_bytes // width, 16 // width
    decoded = [decode_matrix_descriptor(bits, chip) for bits in descriptors]
    addresses = np.concatenate([operand_addresses(d, rows, depth, width, mn) for d in decoded], axis=1)
    index = np.ascontiguousarray(addresses[::per].T if mn else addresses[:, ::per]) >> 4
    return Chunks(index, int(index.min()) * 16, int(index.max()) * 16 + 15)


def read_operand(cluster: Cluster, rank: int, chunks: Chunks, rows: int, kind: str, mn: bool) -> np.ndarray:
    """float32 (rows, K) of an operand in the window of CTA `rank`, of which no chunk lies outside."""
    if kind in ("f16", "bf16"):
        values = gather_halves(cluster.shared[rank], chunks.index, kind)
    else:
        decoder = IN_SHARED.get(kind) or DECODERS[kind]
        values = decoder.decode(cluster.shared_chunks[rank][chunks.index].view(decoder.raw))
    return np.ascontiguousarray(values.reshape(-1, rows).T) if mn else values.reshape(rows, -1)
