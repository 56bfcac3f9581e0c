"""PTX kernels for tests of TMA: a box to shared memory and out as bytes, bytes to a box; and in numpy."""

from __future__ import annotations

import functools

import numpy as np
from ptx_samples import HEAD

import ptxsim

DIMS = "\n".join(f"ld.global.b32 %c{i}, [%co+{4 * i}];" for i in range(5))
SETUP = f"""
.reg .b32 %r<12>, %c<5>; .reg .b64 %co, %p, %o, %m, %w; .reg .pred %q, %k;
.shared .align 8 .b8 bar[8];
ld.param.u64 %co, [pco]; ld.param.u64 %p, [pp]; ld.param.u32 %r0, [pn];
mov.u32 %r1, %tid.x; setp.eq.u32 %q, %r1, 0; mov.u32 %r2, bar; mov.u32 %r3, dyn;
mov.b64 %m, map; cvta.param.u64 %m, %m;
{DIMS}
@%q mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
"""
PARAMS = ".param .align 64 .b8 map[128], .param .u64 pco, .param .u64 pp, .param .u32 pn, .param .u32 pbytes"
LOOP = """
mad.lo.u32 %r4, %r1, 16, 0;
LOOP: setp.ge.u32 %k, %r4, %r0; @%k bra DONE;
add.u32 %r5, %r3, %r4; cvt.u64.u32 %w, %r4; add.u64 %o, %p, %w;
{move}
add.u32 %r4, %r4, 512; bra LOOP;
DONE:
"""
OUT = LOOP.format(
    move="ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r5]; st.global.v4.b32 [%o], {%r6, %r7, %r8, %r9};"
)
IN = LOOP.format(
    move="ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%o]; st.shared.v4.b32 [%r5], {%r6, %r7, %r8, %r9};"
)


def entry(body: str) -> str:
    return (
        f"{HEAD}.extern .shared .align 1024 .b8 dyn[];\n.visible .entry k({PARAMS}) {{ {SETUP} {body} ret; }}"
    )


def coordinates(rank: int) -> str:
    return "{" + ", ".join(f"%c{i}" for i in range(rank)) + "}"


@functools.cache
def load_module(rank: int):
    return ptxsim.load(load_text(rank))


def load_text(rank: int) -> str:
    """Kernel: box at the coordinates pco[] -> dynamic shared memory -> the first pn bytes of it -> pp."""
    copy = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    return entry(f"""
    ld.param.u32 %r10, [pbytes]; @!%q bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r10; {copy} [%r3], [%m, {coordinates(rank)}], [%r2];
    WAIT: mbarrier.try_wait.parity.shared.b64 %k, [%r2], 0; @!%k bra WAIT;
    {OUT}""")  # fmt: skip


@functools.cache
def store_module(rank: int, form: str = "cp.async.bulk.tensor"):
    """Kernel: pn bytes from pp -> dynamic shared memory -> the box at the coordinates pco[]."""
    dimension = form.replace(".tensor", f".tensor.{rank}d.global.shared::cta", 1)
    return ptxsim.load(entry(f"""
    {IN} fence.proxy.async.shared::cta; bar.sync 0; @!%q bra END;
    {dimension}.bulk_group [%m, {coordinates(rank)}], [%r3];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    END:"""))  # fmt: skip


def load_box(
    tmap: ptxsim.TensorMap, start: tuple[int, ...], size: int, **options
) -> tuple[np.ndarray, object]:
    """uint8 (size,) of shared memory after a load of one box (a multiple of 16), and the Result."""
    out = np.zeros(size, np.uint8)
    args = [tmap, np.array([*start, 0, 0, 0, 0], np.int32)[:5], out, size, box_bytes(tmap)]
    options = {"checks": False, "block": 32, "shared_bytes": size + 1024} | options
    return out, load_module(tmap.rank).launch("k", args=args, **options)


def store_box(
    tmap: ptxsim.TensorMap, start: tuple[int, ...], data: np.ndarray, form="cp.async.bulk.tensor", **options
):
    """Stores uint8 data, laid out as in shared memory, to one box; returns the Result."""
    args = [tmap, np.array([*start, 0, 0, 0, 0], np.int32)[:5], data, len(data), 0]
    options = {"checks": False, "block": 32, "shared_bytes": len(data) + 1024} | options
    return store_module(tmap.rank, form).launch("k", args=args, **options)


# ---- the same in numpy ----


def steps(tmap: ptxsim.TensorMap) -> tuple[int, ...]:
    """Traversal steps; TMA has none in the innermost dimension (CUDA driver API, cuTensorMapEncodeTiled)."""
    return (1, *tmap.element_strides[1:])


def box_shape(tmap: ptxsim.TensorMap) -> tuple[int, ...]:
    """Elements moved per dimension, outermost first."""
    return tuple(-(-b // e) for b, e in zip(tmap.box, steps(tmap), strict=True))[::-1]


def box_bytes(tmap: ptxsim.TensorMap) -> int:
    return int(np.prod(box_shape(tmap))) * tmap.dtype.itemsize


def room(tmap: ptxsim.TensorMap) -> int:
    """Bytes from the first to the last of a box in shared memory, rounded up to the unit of transfer."""
    return -(-(int(places(tmap).max()) + 1) // 1024) * 1024


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """The place of 16-byte units: address bits 7-9 onto bits 4-6, fewer for narrower patterns (PTX ISA
    5.5.6).
    """
    return address ^ ((address >> 7) % max(swizzle // 16, 1) << 4)


def places(tmap: ptxsim.TensorMap) -> np.ndarray:
    """Byte offset in shared memory of every element of a box, in the shape of the box."""
    shape, size = box_shape(tmap), tmap.dtype.itemsize
    row, column = np.divmod(np.arange(np.prod(shape)), shape[-1])
    linear = row * max(shape[-1] * size, tmap.swizzle) + column * size
    return (swizzled(linear // 16 * 16, tmap.swizzle) + linear % 16).reshape(shape)


def elements(tmap: ptxsim.TensorMap, start: tuple[int, ...]):
    """(index in the box, index in the tensor or None) of every element, outermost dimension first."""
    for index in np.ndindex(*box_shape(tmap)):
        at = [s + i * e for s, i, e in zip(start, index[::-1], steps(tmap), strict=True)]
        inside = all(0 <= a < d for a, d in zip(at, tmap.dims, strict=True))
        yield index, tuple(at[::-1]) if inside else None
