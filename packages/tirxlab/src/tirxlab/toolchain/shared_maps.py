"""Copies that need the same tensor map get one, in every build of a kernel.

TVM finds an earlier map again by the address of `buffer.data`, an object that is made for each question and
freed at once: whether two copies share a map, hence what parameters the kernel has, was left to chance.
The buffer itself lives as long as its map does. Importing this file mends TVM.
"""

from __future__ import annotations

from tvm.backend.cuda.tile_primitive.copy_async import tma

_base_of = tma._buffer_base


def buffer_base(buffer, *, auto: bool, stage: str):
    """(base pointer, what tells it from others, byte offset) of a view of global memory."""
    base, _, offset = _base_of(buffer, auto=auto, stage=stage)
    return base, f"{hash(buffer)}:{base}", offset


tma._buffer_base = buffer_base
