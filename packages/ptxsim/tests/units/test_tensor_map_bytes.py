"""Tensor maps of 4-bit elements, two per byte (.b4x16, type 16U4_ALIGN8B of CUDA), and a map's 128 bytes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from ptx_samples import HEAD
from tma_kernels import box_bytes, load_box, room, store_box

import ptxsim
from ptxsim import TensorMap
from ptxsim.units.tensormap import encoded

FORMS = [(0, (16, 4)), (32, (32, 2)), (64, (64, 3)), (128, (128, 5))]  # swizzle, box in bytes
STARTS = [(0, 0), (64, 1), (-32, 2), (480, 7), (512, 0)]  # in 4-bit elements; the last lies outside
MEMORY = 0x7200_0000_0000


def matrix() -> np.ndarray:
    return np.random.default_rng(3).integers(1, 256, (8, 256), dtype=np.uint8)


def halved(start: tuple[int, int]) -> tuple[int, int]:
    return start[0] // 2, start[1]


@pytest.mark.parametrize("swizzle, box", FORMS)
@pytest.mark.parametrize("start", STARTS)
def test_a_coordinate_counts_half_bytes(swizzle, box, start):
    """A load and a store at column 2 c of half bytes equal those at column c of bytes."""
    by_byte, source = TensorMap(matrix(), box, swizzle), np.random.default_rng(4)
    by_half = dataclasses.replace(by_byte, packed=2)
    size = room(by_byte)
    expected, found = load_box(by_byte, halved(start), size)[0], load_box(by_half, start, size)[0]
    assert np.array_equal(found, expected)
    data = source.integers(0, 256, size, dtype=np.uint8)
    targets = [dataclasses.replace(tmap, array=matrix()) for tmap in (by_byte, by_half)]
    for tmap, at in zip(targets, (halved(start), start), strict=True):
        store_box(tmap, at, data)
    assert np.array_equal(targets[0].array, targets[1].array)


@pytest.mark.parametrize("column, verdict", [(64, "clean"), (63, "error")])
def test_a_copy_starts_with_a_byte(column, verdict):
    tmap = TensorMap(matrix(), (16, 4), packed=2)
    _, result = load_box(tmap, (column, 0), box_bytes(tmap), checks=True)
    assert result.verdict == verdict
    assert verdict == "clean" or "coordinate 63 of 4-bit elements is odd" in result.findings[0].message


def test_only_bytes_hold_two_elements():
    with pytest.raises(ValueError, match="packed=2"):
        TensorMap(np.zeros((8, 64), np.uint16), (16, 4), packed=2)


FROM_MEMORY = f"""{HEAD}.visible .entry k(.param .u64 map, .param .u64 out) {{
  .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
  .reg .b32 %t, %b, %x; .reg .b64 %m, %o; .reg .pred %p;
  mov.u32 %t, tile; mov.u32 %b, bar; ld.param.u64 %m, [map]; ld.param.u64 %o, [out];
  mbarrier.init.shared::cta.b64 [%b], 1; fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 64;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%t], [%m, {{64, 1}}], [%b];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;
  @!%p bra WAIT;
  ld.shared.u32 %x, [%t]; st.global.u32 [%o], %x; ret; }}"""


@pytest.mark.parametrize("packed, column", [(1, 64), (2, 32)])
def test_its_128_bytes_say_what_it_counts(packed, column):
    data, out = matrix(), np.zeros(1, np.uint32)
    opaque = np.frombuffer(encoded(TensorMap(data, (16, 4), packed=packed), MEMORY), np.uint8)
    memory = {MEMORY: data, MEMORY + 0x10000: opaque.copy(), MEMORY + 0x20000: out}
    result = ptxsim.load(FROM_MEMORY).launch("k", args=[MEMORY + 0x10000, MEMORY + 0x20000], memory=memory)
    assert not [f for f in result.findings if f.severity == "error"], result.findings
    assert out[0] == data[1, column : column + 4].view(np.uint32)[0]


REPLACE = """mov.u32 %x, 256; tensormap.replace.tile.global_dim.global.b1024.b32 [%m], 0, %x;
  mov.u32 %x, 8; tensormap.replace.tile.global_dim.global.b1024.b32 [%m], 1, %x;
  mov.b64 %s, 256; tensormap.replace.tile.global_stride.global.b1024.b64 [%m], 0, %s;
  fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%m], 128;
  mbarrier.init"""


def test_64_bytes_hold_all_but_extents_and_strides():
    """FlashInfer's gdn_cp_prefill copies 64 bytes of a map, then sets its address, extents and strides."""
    data, out = matrix(), np.zeros(1, np.uint32)
    copied = np.full(128, 0xEE, np.uint8)
    copied[:64] = np.frombuffer(encoded(TensorMap(data, (16, 4)), MEMORY), np.uint8)[:64]
    memory = {MEMORY: data, MEMORY + 0x10000: copied, MEMORY + 0x20000: out}
    text = FROM_MEMORY.replace("mbarrier.init", REPLACE, 1).replace("%m, %o;", "%m, %o, %s;", 1)
    result = ptxsim.load(text).launch("k", args=[MEMORY + 0x10000, MEMORY + 0x20000], memory=memory)
    assert not [f for f in result.findings if f.severity == "error"], result.findings
    assert out[0] == data[1, 64:68].view(np.uint32)[0]


