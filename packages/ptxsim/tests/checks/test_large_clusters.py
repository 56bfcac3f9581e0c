"""A cluster of more than 8192 threads: each warp counts as one thread, so its verdict is never `clean`."""

from __future__ import annotations

import pytest
from ptx_samples import HEAD

import ptxsim

KERNEL = """.visible .entry k() {{ .reg .b32 %x, %r; .shared .align 8 .b8 tile[4096];
  mov.u32 %x, %tid.x; shl.b32 %x, %x, 2; mov.u32 %r, tile; add.u32 %x, %x, %r; st.shared.u32 [%x], 1;
  {sync} mov.u32 %r, %cluster_ctarank; xor.b32 %r, %r, 1; mapa.shared::cluster.u32 %x, %x, %r;
  ld.shared::cluster.u32 %r, [%x]; {meet} ret;
}}"""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
LANES = "the cluster has 16384 threads; above 8192, the lanes of a warp are checked as one thread"


@pytest.mark.parametrize("sync, verdict", [(MEET, "incomplete"), ("", "error")])
def test_the_warps_of_a_large_cluster_are_checked(sync, verdict):
    text = HEAD + KERNEL.format(sync=sync, meet=MEET)
    result = ptxsim.load(text).launch("k", grid=16, cluster=16, block=1024)
    assert result.verdict == verdict and LANES in result.findings[-1].message
    races = [finding.message for finding in result.findings if finding.kind == "race"]
    assert bool(races) == (not sync) and all("by warp 0 of CTA" in race for race in races)
