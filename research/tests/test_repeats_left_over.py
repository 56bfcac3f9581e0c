"""Compared clusters that differ without an event, or in something that a launch cannot restore."""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.grid.repeats import recording, runner
from research.truth import compared_clusters as bench

CLUSTERS = 6
HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout)
{
.shared .align 1024 .b8 s[4096];
.reg .b32 %t, %id, %s, %word, %a, %b, %first, %second, %value; .reg .b64 %in, %out, %own;
.reg .pred %later, %one, %early;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x; mov.u32 %id, %ctaid.x; mov.u32 %s, s; add.u32 %word, %s, 1024;
setp.ge.u32 %later, %id, 2; setp.eq.u32 %one, %t, 0;
not.pred %early, %later; and.pred %early, %early, %one;
"""
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%word], 32; bar.sync 0;"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"
KERNELS = {  # -> (body, kind of the finding in later clusters)
    "bytes announced and never sent": (
        """
        @%one mbarrier.init.shared.b64 [%s], 2; bar.sync 0; selp.b32 %value, 16, 0, %later;
        @%one mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s], %value;
        """,
        "mbarrier",
    ),
    "an mbarrier left in the middle of a phase": (
        """
        @%one mbarrier.init.shared.b64 [%s], 2; bar.sync 0;
        @%one mbarrier.arrive.shared.b64 _, [%s]; @%early mbarrier.inval.shared.b64 [%s];
        """,
        "mbarrier",
    ),
    "other columns freed first": (
        f"""
        {ALLOC} ld.shared.b32 %a, [%word]; bar.sync 0;
        {ALLOC} ld.shared.b32 %b, [%word];
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        selp.b32 %first, %a, %b, %later; selp.b32 %second, %b, %a, %later;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%a], {{%t}};
        {FREE} %first, 32; tcgen05.wait::st.sync.aligned; {FREE} %second, 32;
        """,
        "race",
    ),
}


def base(body: str) -> bench.Base:
    def arrays():
        return [np.arange(64, dtype=np.uint32), np.arange(4096, dtype=np.uint32)]

    shape = {"grid": CLUSTERS, "block": 32}
    return bench.Base("", f"{HEAD}{body}\nret;\n}}\n", shape, arrays)


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("name", KERNELS)
def test_clusters_that_end_otherwise_are_told_apart(name, order):
    body, kind = KERNELS[name]
    kernel = base(body)
    compared, checked = bench.both(kernel, kernel.ptx, order)
    assert compared == checked
    assert checked[0] in ("review", "error") and f": {kind}: " in checked[1][0][0]


def test_a_launch_that_runs_again_finds_all_arrays_as_they_were():
    """Later clusters add to existing values, which must not happen twice."""
    kernel = base(
        """
        mad.lo.u32 %a, %id, 64, %t; mul.wide.u32 %own, %a, 4; add.u64 %own, %out, %own;
        mov.u32 %value, 0; @%later ld.global.u32 %value, [%own];
        add.u32 %value, %value, 1; st.global.u32 [%own], %value;
        """
    )
    compared, checked = bench.both(kernel, kernel.ptx, "program")
    assert compared == checked and checked[0] == "clean"


def test_a_loop_without_an_end_is_soon_left_to_the_checks(monkeypatch):
    spent, repeats = [], runner.Runner._repeats

    def noted(self, index: int) -> bool:
        cluster, before = self.cluster, self.cluster.executed()
        same = repeats(self, index)
        spent.append((same, cluster.executed() - before))
        return same

    monkeypatch.setattr(runner.Runner, "_repeats", noted)
    kernel = base(
        """
        mov.u32 %a, 0; @!%later bra END;
        AGAIN: add.u32 %a, %a, 1; mul.lo.u32 %b, %a, %a; setp.ne.u32 %one, %b, 3; @%one bra AGAIN;
        END:
        """
    )
    compared, checked = bench.both(kernel, kernel.ptx, "program")
    assert compared == checked and checked[0] == "incomplete"
    assert [same for same, _ in spent] == [True, False]
    assert spent[1][1] < 4 * runner.ENOUGH < bench.LIMIT


def test_recordings_take_so_much_memory_and_no_more(monkeypatch):
    """Every cluster stores more words than the previous one; the findings do not depend on that."""
    kernel = base("mov.u32 %a, %id; AGAIN: st.shared.u32 [%word], %a; sub.u32 %a, %a, 1; "
                  "setp.lt.s32 %one, %a, 0; @!%one bra AGAIN;")  # fmt: skip
    held, keep = [], recording.Recordings.keep

    def noted(self, found) -> bool:
        kept = keep(self, found)
        held.append(self.held)
        return kept

    monkeypatch.setattr(recording.Recordings, "keep", noted)
    monkeypatch.setattr(recording, "MOST_BYTES", 5000)
    compared, checked = bench.both(kernel, kernel.ptx, "program")
    assert compared == checked
    assert len(held) < CLUSTERS and 5000 <= held[-1] < 2 * 5000
