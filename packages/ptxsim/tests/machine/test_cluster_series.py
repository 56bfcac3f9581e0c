"""Clusters that run one after the other in compiled code behave as if Python started each of them."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.grid.repeats import runner
from ptxsim.machine.cluster import Cluster

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 list);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.shared .align 16 .b8 tile[512];
.local .align 8 .b8 own[8];
.reg .b64 %in, %out, %wide, %list;
.reg .b32 %t, %c, %i, %x, %y, %z, %at, %n, %status, %never; .reg .pred %p, %q;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %c, %n, %t;
mul.wide.u32 %wide, %i, 4; add.u64 %in, %in, %wide; ld.global.u32 %x, [%in];
mov.u32 %at, tile; shl.b32 %y, %t, 2; add.u32 %at, %at, %y;
"""
TAIL = "add.u64 %out, %out, %wide; st.global.u32 [%out], %x;\nret;\n}\n"
PRINT = """{{ .param .b64 a; .param .b64 b; .param .b32 r; mov.u64 %list, text; cvta.global.u64 %list, %list;
st.param.b64 [a], %list; st.param.b64 [b], 0; call.uni (r), vprintf, (a, b); ld.param.b32 %status, [r]; }}"""
BODIES = {
    "plain": "add.u32 %x, %x, %c;",
    "no warp writes what another finds": (
        "ld.shared.u32 %y, [%at]; ld.local.u32 %z, [own]; xor.b32 %y, %y, %z; xor.b32 %y, %y, %never;"
        "add.u32 %x, %x, %y; st.shared.u32 [%at], %x; st.local.u32 [own], %x;"
    ),
    "barrier": "st.shared.u32 [%at], %x; bar.sync 0; xor.b32 %at, %at, 128; ld.shared.u32 %x, [%at];",
    "some lanes leave": "and.b32 %y, %x, 3; setp.eq.u32 %p, %y, 0; @%p exit; bar.sync 0;",
    "a loop of its own length": (
        "and.b32 %y, %x, 63; "
        "AGAIN: add.u32 %x, %x, %y; sub.u32 %y, %y, 1; setp.gt.s32 %p, %y, 0; @%p bra AGAIN;"
    ),
    "longer than a turn": (
        "mov.u32 %y, 30000; "
        "AGAIN: add.u32 %x, %x, %y; sub.u32 %y, %y, 1; setp.ne.s32 %p, %y, 0; @%p bra AGAIN;"
    ),
    "one CTA prints": "setp.eq.u32 %p, %c, 3; setp.eq.u32 %q, %t, 5; and.pred %p, %p, %q;"
    "@!%p bra ON;" + PRINT.format() + "ON: add.u32 %x, %x, 1;",
    "one CTA reads beyond": (
        "setp.eq.u32 %p, %c, 2; mul.wide.u32 %list, %t, 65536; add.u64 %list, %in, %list;"
        "@%p ld.global.u32 %x, [%list];"
    ),
    "counts in global memory": (
        "mul.wide.u32 %list, %t, 0; sub.u64 %list, %out, %list; atom.global.add.u32 %x, [%list], %x;"
    ),
    "names its cluster": (
        "mov.u32 %y, %clusterid.x; mov.u32 %z, %smid; shl.b32 %y, %y, 10; xor.b32 %x, %y, %z;"
        "mov.u32 %y, %cluster_ctarank; shl.b32 %y, %y, 20; xor.b32 %x, %x, %y;"
    ),
    "meets its cluster": (
        "st.shared.u32 [%at], %x; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
        "ld.shared.u32 %x, [%at];"
    ),
    "waits for the CTA before": (
        "setp.eq.u32 %p, %c, 0; @%p bra ON; setp.ne.u32 %p, %t, 0; @%p bra MEET; sub.u64 %list, %in, 4;"
        "AGAIN: ld.acquire.gpu.global.u32 %z, [%list]; setp.eq.u32 %p, %z, 77; @!%p bra AGAIN;"
        "MEET: bar.sync 0;"
        "ON: add.u32 %y, %t, 1; setp.eq.u32 %p, %y, %n; bar.sync 1; @%p st.release.gpu.global.u32 [%in], 77;"
    ),
}


def launched(body: str, cluster: int, order: str, ctas: int = 8, block: int = 72):
    """(its output, its counts, its findings, its printed text)."""
    data = np.random.default_rng(5).integers(100, 1 << 20, ctas * block, np.uint32)
    out = np.zeros_like(data)
    module = ptxsim.load(HEAD + body + TAIL)
    result = module.launch(
        "k", grid=ctas, block=block, cluster=cluster, args=[data, out], checks=False, order=order, jobs=1
    )
    counts = {key: value for key, value in result.stats.items() if key != "seconds"}
    return out.tolist(), counts, [str(finding) for finding in result.findings], result.printed


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_a_series_does(body, order, cluster, monkeypatch):
    in_series = launched(body, cluster, order)
    monkeypatch.setattr(runner, "runs_in_series", lambda cluster: False)
    assert in_series == launched(body, cluster, order)


@pytest.mark.parametrize(("body", "most"), [("plain", 1), ("barrier", 1), ("one CTA prints", 2)])
def test_python_begins_those_alone_that_need_it(body, most, monkeypatch):
    begun = []
    begin = Cluster.begin
    monkeypatch.setattr(Cluster, "begin", lambda self, index: (begun.append(index), begin(self, index))[1])
    launched(BODIES[body], 1, "program")
    assert len(begun) == most


def test_a_series_of_long_clusters_stops_between_them(monkeypatch):
    counts = []
    run = runner.ClusterSeries.run
    monkeypatch.setattr(
        runner.ClusterSeries, "run", lambda self, rest: (counts.append(len(rest)), run(self, rest))[1]
    )
    launched(BODIES["a loop of its own length"].replace("63", "8191"), 1, "program", ctas=40, block=256)
    assert len(counts) > 1 and counts[0] == 40 and counts == sorted(counts, reverse=True)


def test_a_limit_of_instructions_counts_each_cluster_alone():
    endless = HEAD + "setp.eq.u32 %p, %c, 5; AGAIN: add.u32 %x, %x, 1; @%p bra AGAIN;" + TAIL
    data, out = np.zeros((2, 8 * 32), np.uint32)
    result = ptxsim.load(endless).launch(
        "k", grid=8, block=32, args=[data, out], checks=False, max_instructions=500_000
    )
    assert result.verdict != "not checked" and 500_000 < result.stats["warp_instructions"] < 700_000
    assert (out[: 5 * 32] == 1).all() and (out[5 * 32 :] == 0).all()
