"""Tensor copies by TMA: ranks 1-5, swizzles, edges, element strides, types, stores, reductions, multicast."""

from __future__ import annotations

import math

import numpy as np

from research.chip.case import Case, program
from research.chip.cases.copies import PLAIN, START, TX, WAIT

SHARED = 32768
READ = """mov.u32 %x2, {bytes};
mul.wide.u32 %y1, %t, 16; add.u64 %y1, %out, %y1; shl.b32 %x4, %t, 4; add.u32 %x4, %sm, %x4; mov.u32 %x5, 0;
READ: ld.shared.v4.b32 {{%o0, %o1, %o2, %o3}}, [%x4]; st.global.v4.b32 [%y1], {{%o0, %o1, %o2, %o3}};
add.u32 %x4, %x4, 512; add.u64 %y1, %y1, 512; add.u32 %x5, %x5, 512; setp.lt.u32 %s2, %x5, %x2; @%s2 bra READ;
"""


def cases() -> list[Case]:
    found = [
        load(f"tma.rank{r}", (8,) * r, (16 if r == 1 else 8, *(4, 2, 2, 2)[: r - 1])) for r in range(1, 6)
    ]
    found += [load(f"tma.swizzle{s}", (64, 128), (s or 128, 16), np.uint8, s) for s in (0, 32, 64, 128)]
    found += [load(f"tma.swizzle{s}.offset", (64, 128), (s, 16), np.uint8, s, (32, 5)) for s in (32, 64, 128)]
    found += [
        load(f"tma.edge{i}", (20, 24), (16, 8), np.float16, 0, at)
        for i, at in enumerate([(16, 16), (-8, -3), (24, 0), (0, 19)])
    ]
    found += [load("tma.edge.nan", (20, 24), (16, 8), np.float16, 0, (16, 16), fill="nan")]
    found += [load("tma.edge.nan32", (20, 24), (16, 8), np.float32, 0, (16, 16), fill="nan")]
    found += [load("tma.edge.swizzle", (30, 40), (32, 16), np.float32, 128, (16, 20))]
    found += [
        load(f"tma.stride{i}", (32, 64), (16, 8), np.float32, 0, (4, 3), steps=s)
        for i, s in enumerate([(1, 2), (2, 1), (2, 4)])
    ]
    found += [
        load(f"tma.type.{np.dtype(k)}", (16, 32), (16, 4), k) for k in (np.uint16, np.int32, np.float64)
    ]
    found += [
        store("tma.store", ""),
        store("tma.store.swizzle", "", 128),
        store("tma.store.edge", "", 0, (20, 13)),
    ]
    found += [store(f"tma.reduce.{op}", op, 0, (0, 0), kind) for op, kind in REDUCTIONS]
    return [*found, multicast(), *own_maps()]


REDUCTIONS = [
    ("add", np.uint32),
    ("add", np.float32),
    ("min", np.int32),
    ("max", np.uint32),
    ("and", np.uint32),
    ("or", np.uint32),
    ("xor", np.uint32),
]


def tensor(dims: tuple, kind) -> np.ndarray:
    """A tensor of small integers; `dims` is innermost last."""
    return np.random.default_rng(8).integers(1, 100, dims).astype(kind)


def tensor_map(array: np.ndarray, box: tuple, swizzle=0, fill="zero", steps=None) -> dict:
    dims = array.shape[::-1]
    strides = tuple(int(array.itemsize * math.prod(dims[:i])) for i in range(1, len(dims)))
    return {
        "byte_offset": 0,
        "dtype": str(array.dtype),
        "dims": tuple(dims),
        "strides": strides,
        "box": box,
        "element_strides": steps or (1,) * len(box),
        "swizzle": swizzle,
        "fill": fill,
    }


def coordinates(at: tuple) -> str:
    return "{" + ", ".join(f"%r{i}" for i in range(len(at))) + "}"


def _moves(at: tuple) -> str:
    return (
        "".join(f"mov.b32 %r{i}, {c};" for i, c in enumerate(at))
        + "mov.b64 %y8, A_map; cvta.param.u64 %y8, %y8;\n"
    )