CHANGE = "mov.u32 %x, {}; tensormap.replace.tile.global_dim.global.b1024.b32 [%m], 0, %x;\n"
OTHER = "mov.u32 %x, %cluster_ctarank; setp.eq.u32 %p, %x, 1; @%p bra GO;\n"
ALL = "GO: barrier.cluster.arrive; barrier.cluster.wait;\n"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.cluster [%m], 128;\n"


def test_each_cta_acquires_for_itself():
    """Whoever comes second is asked too, whether or not the first one has acquired the map."""
    data, out = matrix(), np.zeros(1, np.uint32)
    opaque = np.frombuffer(encoded(TensorMap(data, (16, 4)), MEMORY), np.uint8).copy()
    memory = {MEMORY: data, MEMORY + 0x10000: opaque, MEMORY + 0x20000: out}
    text = FROM_MEMORY.replace(
        "mbarrier.init", OTHER + CHANGE.format(128) + ACQUIRE + ALL + "mbarrier.init", 1
    )
    result = ptxsim.load(text).launch(
        "k", grid=2, cluster=2, args=[MEMORY + 0x10000, MEMORY + 0x20000], memory=memory
    )
    assert [f.severity for f in result.findings if "acquire" in f.message] == ["review"]


@pytest.mark.parametrize("before, fence, severity", [
    (False, True, None), (False, False, "review"), (True, True, None), (True, False, "error"),
])  # fmt: skip
def test_a_changed_map_is_acquired_before_a_copy_uses_it(before, fence, severity):
    data, out = matrix(), np.zeros(1, np.uint32)
    opaque = np.frombuffer(encoded(TensorMap(data, (16, 4)), MEMORY), np.uint8).copy()
    memory = {MEMORY: data, MEMORY + 0x10000: opaque, MEMORY + 0x20000: out}
    text = FROM_MEMORY.replace("%m, %o;", "%m, %o, %s;", 1)
    change = REPLACE.removesuffix("mbarrier.init").replace("%x, 256", "%x, 128")
    change = CHANGE.format(64) + change  # and back to what it was
    change = change if fence else change.partition("fence")[0]
    if before:  # a copy, the change, the same copy again
        start = text.index("mbarrier.arrive")
        copies = text[start : text.index("ld.shared")]
        again = change + copies.replace("WAIT", "AGAIN").replace("[%b], 0;", "[%b], 1;")
        text = text.replace("ld.shared", again + "ld.shared", 1)
    else:
        text = text.replace("mbarrier.init", change + "mbarrier.init", 1)
    result = ptxsim.load(text).launch("k", args=[MEMORY + 0x10000, MEMORY + 0x20000], memory=memory)
    found = [f for f in result.findings if f.kind == "proxy-fence" and "acquire" in f.message]
    assert [f.severity for f in found] == ([severity] if severity else [])
