"""Which instructions signal an mbarrier, by the program text: their units declare it."""

import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.checks.static_flow import signal_rows

TX = "mbarrier::complete_tx::bytes"
SIGNALS = (
    "mbarrier.arrive.shared.b64 _, [bar];",
    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;",
    "mbarrier.arrive_drop.shared.b64 %state, [bar];",
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 64;",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];",
    "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];",
    f"cp.async.bulk.shared::cluster.global.{TX} [data], [%global], 64, [bar];",
    f"cp.async.bulk.tensor.2d.shared::cluster.global.tile.{TX} [data], [%global, {{%a, %a}}], [bar];",
    f"st.async.shared::cluster.{TX}.b32 [data], %a, [bar];",
    f"red.async.relaxed.cluster.shared::cluster.{TX}.add.u32 [data], %a, [bar];",
    f"clusterlaunchcontrol.try_cancel.async.shared::cta.{TX}.b128 [data], [bar];",
)
OTHERS = (
    "mbarrier.init.shared.b64 [bar], 1;",
    "mbarrier.inval.shared.b64 [bar];",
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 64;",
    "mbarrier.try_wait.parity.shared.b64 %done, [bar], 0;",
    "cp.async.bulk.global.shared::cta.bulk_group [%global], [data], 64;",
    "st.shared.b32 [bar], %a;",
)


def rows(instruction: str) -> dict[int, set[int]]:
    text = f"""{HEAD}
.visible .entry k(.param .u64 p) {{
  .shared .align 16 .b8 data[64]; .shared .align 8 .b64 bar;
  .reg .b64 %global, %state; .reg .b32 %a; .reg .pred %done;
  ld.param.u64 %global, [p]; mov.b32 %a, 0;
  {instruction}
  ret;
}}"""
    launch = ptxsim.load(text).prepare("k", 1, 32, 1, 0, [0])
    assert launch.program.instrs[2].op == instruction.partition(".")[0]
    return {row: places == {launch.shared_offsets["bar"]} for row, places in signal_rows(launch).items()}


@pytest.mark.parametrize("instruction", SIGNALS)
def test_it_signals_the_barrier_at_its_last_address(instruction):
    assert rows(instruction) == {2: True}


@pytest.mark.parametrize("instruction", OTHERS)
def test_it_signals_nobody(instruction):
    assert rows(instruction) == {}


def test_a_register_that_holds_several_addresses_is_read_where_it_was_set():
    """As in hand-written PTX; what a guarded instruction sets is one of them."""
    text = f"""{HEAD}
.visible .entry k() {{
  .shared .align 8 .b64 one[2]; .shared .align 8 .b64 two[2]; .reg .b32 %a, %i; .reg .pred %p;
  setp.eq.u32 %p, %i, %i; mov.u32 %a, one; mad.lo.u32 %a, %i, 8, %a; mbarrier.arrive.shared.b64 _, [%a];
  mov.u32 %a, two; add.u32 %a, %a, 8; mbarrier.arrive.shared.b64 _, [%a];
  @%p mov.u32 %a, one; mbarrier.arrive.shared.b64 _, [%a];
  ret;
}}"""
    launch = ptxsim.load(text).prepare("k", 1, 32, 1, 0, [])
    one, two = (launch.shared_offsets[name] for name in ("one", "two"))
    assert [*signal_rows(launch).values()][:2] == [{one}, {two + 8}]
    assert {one, two + 8} <= [*signal_rows(launch).values()][2]