def load(name, dims, box, kind=np.float32, swizzle=0, at=None, fill="zero", steps=None) -> Case:
    """One load into shared memory; the output is the whole box as it lies there."""
    array = tensor(dims, kind)
    if swizzle or kind is np.uint8:
        array = (np.arange(math.prod(dims)) * 7 % 251).astype(kind).reshape(dims)
    at = at or (0,) * len(dims)
    counts = [box[0]]  # the innermost element stride is ignored (CUDA driver API, cuTensorMapEncodeTiled)
    counts += [-(-b // s) for b, s in zip(box[1:], (steps or (1,) * len(box))[1:], strict=True)]
    size = math.prod(counts) * array.itemsize
    padded = -(-size // 512) * 512
    body = f"""{START}{_moves(at)}
    @%s0 mbarrier.arrive.expect_tx.shared.b64 _, [%x1], {size};
    add.u32 %x9, %sm, 8192;
    @%s0 cp.async.bulk.tensor.{len(dims)}d.shared::cluster.global.{TX} [%x9], [%y8, {coordinates(at)}], [%x1];
    {WAIT} mov.u32 %sm, %x9;
    {READ.format(bytes=padded)}"""
    clear = _clear(padded)
    arrays = {"A": array, "out": np.zeros(padded // 4, np.uint32)}
    text = program(clear + body, ("A", "out"), maps=("A",))
    maps = {"A": tensor_map(array, box, swizzle, fill, steps)}
    return Case(name, text, arrays, ("out",), shared=SHARED, maps=maps)


def _clear(size: int) -> str:
    return f"""shl.b32 %x4, %t, 4; add.u32 %x4, %x4, %sm; mov.b32 %x3, 0; mov.u32 %x5, 0;
    CLEAR: st.shared.v4.b32 [%x4+8192], {{%x3, %x3, %x3, %x3}}; add.u32 %x4, %x4, 512; add.u32 %x5, %x5, 512;
    setp.lt.u32 %s2, %x5, {size}; @%s2 bra CLEAR; bar.sync 0;
    """


def store(name, operation, swizzle=0, at=(4, 3), kind=np.float32) -> Case:
    """Words 1, 2, 3, .. from shared memory to a box of a tensor."""
    array = tensor((16, 24), kind)
    number = "cvt.rn.f32.u32 %f0, %x6; mov.b32 %x6, %f0;" if kind is np.float32 else ""
    fill = f"""shl.b32 %x4, %t, 2; add.u32 %x4, %x4, %sm; mov.u32 %x5, %t;
    FILL: add.u32 %x6, %x5, 1; {number} st.shared.b32 [%x4], %x6; add.u32 %x4, %x4, 128; add.u32 %x5, %x5, 32;
    setp.lt.u32 %s2, %x5, 128; @%s2 bra FILL; fence.proxy.async.shared::cta; bar.sync 0;
    """
    move = (
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group"
        if operation
        else "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
    )
    body = f"""{fill} setp.eq.u32 %s0, %t, 0; {_moves(at)}
    @%s0 {move} [%y8, {coordinates(at)}], [%sm];
    @%s0 cp.async.bulk.commit_group; @%s0 cp.async.bulk.wait_group.read 0; @%s0 cp.async.bulk.wait_group 0;
    """
    box = (32, 4) if swizzle else (16, 8)
    full = f"{name}.{np.dtype(kind)}" if operation else name
    maps = {"A": tensor_map(array, box, swizzle)}
    return Case(full, program(body, ("A",), maps=("A",)), {"A": array}, ("A",), shared=SHARED, maps=maps)


def multicast() -> Case:
    """Each CTA of a pair fetches half of the tile for both."""
    array = tensor((8, 16), np.float32)
    body = f"""{START} mov.u32 %x3, %cluster_ctarank; {_moves((0, 0))} shl.b32 %r1, %x3, 2; mov.b16 %h0, 3;
    @%s0 mbarrier.arrive.expect_tx.shared.b64 _, [%x1], 512;
    {PLAIN} shl.b32 %x8, %x3, 8; add.u32 %x8, %x8, %sm;
    @%s0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.{TX}.multicast::cluster
        [%x8], [%y8, {{%r0, %r1}}], [%x1], %h0;
    {WAIT} shl.b32 %x7, %x3, 9; cvt.u64.u32 %y3, %x7; add.u64 %out, %out, %y3;
    {READ.format(bytes=512)} {PLAIN}"""
    arrays = {"A": array, "out": np.zeros(256, np.uint32)}
    maps = {"A": tensor_map(array, (16, 4))}
    text = program(body, ("A", "out"), maps=("A",))
    return Case("tma.multicast", text, arrays, ("out",), grid=2, cluster=2, shared=SHARED, maps=maps)


# ---- maps that the kernel makes or changes ----

# %y7 address of a map in global memory, %x8 in shared memory; the warp releases and acquires it
PUBLISH = """bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%y7], [%x8], 128;
fence.proxy.tensormap::generic.acquire.gpu [%y7], 128;
"""
FIELDS = {  # of a map of 64 rows of 32 words at %in; a copied map has other values
    "address": "global_address.shared::cta.b1024.b64 [%x8], %in",
    "rank": "rank.shared::cta.b1024.b32 [%x8], 1",
    "box0": "box_dim.shared::cta.b1024.b32 [%x8], 0, 32",
    "box1": "box_dim.shared::cta.b1024.b32 [%x8], 1, 8",
    "dim0": "global_dim.shared::cta.b1024.b32 [%x8], 0, 32",
    "dim1": "global_dim.shared::cta.b1024.b32 [%x8], 1, 6",
    "stride": "global_stride.shared::cta.b1024.b64 [%x8], 0, %y6",
    "step0": "element_stride.shared::cta.b1024.b32 [%x8], 0, 1",
    "step1": "element_stride.shared::cta.b1024.b32 [%x8], 1, 1",
    "type": "elemtype.shared::cta.b1024.b32 [%x8], 2",
    "interleave": "interleave_layout.shared::cta.b1024.b32 [%x8], 0",
    "swizzle": "swizzle_mode.shared::cta.b1024.b32 [%x8], 3",
    "fill": "fill_mode.shared::cta.b1024.b32 [%x8], 0",
}


def own_maps() -> list[Case]:
    """A zeroed map with every field set, and copies of a parameter with some fields changed."""
    zeros = "mov.b32 %x6, 0;"
    copied = (
        "mov.b64 %y5, A_map; shl.b32 %x7, %t, 2; cvt.u64.u32 %y4, %x7; add.u64 %y5, %y5, %y4;"
        "ld.param.b32 %x6, [%y5];"
    )
    return [
        _own_map("tensormap.made", zeros, FIELDS),
        _own_map("tensormap.address", copied, ["address"]),
        _own_map("tensormap.rows", copied, ["address", "dim1"]),
        _own_map("tensormap.stride", copied, ["address", "dim1", "stride"]),
        _own_map("tensormap.box", copied, ["address", "box1", "swizzle"]),
    ]


def _own_map(name: str, word: str, fields) -> Case:
    """Lane i writes word i of the map, lane 0 replaces fields, all release it, and a box is loaded through
    it.
    """
    changes = "\n".join(f"@%s0 tensormap.replace.tile.{FIELDS[field]};" for field in fields)
    body = f"""{_clear(1024)} {START} {_moves((0, 0))} ld.param.u64 %y7, [p_desc]; cvta.to.global.u64 %y7, %y7;
    {word} mov.b64 %y6, 256; add.u32 %x8, %sm, 5120; shl.b32 %x7, %t, 2; add.u32 %x7, %x7, %x8;
    st.shared.b32 [%x7], %x6; bar.warp.sync -1;
    {changes}
    {PUBLISH} cvta.global.u64 %y8, %y7; add.u32 %x9, %sm, 8192;
    @%s0 mbarrier.arrive.expect_tx.shared.b64 _, [%x1], 1024;
    @%s0 cp.async.bulk.tensor.2d.shared::cluster.global.{TX} [%x9], [%y8, {coordinates((0, 0))}], [%x1];
    {WAIT} mov.u32 %sm, %x9;
    {READ.format(bytes=1024)}"""
    arrays = {
        "A": tensor((64, 32), np.uint32),
        "in": np.arange(64 * 32, dtype=np.uint32).reshape(64, 32),
        "desc": np.zeros(32, np.uint32),
        "out": np.zeros(256, np.uint32),
    }
    text = program(body, ("A", "in", "desc", "out"), maps=("A",))
    maps = {"A": tensor_map(arrays["A"], (32, 4 if "box1" in fields else 8))}
    return Case(name, text, arrays, ("out",), shared=SHARED, maps=maps)
