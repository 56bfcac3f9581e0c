"""tcgen05 instructions that the main loop executes itself if nobody listens: their handlers leave the same
bits, and none is called.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_called import bits, both  # noqa: F401  (both is a fixture)
from warp_kernels import register_kernel, vector

from ptxsim.isa.layouts.tmem import LOAD_SHAPES

MOST = 64  # registers
ALLOC = """setp.lt.u32 %q, %t, 32; @%q tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%sm], 512;
bar.sync 0; ld.shared.b32 %x0, [%sm]; and.b32 %x1, %t, 96; shl.b32 %x1, %x1, 16; add.u32 %x0, %x0, %x1;"""
FREE = "bar.sync 0; @%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x9, 512;"


def access(rng, shape: str, stores: bool) -> str:
    """A load or store by all warps, of as many registers as the shape allows."""
    each, width, most = LOAD_SHAPES[shape]
    count = int(rng.choice([n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most and n * each <= MOST]))
    packed = "" if rng.random() < 0.5 else ".unpack::16b" if stores else ".pack::16b"
    half = int(rng.integers(0, 64)) if shape == "16x32bx2" else 0
    room = 512 - count * width * (2 if packed else 1) - half
    lane = 16 if shape != "32x32b" and rng.random() < 0.5 else 0
    at = f"[%x0+{(lane << 16) + int(rng.integers(0, room + 1))}]" + f", {half}" * (shape == "16x32bx2")
    name = f"tcgen05.{'st' if stores else 'ld'}.sync.aligned.{shape}.x{count}{packed}.b32"
    registers = vector("r" if stores else "o", 0, count * each)
    return f"{name} {at}, {registers};" if stores else f"{name} {registers}, {at};"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("loaded", LOAD_SHAPES)
@pytest.mark.parametrize("stored", LOAD_SHAPES)
def test_cells(both, stored, loaded, seed):  # noqa: F811
    """Two overlapping stores, and a load that sees what each leaves, and unwritten cells."""
    rng = np.random.default_rng([12, seed, *map(ord, stored + loaded)])
    stores = "".join(access(rng, shape, True) for shape in (stored, loaded))
    clear = "".join(f"mov.b32 %o{i}, 0;" for i in range(MOST))
    waits = [f"tcgen05.wait::{kind}.sync.aligned;" for kind in ("st", "ld")]
    load = access(rng, loaded, False)
    text = f"{ALLOC} mov.b32 %x9, %x0; {clear} {stores} {waits[0]} {load} {waits[1]} {FREE}"
    data = bits(rng, 4 * MOST).reshape(MOST, 128)
    arrays = [data, np.zeros((MOST, 128), np.uint32)]
    ptx = register_kernel(text, MOST, MOST, shared=64, target="sm_100a")
    for name in ("tcgen05.st", "tcgen05.ld"):
        both(ptx, arrays, name, block=128)
