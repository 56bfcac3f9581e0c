"""The HBM, L2 and L1 traffic of recorded loads, stores and atomics of global
memory: one small kernel each.
"""

from dataclasses import replace

import numpy as np
import pytest

import ptxsim
from ptxsim.timing.chip import chip
from ptxsim.timing.execution import MemoryAccess
from ptxsim.timing.locality import Locality, evicted
from ptxsim.timing.predict import predict, sample
from ptxsim.timing.record import record
from ptxsim.timing.spread import spread

H200 = chip("h200")
COUNT = 1 << 16
KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) .maxntid 32
{{
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .reg .pred %p<4>;
    ld.param.b64 %rd1, [x];
    ld.param.b64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
{body}
    ret;
}}
"""
STRIDED = """
    mul.wide.u32 %rd3, %r1, {stride};
    add.s64 %rd4, %rd1, %rd3;
    ld.global.b32 %r3, [%rd4];
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd6, %rd2, %rd5;
    st.global.b32 [%rd6], %r3;
"""


def launch(body: str, grid: int = 1):
    arrays = [np.zeros(COUNT, np.uint32), np.zeros(COUNT, np.uint32)]
    return ptxsim.load(KERNEL.format(body=body)).prepare("k", grid, 32, 1, 0, arrays)


def accesses(body: str) -> tuple:
    execution = record(launch(body))
    return execution, [step for step in execution.warps[0] if type(step) is MemoryAccess]


@pytest.mark.parametrize("stride, sectors, fetched", [(4, 4, 128), (64, 32, 2048), (128, 32, 2048)])
def test_hbm_sends_pairs_of_sectors(stride, sectors, fetched):
    _, (load, _) = accesses(STRIDED.format(stride=stride))
    assert (load.passes, load.fetched) == (sectors, fetched)


@pytest.mark.parametrize("stride, passes", [(4, 1), (128, 32), (132, 1), (144, 4)])
def test_a_load_passes_l1_by_the_banks_of_its_lanes(stride, passes):
    _, (load, _) = accesses(STRIDED.format(stride=stride))
    assert load.lines == passes


def test_a_store_of_one_word_of_each_sector_leaves_it_in_part():
    body = "mul.wide.u32 %rd3, %r1, 32; add.s64 %rd4, %rd2, %rd3; st.global.b32 [%rd4+{at}], %r1;"
    assert accesses(body.format(at=0))[0].patched == 32 * 32
    whole = "".join(body.format(at=at) for at in range(0, 32, 4))
    assert accesses(whole)[0].patched == 0


BYTES = (
    "mul.wide.u32 %rd3, %r2, 32; add.s64 %rd4, %rd2, %rd3; cvt.u64.u32 %rd5, %r1; add.s64 %rd4, %rd4, %rd5;"
)


@pytest.mark.parametrize("stores, share", [(1, 1.0), (2, 0.5), (4, 0.25)])
def test_l2_puts_stores_of_parts_of_a_sector_together(stores, share):
    """Each CTA writes a sector several times: HBM receives it once."""
    found = predict(sample(launch(BYTES + "st.global.b8 [%rd4], %r1;" * stores, COUNT // 8), sms=132), H200)
    assert list(found.locality.once.values()) == [share]


def test_what_l2_puts_together_takes_time_of_hbm_once():
    near = Locality(H200, 132, writes_back=True, once={0: 0.125})
    assert near.written_seconds(0) == near.written_seconds(1) / 8 > 0
    assert Locality(H200, 132, writes_back=False).written_seconds(1) == 0.0


def test_what_is_read_after_l2_was_overwritten_waits_until_that_is_written_back():
    """H200: 32 MB take 3.3 us longer after a memset than after reads, 128 MB and more 8.6."""
    flushed = replace(H200, flushed=float(2**28))
    assert evicted(H200, 2**25, 0) == evicted(flushed, 0, 2**25) == 0.0
    longer = [read * evicted(flushed, read, 0) / H200.hbm_write_rate for read in (2**25, 2**27, 2**28)]
    assert longer == pytest.approx([3.3e-6, 8.7e-6, 8.7e-6], rel=0.1)
    assert evicted(flushed, 2**27, 2**27) == evicted(flushed, 2**28, 0)  # writes evict lines, too


@pytest.mark.parametrize("readers, since", [(4, 7 * 4096), (2, 3 * 4096), (1, 4096)])
def test_what_a_cta_has_read_since_is_what_its_readers_read_not_all_its_warps(readers, since):
    """Eight loads of 1 KiB, and the first again: with one producer warp the others evict nothing from L1."""
    loads = "".join(f"ld.global.b32 %r3, [%rd4+{16384 * i}];" for i in (*range(8), 0))
    body = f"""shr.u32 %r4, %r1, 5; setp.ge.u32 %p1, %r4, {readers}; @%p1 ret;
        mul.wide.u32 %rd3, %r1, 128; add.s64 %rd4, %rd1, %rd3; {loads}"""
    text, arrays = KERNEL.format(body=body).replace("maxntid 32", "maxntid 128"), np.zeros(COUNT, np.uint32)
    execution = record(ptxsim.load(text).prepare("k", 1, 128, 1, 0, [arrays, arrays]))
    assert [step.since for step in execution.warps[0] if type(step) is MemoryAccess] == [0] * 8 + [since]
    assert list(execution.again.values()) == [{since: 1024 * readers}]


def test_the_lanes_of_an_atomic_on_global_memory_are_one_instruction():
    body = "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; atom.global.add.u32 %r3, [%rd4], %r1;"
    execution, found = accesses(body)
    assert [(step.write, step.passes, step.lines) for step in found] == [(True, 4, 1)]
    assert list(execution.writes.values()) == [128]


def test_a_gather_is_told_from_a_stride():
    hashed = """
    mul.lo.u32 %r4, %r1, %r1;
    mul.lo.u32 %r4, %r4, 7919;
    and.b32 %r5, %r4, 65535;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.b32 %r3, [%rd4];
    st.global.b32 [%rd2], %r3;
"""
    assert accesses(hashed)[0].scattered and not accesses(STRIDED.format(stride=64))[0].scattered


def test_more_small_ctas_than_the_chip_starts_in_time_take_as_long_as_their_starts():
    body = STRIDED.format(stride=4)
    few, many = (predict(sample(launch(body, grid), sms=132), H200).cycles for grid in (132 * 40, 132 * 400))
    assert (many - few) / 360 == pytest.approx(H200.cta_pace * 132, rel=0.05)


def test_work_in_the_middle_of_a_grid_is_seen_when_its_ends_do_little():
    body = """
    setp.lt.u32 %p1, %r2, 100;
    setp.gt.u32 %p2, %r2, 900;
    or.pred %p3, %p1, %p2;
    @%p3 ret;
    mov.u32 %r3, 0;
turn:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 1000;
    @%p1 bra turn;
"""
    found = spread(launch(body, 1000))
    assert 100 <= found.largest <= 900 and found.mean == pytest.approx(0.8, abs=0.05)


def test_local_memory_that_nobody_has_written_is_no_traffic():
    """A checked run reports it; here the load is an ordinary instruction."""
    body = ".local .align 4 .b8 frame[16]; ld.local.u32 %r1, [frame]; st.global.u32 [%rd4], %r1;"
    assert predict(sample(launch(body, 132), sms=132), H200).cycles > 0
