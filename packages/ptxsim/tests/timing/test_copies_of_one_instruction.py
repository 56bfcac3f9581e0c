"""A copy of several boxes is issued once, and equal copies of the lanes of a warp are one (SASS: UTMASTG)."""

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.launch import Launch
from ptxsim.launch_config import LaunchConfig
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.record import record
from ptxsim.timing.steps import Issue
from ptxsim.units.tensormap import encoded

DATA, MAP = 0x7200_0000_0000, 0x7300_0000_0000  # their addresses
START = """.visible .entry k(.param .u64 pmap) {
.reg .b32 %t, %tile, %bar, %x; .reg .b64 %m; .reg .pred %lead, %done;
.shared .align 128 .b8 tile[512]; .shared .align 8 .b8 full[8];
ld.param.u64 %m, [pmap]; mov.u32 %t, %tid.x; mov.u32 %tile, tile; mov.u32 %bar, full;
setp.eq.u32 %lead, %t, 0; shr.u32 %x, %t, 4; shl.b32 %x, %x, 3;
@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster; bar.sync 0;
"""
GATHER = """@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;
@%lead cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
    [%tile], [%m, {0, 3, 0, 2, 1}], [%bar];
LOADED: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra LOADED;
"""
STORE = """cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {AT, 0}], [%tile];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
"""


def issues(body: str, box: tuple[int, int]) -> tuple[list[float], int]:
    """(cycles of a warp for each issue of a copy, bytes that are copied)."""
    data = np.zeros((4, 16), np.uint32)
    raw = np.frombuffer(encoded(ptxsim.TensorMap(data, box=box), DATA), np.uint8).copy()
    loaded = ptxsim.load(f"{HEAD}{START}{body}\nret;\n}}")
    launch = Launch(loaded, loaded.programs["k"], LaunchConfig.of(1, 32, 1, 0))
    launch.bind([MAP], {DATA: data, MAP: raw})
    execution = record(launch)
    moves = [move.does for move in with_costs(execution, chip("b200")).warps[0]]
    copies = [m for m in moves if type(m) is Issue and execution.events[m.event].name.startswith("TMA")]
    return [m.cycles for m in copies], sum(copy.bytes for copy in execution.copies.values())


def test_four_rows_of_a_gather_are_one_issue():
    assert issues(GATHER, (8, 1)) == ([chip("b200").tma_issue, 0, 0, 0], 128)


@pytest.mark.parametrize(("at", "copies"), [("0", 1), ("%x", 2)])
def test_lanes_that_store_the_same_box_by_a_map_in_memory_are_one_copy(at, copies):
    assert issues(STORE.replace("AT", at), (8, 4)) == ([chip("b200").tma_issue] * copies, 128 * copies)
