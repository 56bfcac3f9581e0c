"""What units report while a kernel runs: the records of an instruction, and of one that differs by a word."""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel

import ptxsim
from ptxsim.events.bus import SILENT
from ptxsim.events.records import Arrival, BarArrival, CopyArrival, Fence, PhaseWait, SharedSpan
from ptxsim.observing import Observer, run_clusters
from ptxsim.units.fences_and_hints import meaning

# %x1, %x4: mbarriers with one arrival; %p: thread 0; %z: a word in the shared memory of CTA 1
SETUP = """
.reg .b32 %z, %zb;
ld.param.u64 %y0, [pin]; ld.param.u64 %y1, [pout]; cvta.to.global.u64 %y0, %y0; cvta.to.global.u64 %y1, %y1;
add.u32 %x1, %sm, 8192; add.u32 %x4, %x1, 8; setp.eq.u32 %p, %t, 0;
mapa.shared::cluster.u32 %z, %sm, 1; mapa.shared::cluster.u32 %zb, %x1, 1;
@%p mbarrier.init.shared.b64 [%x1], 1; @%p mbarrier.init.shared.b64 [%x4], 32;
fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
TX = "mbarrier::complete_tx::bytes"
SM = 1024  # offset of shared memory in the window
BAR = SM + 8192


def told(text: str, event: str) -> list:
    """The records of these events, of CTA 0 of two."""
    found: list = []

    def hear(self, cluster, split, record, *rest):
        if split.cta == 0:
            found.append(record)

    ear = type("Ear", (Observer,), {event: hear})()
    module = ptxsim.load(register_kernel(SETUP + text, 0, 0, shared=16384))
    data, out = np.arange(1024, dtype=np.uint32), np.zeros(1024, np.uint32)
    launch = module.prepare("k", 2, 32, 2, 0, [data, out])
    run_clusters(launch, launch.chosen(0, None), False, "program", [], 1, (ear,))
    return found


def spans(copy) -> list[tuple]:
    return [(s.rank, s.first - SM, s.last - SM) for s in copy.targets]


def one_copy(instruction: str):
    (copy,) = told(
        f"mov.u32 %x2, %cluster_ctarank; setp.eq.u32 %q, %x2, 0; and.pred %p, %p, %q;\n@%p {instruction}",
        "copy_issue",
    )
    return copy


def test_a_load_names_targets_and_barriers():
    copy = one_copy(f"cp.async.bulk.shared::cluster.global.{TX} [%sm], [%y0], 64, [%x1];")
    assert (copy.kind, copy.size, copy.source, copy.reduces) == ("load", 64, None, False)
    assert (spans(copy), copy.barriers, copy.tensor.dims) == ([(0, 0, 63)], ((0, BAR),), (64,))


def test_a_multicast_has_a_target_and_a_barrier_in_each_cta():
    copy = one_copy(
        f"cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster [%sm], [%y0], 64, [%x1], 3;"
    )
    assert (spans(copy), copy.barriers) == ([(0, 0, 63), (1, 0, 63)], ((0, BAR), (1, BAR)))
    assert copy.ranks == [0, 1]


@pytest.mark.parametrize("reduces", [False, True])
def test_a_store_says_what_it_reads_and_whether_it_reduces(reduces):
    op, how = ("cp.reduce", ".add.u32") if reduces else ("cp", "")
    copy = one_copy(f"{op}.async.bulk.global.shared::cta.bulk_group{how} [%y1], [%sm], 32;")
    assert (copy.kind, copy.targets, copy.barriers, copy.reduces) == ("store", (), (), reduces)
    assert copy.source is SharedSpan.run(0, SM, 32)


def test_a_word_for_another_cta_comes_from_no_memory():
    copy = one_copy(f"st.async.weak.shared::cluster.{TX}.u32 [%z], %t, [%zb];")
    assert (copy.kind, copy.copies, copy.size, spans(copy)) == ("load", False, 4, [(1, 0, 3)])
    assert copy.targets[0].inside


@pytest.mark.parametrize(
    "form, arrival",
    [
        ("arrive.shared.b64 _, [%x4];", Arrival(0xFFFF_FFFF, (0, BAR + 8), 32, True)),
        ("arrive.relaxed.cluster.shared::cta.b64 _, [%x4];", Arrival(0xFFFF_FFFF, (0, BAR + 8), 32, False)),
    ],
)
def test_an_arrival_says_whether_it_releases(form, arrival):
    assert told(f"mbarrier.{form}", "mbarrier_arrive") == [arrival]


@pytest.mark.parametrize("scope, releases", [("cta", False), ("cluster", True)])
def test_release_at_cta_scope_does_not_reach_another_cta(scope, releases):
    text = f"@%p mbarrier.arrive.release.{scope}.shared::cluster.b64 _, [%zb];"
    assert told(text, "mbarrier_arrive") == [Arrival(1, (1, BAR), 1, releases)]


@pytest.mark.parametrize("size", [0, 16])
def test_an_arrival_says_what_it_announces(size):
    text = f"@%p mbarrier.arrive.expect_tx.shared.b64 _, [%x1], {size};"
    assert told(text, "mbarrier_arrive") == [Arrival(1, (0, BAR), 1, True, size)]


@pytest.mark.parametrize("how, acquires", [("", True), (".relaxed.cta", False)])
def test_a_wait_says_whether_it_acquires(how, acquires):
    text = "@%p mbarrier.arrive.shared.b64 _, [%x1];\n"
    text += f"@%p mbarrier.test_wait.parity{how}.shared::cta.b64 %q, [%x1], 0;"
    assert told(text, "mbarrier_wait") == [PhaseWait(1, (0, BAR), 0, acquires)]


@pytest.mark.parametrize("how, waits", [("sync", True), ("arrive", False)])
def test_a_barrier_says_who_waits(how, waits):
    assert told(f"bar.{how} 3, 32;", "bar_arrive") == [BarArrival(3, 32, waits)]


@pytest.mark.parametrize("how, counted", [("", True), (".noinc", False)])
def test_copies_of_threads_say_whether_the_phase_counts_them(how, counted):
    text = f"@%p cp.async.mbarrier.arrive{how}.shared.b64 [%x1];"
    assert told(text, "cp_async_signal") == [CopyArrival(((0, BAR),), counted)]


@pytest.mark.parametrize(
    "fence, orders",
    [
        ("fence.acq_rel.gpu", Fence(True, False, False, False)),
        ("membar.gl", Fence(True, False, False, False)),
        ("fence.mbarrier_init.release.cluster", Fence(False, False, False, True)),
        ("fence.proxy.alias", Fence(False, False, False, False)),
        ("fence.proxy.async", Fence(False, True, True, False)),
        ("fence.proxy.async.global", Fence(False, False, True, False)),
        ("fence.proxy.async.shared::cta", Fence(False, True, False, False)),
    ],
)
def test_a_fence_says_what_it_orders(fence, orders):
    assert meaning(tuple(fence.split(".")[1:])) == orders


def test_nobody_hears_a_silent_bus():
    assert (SILENT.copy_issue(None, None, None), SILENT.heard) == (None, False)
