"""A kernel that fills shared memory and tensor memory, lets one thread execute some work on them, and stores
tensor memory to the output.
"""

from __future__ import annotations

import math

import numpy as np

import ptxsim
from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor

START = 1024  # offset of the kernel's bytes in the shared window
COLUMNS = 512

_TEXT = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 bytes, .param .u64 cells, .param .u64 out)
{{
    .reg .b32 %r<32>; .reg .b64 %d<64>; .reg .pred %p<8>;
    .reg .b32 %w<4>, %v<16>;
    .shared .align 1024 .b8 tile[{size}];
    .shared .align 8 .b64 bar;
    .shared .align 4 .b32 where;
    ld.param.u64 %d1, [bytes];
    ld.param.u64 %d2, [cells];
    ld.param.u64 %d3, [out];
    mov.u32 %r1, %tid.x;
    {cluster}
    mad.wide.u32 %d1, %r20, {size}, %d1;
    mad.wide.u32 %d2, %r20, {tmem}, %d2;
    mad.wide.u32 %d3, %r20, {tmem}, %d3;
    mov.u32 %r2, tile;
    shl.b32 %r3, %r1, 2;
LOAD:
    cvt.u64.u32 %d4, %r3;
    add.s64 %d5, %d1, %d4;
    ld.global.b32 %r4, [%d5];
    add.u32 %r5, %r2, %r3;
    st.shared.b32 [%r5], %r4;
    add.u32 %r3, %r3, 512;
    setp.lt.u32 %p1, %r3, {size};
    @%p1 bra LOAD;
    mov.u32 %r6, where;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra MEET;
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r6], 512;
MEET:
    mov.u32 %r7, bar;
    setp.ne.u32 %p3, %r1, 0;
    @!%p3 mbarrier.init.shared::cta.b64 [%r7], 1;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
    ld.shared.b32 %r8, [%r6];
    and.b32 %r9, %r1, 96;
    shl.b32 %r9, %r9, 16;
    add.u32 %r9, %r8, %r9;
    mul.wide.u32 %d6, %r1, {row};
    add.s64 %d7, %d2, %d6;
    add.s64 %d8, %d3, %d6;
    mov.u32 %r10, 0;
FILL:
    {load}
    tcgen05.st.sync.aligned.32x32b.x{wide}.b32 [%r9], {{{words}}};
    add.s64 %d7, %d7, 4 * {wide};
    add.u32 %r9, %r9, {wide};
    add.u32 %r10, %r10, {wide};
    setp.lt.u32 %p1, %r10, {columns};
    @%p1 bra FILL;
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    fence.proxy.async;
    {sync}
    setp.eq.u32 %p4, %r1, %r1;
    @%p3 bra WAIT;
    {only}
    tcgen05.fence::after_thread_sync;
    {work}
    tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster{cast}.b64 [%r7]{mask};
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r7], 0;
    @!%p5 bra WAIT;
    tcgen05.fence::after_thread_sync;
    sub.u32 %r9, %r9, {columns};
    mov.u32 %r10, 0;
DRAIN:
    tcgen05.ld.sync.aligned.32x32b.x{wide}.b32 {{{words}}}, [%r9];
    tcgen05.wait::ld.sync.aligned;
    {store}
    add.s64 %d8, %d8, 4 * {wide};
    add.u32 %r9, %r9, {wide};
    add.u32 %r10, %r10, {wide};
    setp.lt.u32 %p1, %r10, {columns};
    @%p1 bra DRAIN;
    tcgen05.fence::before_thread_sync;
    {sync}
    @%p2 bra OUT;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r8, 512;
OUT:
    ret;
}}
"""
_ALONE = {"sync": "bar.sync 0;", "cluster": "mov.u32 %r20, 0;", "only": "", "cast": "", "mask": ""}
_PAIR = {
    "sync": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "cluster": "mov.u32 %r20, %cluster_ctarank;",
    "only": "setp.ne.u32 %p6, %r20, 0; @%p6 bra WAIT;",
    "cast": ".multicast::cluster",
    "mask": ", 3",
}


def descriptor(offset: int, leading: int = 0, stride: int = 0, swizzle=0) -> int:
    """A matrix descriptor for bytes `offset` of the tile."""
    return encode_matrix_descriptor(MatrixDescriptor(START + offset, leading, stride, swizzle))


def run(work: str, tile: np.ndarray, cells: np.ndarray | None = None, group: int = 1, order="program"):
    """(tensor memory afterwards (CTAs, 128, columns) as uint32, the Result).

    work: PTX of one thread; %r8 is the first column of tensor memory. tile: bytes of shared memory, (CTAs,
    size). cells: initial tensor memory, (CTAs, 128, columns) uint32.
    """
    tile = np.ascontiguousarray(tile).view(np.uint8).reshape(group, -1)
    if cells is None:
        cells = np.zeros((group, 128, 64), np.uint32)
    cells, out = np.ascontiguousarray(cells).astype(np.uint32), np.zeros(cells.shape, np.uint32)
    columns = cells.shape[-1]
    text = _TEXT.format(
        work=work, size=tile.shape[1], columns=columns, row=4 * columns, tmem=512 * columns, group=group,
        **_columns(math.gcd(columns, 16)), **(_ALONE if group == 1 else _PAIR),
    )  # fmt: skip
    result = ptxsim.load(text).launch(
        "k",
        grid=(group, 1, 1),
        block=(128, 1, 1),
        cluster=(group, 1, 1),
        args=[tile, cells, out],
        order=order,
    )
    return out, result


def _columns(wide: int) -> dict:
    """The modifiers and registers that move so many columns of a lane at once."""
    words = [f"%v{i}" for i in range(wide)]
    load = " ".join(f"ld.global.b32 {word}, [%d7+{4 * i}];" for i, word in enumerate(words))
    store = " ".join(f"st.global.b32 [%d8+{4 * i}], {word};" for i, word in enumerate(words))
    return {"wide": wide, "words": ", ".join(words), "load": load, "store": store}


def serious(result) -> list[str]:
    return [f.message for f in result.findings if f.severity in ("error", "incomplete")]
