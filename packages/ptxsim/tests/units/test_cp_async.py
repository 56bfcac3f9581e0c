"""cp.async: what is copied, and from when on the copy may be relied on, under every order."""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel

import ptxsim

ORDERS = ["program", "adverse", 1, 2]
OLD = 0xFFFF_FFFF  # initial contents of shared memory

# A kernel's `in` is the source of the copies; thread t copies from source + 16 t to %sm + 16 t.
SETUP = """
ld.param.u64 %y0, [pin]; cvta.to.global.u64 %y0, %y0; mul.wide.u32 %y1, %t, 16; add.u64 %y0, %y0, %y1;
shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0;
"""


def run(
    text: str, outputs: int, order="program", threads: int = 32, words: int = 4, expect=None, source=None
):
    """Outputs (outputs, threads) of a kernel after SETUP, and its source (threads, words)."""
    if source is None:
        source = np.arange(1, threads * words + 1, dtype=np.uint32).reshape(threads, words)
    out = np.zeros((outputs, threads), np.uint32)
    ptx = register_kernel(SETUP + text, 0, outputs, shared=32768)
    result = ptxsim.load(ptx).launch("k", block=threads, args=[source, out], order=order)
    assert {f.kind for f in result.findings} == set(expect or [])
    return out, source


def read(first: int, offset: int = 0) -> str:
    registers = ", ".join(f"%o{first + i}" for i in range(4))
    return f"ld.shared.v4.b32 {{{registers}}}, [%x1+{offset}];"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("level, size", [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_copies_its_bytes_and_no_more(order, level, size):
    copy = f"cp.async.{level}.shared.global.L2::128B [%x1], [%y0], {size};"
    text = f"{copy} cp.async.commit_group; cp.async.wait_group 0; {read(0)}"
    out, source = run(text, 4, order, expect=["uninitialized"] if size < 16 else [])
    expected = np.where(np.arange(4)[:, None] < size // 4, source.T, OLD)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("order", ORDERS)
def test_src_size_fills_with_zeros(order):
    copy = "and.b32 %x2, %t, 3; shl.b32 %x2, %x2, 2; cp.async.cg.shared::cta.global [%x1], [%y0], 16, %x2;"
    out, source = run(f"{copy} cp.async.wait_all; {read(0)}", 4, order)
    kept = np.arange(4)[:, None] < np.arange(32)[None, :] % 4
    assert np.array_equal(out, np.where(kept, source.T, 0))


def test_src_size_zero_reads_nothing():
    """Lanes that read no byte may hold any address (the guard of a tile that extends past the edge)."""
    copy = """
    setp.lt.u32 %p, %t, 8; selp.b32 %x2, 16, 0, %p; mul.wide.u32 %y2, %t, 65536;
    @!%p add.u64 %y0, %y0, %y2;
    cp.async.ca.shared.global [%x1], [%y0], 16, %x2; cp.async.wait_all;
    """
    out, source = run(copy + read(0), 4)
    assert np.array_equal(out, np.where(np.arange(32) < 8, source.T, 0))


def test_ignore_src():
    copy = "and.b32 %x2, %t, 1; setp.eq.u32 %p, %x2, 1; cp.async.ca.shared.global [%x1], [%y0], 16, %p;"
    out, source = run(f"{copy} cp.async.wait_all; {read(0)}", 4)
    assert np.array_equal(out, np.where(np.arange(32) % 2 == 1, 0, source.T))


def test_without_a_wait_the_data_may_not_be_there():
    text = f"cp.async.ca.shared.global [%x1], [%y0], 16; cp.async.commit_group; {read(0)}"
    late, source = run(text, 4, "adverse", expect=["race"])
    early, _ = run(text, 4, "program", expect=["race"])
    assert (late == OLD).all() and np.array_equal(early, source.T)


GROUPS = "".join(
    f"cp.async.ca.shared.global [%x1+{512 * i}], [%y0], 16; cp.async.commit_group;" for i in range(3)
)


@pytest.mark.parametrize("allowed, there", [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_wait_group_covers_all_but_the_youngest(allowed, there):
    text = f"{GROUPS} cp.async.wait_group {allowed}; {read(0)} {read(4, 512)} {read(8, 1024)}"
    out, source = run(text, 12, "adverse", expect=["race"] * (there < 3))
    for i in range(3):
        expected = source.T if i < there else np.full((4, 32), OLD)
        assert np.array_equal(out[4 * i : 4 * i + 4], expected)


def test_wait_group_does_not_cover_what_is_not_committed():
    text = f"cp.async.ca.shared.global [%x1], [%y0], 16; cp.async.wait_group 0; {read(0)}"
    assert (run(text, 4, "adverse", expect=["race"])[0] == OLD).all()
    text = text.replace("wait_group 0", "wait_all")
    assert np.array_equal(*(x if x.shape[0] == 4 else x.T for x in run(text, 4, "adverse")))


def test_an_empty_group_counts():
    """The tail of a pipeline commits empty groups so that wait_group can keep its number."""
    text = f"{GROUPS} cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 2; {read(0, 1024)}"
    out, source = run(text, 4, "adverse")
    assert np.array_equal(out, source.T)


def test_groups_are_per_thread():
    """Odd lanes commit two groups, even lanes one; wait_group 1 covers the odd lanes' first copy only."""
    text = """
    cp.async.ca.shared.global [%x1], [%y0], 16; cp.async.commit_group;
    and.b32 %x2, %t, 1; setp.eq.u32 %p, %x2, 1;
    @!%p bra SKIP;
    cp.async.ca.shared.global [%x1+512], [%y0], 16; cp.async.commit_group;
    cp.async.wait_group 1;
    SKIP:
    @%p ld.shared.b32 %o0, [%x1]; @!%p mov.b32 %o0, 7;
    """
    out, source = run(text, 1, "adverse")
    assert np.array_equal(out[0], np.where(np.arange(32) % 2 == 1, source[:, 0], 7))


BARRIER = """
add.u32 %x3, %sm, 16384; setp.eq.u32 %p, %t, 0;
@%p mbarrier.init.shared.b64 [%x3], {count}; bar.sync 0;
cp.async.ca.shared.global [%x1], [%y0], 16;
cp.async.mbarrier.arrive{noinc}.shared.b64 [%x3];
{arrive}
W: mbarrier.try_wait.parity.shared.b64 %p, [%x3], 0; @!%p bra W;
xor.b32 %x4, %x0, 512; add.u32 %x1, %sm, %x4;
"""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("noinc", [False, True])
def test_mbarrier_arrive_carries_the_copies_to_other_threads(order, noinc):
    """Thread t reads what thread t ^ 32 copied. Without .noinc the copies' arrivals are not in the count."""
    arrive = "" if noinc else "mbarrier.arrive.shared.b64 %y5, [%x3];"
    text = BARRIER.format(count=64, noinc=".noinc" * noinc, arrive=arrive)
    out, source = run(text + read(0), 4, order, threads=64)
    assert np.array_equal(out, source[np.arange(64) ^ 32].T)


def test_a_count_that_expects_one_arrival_more_deadlocks():
    text = BARRIER.format(count=65, noinc=".noinc", arrive="")
    run(text + read(0), 4, threads=64, expect=["deadlock"])


@pytest.mark.parametrize("change, kinds", [
    ("add.u32 %x1, %x1, 4;", ["misaligned"]),
    ("add.u64 %y0, %y0, 4;", ["misaligned"]),
    ("add.u32 %x1, %x1, 32768;", ["out-of-bounds"]),
    ("add.u64 %y0, %y0, 256;", ["out-of-bounds"]),
    ("add.u32 %x1, %x1, 16777216;", ["cluster"]),
])  # fmt: skip
def test_bad_addresses_are_findings(change, kinds):
    copy = "cp.async.cg.shared.global [%x1], [%y0], 16; cp.async.wait_all;"
    run(f"mov.u32 %o0, 0; {change} {copy}", 1, expect=kinds)


@pytest.mark.parametrize("text, message", [
    ("cp.async.cg.shared.global [%x1], [%y0], 8;", "cp.async.cg 16"),
    ("cp.async.ca.shared.global [%x1], [%y0], 12;", "4, 8 or 16"),
    ("cp.async.wait_group %x0;", "takes a constant"),
])  # fmt: skip
def test_refused(text, message):
    with pytest.raises(ptxsim.PtxError, match=message):
        ptxsim.load(register_kernel(SETUP + text, 0, 1, shared=512))
