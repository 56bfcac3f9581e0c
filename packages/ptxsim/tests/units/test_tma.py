"""cp.async.bulk.tensor against numpy: ranks, swizzles, strides, boxes past the edge, fills, reductions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_samples import HEAD
from tma_kernels import (
    IN,
    box_bytes,
    elements,
    entry,
    load_box,
    load_module,
    load_text,
    places,
    room,
    store_box,
)

import ptxsim
from ptxsim import TensorMap

TYPES = [np.uint8, np.float16, np.int32, np.float64]


@st.composite
def boxes(draw):
    """(TensorMap over distinct elements, start coordinates)."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    rank, size = draw(st.integers(1, 5)), np.dtype(dtype).itemsize
    swizzle = draw(st.sampled_from([0, 32, 64, 128]))
    inner = draw(st.sampled_from([n for n in (16, 32, 64, 128, 256) if not swizzle or n <= swizzle])) // size
    box = (inner, *(draw(st.integers(1, 5)) for _ in range(rank - 1)))
    dims = tuple(draw(st.integers(max(1, b - 3), b + 4)) for b in box)
    pitch = -(-dims[0] * size // 16) * 16 // size  # rows start at multiples of 16 bytes
    shape = (*dims[:0:-1], pitch)
    array = np.arange(1, np.prod(shape) + 1).astype(dtype).reshape(shape)
    strides = tuple(array.strides[::-1][1:])
    element_strides = tuple(draw(st.sampled_from([1, 1, 2, 3])) for _ in range(rank))
    tmap = TensorMap(
        array, box, swizzle, dims, strides, element_strides, draw(st.sampled_from(["zero", "nan"]))
    )
    first, *others = [draw(st.integers(-b, d + 1)) for b, d in zip(box, dims, strict=True)]
    return tmap, (first // (16 // size) * (16 // size), *others)


def expected_load(tmap: TensorMap, start: tuple[int, ...], size: int) -> np.ndarray:
    memory = np.full(size, 0xFF, np.uint8)
    width, at = tmap.dtype.itemsize, places(tmap)
    nan = (b"\xf7\x7f" * 4)[:width] if width > 1 else b"\x7f"  # as an H200 fills
    outside = nan if tmap.fill == "nan" else bytes(width)
    for index, source in elements(tmap, start):
        data = tmap.array[source].tobytes() if source is not None else outside
        memory[at[index] : at[index] + width] = np.frombuffer(data, np.uint8)
    return memory


@settings(max_examples=120)
@given(boxes(), st.sampled_from(["program", "adverse"]))
def test_load(case, order):
    """In program order the main loop executes it, otherwise the handler."""
    tmap, start = case
    size = room(tmap)
    out, result = load_box(tmap, start, size, order=order)
    assert np.array_equal(out, expected_load(tmap, start, size)) and not result.findings
    assert result.stats["tma_bytes"] == box_bytes(tmap)


@settings(max_examples=60)
@given(boxes(), st.sampled_from(["program", "adverse", 1]))
def test_store(case, order):
    tmap, start = case
    data = np.random.default_rng(0).integers(0, 256, room(tmap), dtype=np.uint8)
    after, at, width = tmap.array.copy(), places(tmap), tmap.dtype.itemsize
    for index, target in elements(tmap, start):
        if target is not None:
            after[target] = data[at[index] : at[index] + width].view(tmap.dtype)[0]
    result = store_box(tmap, start, data, order=order)
    assert tmap.array.tobytes() == after.tobytes()
    assert any("before the tensor" in f.message for f in result.findings) == (min(start) < 0)


@pytest.mark.parametrize("target, severity", [("sm_90a", "error"), ("sm_100a", "review")])
@pytest.mark.parametrize("column, found", [(8, False), (4, True)])
def test_a_copy_starts_at_a_multiple_of_16_bytes(target, severity, column, found):
    """An H200 ends with an illegal instruction at others; no later chip was tried."""
    array, out = np.zeros((8, 64), np.float16), np.zeros(1024, np.uint8)
    text = load_text(2).replace("sm_100a", target)
    args = [TensorMap(array, (16, 8)), np.array([column, 0, 0, 0, 0], np.int32), out, 1024, 256]
    result = ptxsim.load(text).launch("k", args=args, block=32, shared_bytes=2048)
    said = [f.severity for f in result.findings if "multiples of 16 B" in f.message]
    assert said == [severity] * found


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_swizzle_of_a_tile(swizzle):
    """The pattern, written out for 16 rows: unit u of row r goes to u ^ (r * row bytes / 128)."""
    inner = swizzle or 128
    array = np.arange(16 * inner // 2, dtype=np.int16).reshape(16, -1)
    out, _ = load_box(TensorMap(array, (inner // 2, 16), swizzle), (0, 0), 16 * inner)
    units = out.view(np.int16).reshape(16, inner // 16, 8)
    for r in range(16):
        for u in range(inner // 16):
            mask = r * inner // 128 % (swizzle // 16) if swizzle else 0
            assert np.array_equal(units[r, u ^ mask], array[r, 8 * u : 8 * u + 8])


@pytest.mark.parametrize("swizzle, piece", [("128_atom32", 32), ("128_atom64", 64)])
def test_swizzle_of_larger_pieces(swizzle, piece):
    """Piece u of row r goes to u ^ r, as far as a row of 128 bytes has pieces (PTX ISA 5.5.6)."""
    array, count = np.arange(16 * 32, dtype=np.float32).reshape(16, 32), 128 // piece
    out, _ = load_box(TensorMap(array, (32, 16), swizzle), (0, 0), 2048)
    pieces, rows = out.view(np.float32).reshape(16, count, -1), array.reshape(16, count, -1)
    for r in range(16):
        for u in range(count):
            assert np.array_equal(pieces[r, u ^ r % count], rows[r, u])


# ---- reductions ----

BF16 = ml_dtypes.bfloat16
REDUCE = [
    ("add", np.float32), ("add", np.float16), ("add", BF16), ("add", np.int32), ("add", np.uint64),
    ("min", np.int32), ("max", np.uint32), ("min", np.float16), ("max", BF16), ("and", np.uint32),
    ("or", np.uint64), ("xor", np.uint32),
]  # fmt: skip
FOLD = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor}  # fmt: skip


@pytest.mark.parametrize("operation, dtype", REDUCE)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_reductions(operation, dtype, order):
    rng, dtype = np.random.default_rng(3), np.dtype(dtype)
    array = rng.integers(0, 100, (12, 128 // dtype.itemsize)).astype(dtype)
    data = rng.integers(0, 100, (8, 128 // dtype.itemsize)).astype(dtype)
    expected = array.copy()
    expected[6:] = FOLD[operation](array[6:], data[:6])  # two rows are past the edge
    form = f"cp.reduce.async.bulk.tensor.{operation}.tile"
    result = store_box(
        TensorMap(array, (128 // dtype.itemsize, 8)),
        (0, 6),
        data.reshape(-1).view(np.uint8),
        form,
        order=order,
    )
    assert np.array_equal(array, expected) and not result.findings


# ---- bulk groups ----

GROUPS = """
.reg .b32 %r<9>; .reg .b64 %m; .reg .pred %q;
mov.u32 %r0, dyn; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r0;
mov.b64 %m, map; cvta.param.u64 %m, %m;
st.shared.b32 [%r2], 1; st.shared.b32 [%r2+128], 2; fence.proxy.async.shared::cta; bar.sync 0;
setp.eq.u32 %q, %r1, 0; @!%q bra END;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {0, 0}], [%r0]; cp.async.bulk.commit_group;
add.u32 %r3, %r0, 128;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {0, 1}], [%r3]; cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read WAIT;
END: bar.sync 0; st.shared.b32 [%r2], 7; st.shared.b32 [%r2+128], 8;
"""
ENTRY = (
    HEAD
    + ".extern .shared .align 1024 .b8 dyn[];\n.visible .entry k(.param .align 64 .b8 map[128]) {{ {} ret; }}"
)


@pytest.mark.parametrize("order", ["program", "adverse", *range(6)])
@pytest.mark.parametrize("pending", [0, 1, 2])
def test_waiting_for_reads(pending, order):
    """A source may be overwritten once its group has been waited for; adverse order shows a missing wait."""
    array = np.zeros((2, 32), np.int32)
    module = ptxsim.load(ENTRY.format(GROUPS.replace("WAIT", str(pending))))
    result = module.launch("k", block=32, shared_bytes=256, args=[TensorMap(array, (32, 1))], order=order)
    assert (array == array[:, :1]).all()
    sure = [True, True] if order == "program" else [pending < 2, pending < 1]
    assert all(row[0] == i + 1 for i, row in enumerate(array) if sure[i])
    if order == "adverse" and pending == 2:
        assert array[:, 0].tolist() == [7, 8]
    if pending == 0:
        assert not [f for f in result.findings if f.kind == "race"]


# ---- clusters ----

MULTICAST = f"""{HEAD}.extern .shared .align 1024 .b8 dyn[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) .reqnctapercluster 4, 1, 1 {{
.reg .b32 %r<9>; .reg .b16 %h; .reg .b64 %m, %o, %w; .reg .pred %q, %k; .shared .align 8 .b8 bar[8];
mov.u32 %r0, dyn; mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank;
mov.b64 %m, map; cvta.param.u64 %m, %m;
setp.eq.u32 %q, %r1, 0; @%q mbarrier.init.shared.b64 [%r2], 1;
@%q mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 384;
fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@!%q bra WAIT; mul.lo.u32 %r4, %r3, 128; add.u32 %r4, %r4, %r0;
shl.b32 %r5, 1, %r3; not.b32 %r5, %r5; and.b32 %r5, %r5, 15; cvt.u16.u32 %h, %r5;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
 [%r4], [%m, {{0, %r3}}], [%r2], %h;
WAIT: mbarrier.try_wait.parity.shared.b64 %k, [%r2], 0; @!%k bra WAIT;
ld.param.u64 %o, [out]; mad.lo.u32 %r6, %r3, 128, %r1; mul.wide.u32 %w, %r6, 4; add.u64 %o, %o, %w;
mad.lo.u32 %r7, %r1, 4, %r0;
setp.eq.u32 %k, %r3, 0; @!%k ld.shared.b32 %r8, [%r7]; @!%k st.global.b32 [%o], %r8;
setp.eq.u32 %k, %r3, 1; @!%k ld.shared.b32 %r8, [%r7+128]; @!%k st.global.b32 [%o+128], %r8;
setp.eq.u32 %k, %r3, 2; @!%k ld.shared.b32 %r8, [%r7+256]; @!%k st.global.b32 [%o+256], %r8;
setp.eq.u32 %k, %r3, 3; @!%k ld.shared.b32 %r8, [%r7+384]; @!%k st.global.b32 [%o+384], %r8;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }}"""


ORDERS = [("program", False), ("program", True), ("adverse", True), (4, True)]  # (order, checked)


@pytest.mark.parametrize("order, checks", ORDERS)
def test_multicast(order, checks):
    """Each CTA sends its row to the three others, whose own barriers count it."""
    array, out = np.arange(128, dtype=np.int32).reshape(4, 32), np.full((4, 4, 32), -1, np.int32)
    args = [TensorMap(array, (32, 1)), out]
    result = ptxsim.load(MULTICAST).launch(
        "k", grid=4, block=32, shared_bytes=512, args=args, order=order, checks=checks
    )
    assert result.verdict == ("clean" if checks else "not checked"), result.findings
    expected = np.broadcast_to(array, (4, 4, 32)).copy()
    expected[np.arange(4), np.arange(4)] = -1
    assert np.array_equal(out, expected) and result.stats["tma_bytes"] == 512


PAIR = f"""{HEAD}.extern .shared .align 1024 .b8 dyn[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) .reqnctapercluster 2, 1, 1 {{
.reg .b32 %r<9>; .reg .b64 %m, %o, %w; .reg .pred %q, %k; .shared .align 8 .b8 bar[8];
mov.u32 %r0, dyn; mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank;
mov.b64 %m, map; cvta.param.u64 %m, %m;
setp.eq.u32 %q, %r1, 0; @%q mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mapa.shared::cluster.u32 %r5, %r2, 0;
setp.eq.u32 %k, %r3, 0; and.pred %k, %k, %q; @%k mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;
@%q cp.async.bulk.tensor.2d.GROUPshared::cluster.global.mbarrier::complete_tx::bytes
 [%r0], [%m, {{0, %r3}}], [%r5];
setp.eq.u32 %k, %r3, 0; @!%k bra MEET;
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %k, [%r2], 0; @!%k bra WAIT;
MEET: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.param.u64 %o, [out]; mad.lo.u32 %r6, %r3, 32, %r1; mul.wide.u32 %w, %r6, 4; add.u64 %o, %o, %w;
mad.lo.u32 %r7, %r1, 4, %r0; ld.shared.b32 %r8, [%r7]; st.global.b32 [%o], %r8;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }}"""


@pytest.mark.parametrize("order, checks", ORDERS)
def test_pair_reports_to_one_barrier(order, checks):
    """cta_group::2: the load of CTA 1 counts on the barrier of CTA 0."""
    array, out = np.arange(64, dtype=np.int32).reshape(2, 32), np.zeros((2, 32), np.int32)
    module = ptxsim.load(PAIR.replace("GROUP", "cta_group::2."))
    args = [TensorMap(array, (32, 1)), out]
    result = module.launch("k", grid=2, block=32, shared_bytes=256, args=args, order=order, checks=checks)
    assert not [f for f in result.findings if f.severity == "error"], result.findings
    assert np.array_equal(out, array)


def test_without_the_group_the_other_cta_is_out_of_reach():
    array = np.zeros((2, 32), np.int32)
    result = ptxsim.load(PAIR.replace("GROUP", "")).launch(
        "k", grid=2, block=32, shared_bytes=256, args=[TensorMap(array, (32, 1)), array.copy()]
    )
    assert "cluster" in [f.kind for f in result.findings]


# ---- misuse ----


@pytest.mark.parametrize("forms", [
    "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    " [%r1], [%rd1, {%r1, %r1}], [%r1], {};",  # of three dimensions and more
    "cp.async.bulk.tensor.3d.global.shared::cta.im2col.bulk_group [%rd1, {%r1, %r1, %r1}], [%r1];",
    "cp.async.bulk.tensor.3d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"
    " [%r1], [%rd1, {%r1, %r1, %r1, %r1, %r1}], [%r1];",  # of two dimensions alone
    "cp.reduce.async.bulk.tensor.1d.global.shared::cta.inc.tile.bulk_group [%rd1, {%r1}], [%r1];",
    "cp.async.bulk.tensor.1d.shared::cluster.global.bulk_group [%r1], [%rd1, {%r1}], [%r1];",
    "tensormap.replace.im2col.global_address.global.b1024.b64 [%rd1], %rd1;",
    "tensormap.replace.tile.rank.global.b1024.b64 [%rd1], %rd1;",
])  # fmt: skip
def test_refused_when_loading(forms):
    ptx = f"{HEAD}.visible .entry k() {{ .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .b16 %h; {forms} ret; }}"
    with pytest.raises(ptxsim.PtxError, match="line 4"):
        ptxsim.load(ptx)


TILE = np.zeros((4, 32), np.int32)


@pytest.mark.parametrize("options, message", [
    ({"box": (32, 4, 1)}, "rank"), ({"box": (257, 1)}, "1..256"), ({"box": (3, 1)}, "multiple of 16"),
    ({"box": (32, 1), "swizzle": 64}, "exceeds"), ({"box": (8, 1), "swizzle": 16}, "swizzle"),
    ({"box": (8, 1), "strides": (24,)}, "multiples of 16"), ({"box": (8, 1), "dims": (32, 5)}, "reach"),
    ({"box": (8, 1), "element_strides": (1, 9)}, "1..8"), ({"box": (8, 1), "fill": "one"}, "fill"),
    ({"box": (8, 1), "byte_offset": 8}, "multiple of 16"),
])  # fmt: skip
def test_tensor_maps_that_the_driver_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        TensorMap(TILE, **options)


def test_right_use_is_clean():
    for tmap in (TensorMap(np.zeros(64, np.int32), (32,)), TensorMap(TILE, (32, 4), 128)):
        _, result = load_box(tmap, (0,) * tmap.rank, box_bytes(tmap), checks=True)
        assert result.verdict == "clean", result.findings


def test_expecting_other_bytes_than_come():
    """Half the bytes announced: the phase never completes with 0 left, or early: both are findings."""
    tmap, out = TensorMap(TILE.copy(), (32, 4)), np.zeros(512, np.uint8)
    args = [tmap, np.zeros(5, np.int32), out, 512, 1024]
    result = load_module(2).launch("k", block=32, shared_bytes=1024, args=args)
    assert {"deadlock", "tx-count"} & {f.kind for f in result.findings}


def stored_by(guard: str, *, tmap: TensorMap, start: tuple[int, ...] = (0, 0), order="program") -> list:
    """Findings of a store of one box by the threads of 64 for which `guard` sets %k."""
    module = ptxsim.load(
        entry(f"""
    {IN} fence.proxy.async.shared::cta; bar.sync 0; {guard} @!%k bra END;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {{%c0, %c1}}], [%r3];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    END:""")
    )
    at, size = np.array([*start, 0, 0, 0], np.int32), box_bytes(tmap)
    data = np.arange(size, dtype=np.uint8)
    args = [tmap, at, data, size, 0]
    return module.launch("k", block=64, shared_bytes=size + 1024, args=args, order=order).findings


ONE_THREAD = "setp.eq.u32 %k, %r1, 0;"
ONE_OF_EACH_WARP = "and.b32 %r9, %r1, 31; setp.eq.u32 %k, %r9, 0;"


@pytest.mark.parametrize("order", ["program", "adverse", 1])
@pytest.mark.parametrize(("guard", "expected"), [(ONE_THREAD, []), (ONE_OF_EACH_WARP, ["race review"])])
def test_warps_that_store_the_same_box_are_to_be_reviewed(guard, expected, order):
    found = stored_by(guard, tmap=TensorMap(TILE.copy(), (32, 4)), order=order)
    assert [f"{f.kind} {f.severity}" for f in found] == expected, [str(f) for f in found]
    assert all("threads 0 and 32 each issue" in f.message for f in found)


@pytest.mark.parametrize("order", ["program", "adverse", 1])
@pytest.mark.parametrize("inside", [True, False])
def test_a_store_wholly_outside_of_the_tensor_is_work_for_nothing(inside, order):
    tmap = TensorMap(TILE.copy(), (32, 4))
    start = (0, tmap.dims[1] - 1 + (not inside))  # its first row is the last one of the tensor, or beyond
    found = stored_by(ONE_THREAD, tmap=tmap, start=start, order=order)
    assert [(f.kind, f.severity) for f in found] == ([] if inside else [("out-of-bounds", "review")])
    assert inside or found[0].evidence["cost"] == tmap.box_bytes
