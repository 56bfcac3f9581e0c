"""Arrivals of several lanes by one instruction: a chip does not carry any over to the next phase."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

KERNEL = """.visible .entry k(.param .u64 p) {{
  .reg .b32 %t, %bar, %lane; .reg .b64 %s, %p, %at; .reg .pred %other, %out;
  .shared .align 8 .b8 bar[8];
  mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; mov.u32 %bar, bar; setp.ne.u32 %other, %t, 0;
  @!%other mbarrier.init.shared.b64 [%bar], {count};
  bar.sync 0;
  setp.ge.u32 %out, %lane, {lanes};
  {arrive}
  ld.param.u64 %p, [p]; mul.wide.u32 %at, %t, 4; add.u64 %at, %at, %p; st.global.u32 [%at], %t;
  ret;
}}"""
PLAIN = "@!%out mbarrier.arrive.shared.b64 _, [%bar];"
BY_TURNS = "setp.ne.u32 %out, %lane, 0; " + PLAIN + " setp.ne.u32 %out, %lane, 1; " + PLAIN
FORMS = [
    PLAIN,
    "@!%out mbarrier.arrive.shared.b64 %s, [%bar];",
    "@!%out mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 0;",
    "mapa.shared::cluster.u32 %bar, %bar, 0; "
    "@!%out mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];",
]


def _findings(arrive: str, count: int, lanes: int, block: int = 32) -> list:
    text = HEAD + KERNEL.format(arrive=arrive, count=count, lanes=lanes)
    return ptxsim.load(text).launch("k", block=block, args=[np.zeros(block, np.uint32)]).findings


@pytest.mark.parametrize("arrive", FORMS)
@pytest.mark.parametrize("count, lanes, block", [(31, 32, 32), (1, 2, 32), (255, 32, 256)])
def test_more_than_the_phase_expects_is_an_error(arrive, count, lanes, block):
    """An H200 ends the launch, whatever the form (`research/chip/arrive_at_once.cu`)."""
    first, *more = _findings(arrive, count, lanes, block)
    assert first.severity == "error" and "unspecified launch failure" in first.message, first
    assert f"lacks {min(count, 31)} of its {count}:" in first.message
    assert f"arrive on it at PTX line 11, but it has init({count})" in first.message or "expect" in arrive
    assert not [finding for finding in more if finding.severity != "review"]


@pytest.mark.parametrize(
    "arrive, count, lanes, block",
    [(PLAIN, 32, 32, 32), (PLAIN, 64, 32, 64), (PLAIN, 7, 1, 256), (BY_TURNS, 1, 2, 32)],
)
def test_arrivals_of_several_instructions_go_on_to_the_next_phase(arrive, count, lanes, block):
    found = _findings(arrive, count, lanes, block)
    assert not [finding for finding in found if "launch failure" in finding.message], found


def test_a_drop_beyond_the_phase_is_an_error():
    """It is told by the next phase, which expects nothing."""
    first, *_ = _findings("@!%out mbarrier.arrive_drop.shared.b64 _, [%bar];", 31, 32)
    assert first.severity == "error" and "arrival" in first.message
