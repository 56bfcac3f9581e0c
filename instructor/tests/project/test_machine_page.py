"""docs/machine.md: the mbarrier in its pictures behaves like ptxsim's."""

import numpy as np
import pytest

import ptxsim
from instructor.figures import machine

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"
PTX = {  # the same events, with complete_tx in place of TMA
    "init(1)": "mbarrier.init.shared.b64 [%b], 1;",
    "TMA brings the tile of A": "mbarrier.complete_tx.shared.b64 [%b], 16384;",
    "arrive.expect_tx(32768)": "mbarrier.arrive.expect_tx.shared.b64 _, [%b], 32768;",
    "TMA brings the tile of B": "mbarrier.complete_tx.shared.b64 [%b], 16384;",
}
KERNEL = """.visible .entry k(.param .u64 out) {
  .shared .align 8 .b64 bar; .reg .b32 %b, %r; .reg .b64 %o; .reg .pred %p;
  ld.param.u64 %o, [out]; mov.u32 %b, bar;
  EVENTS
  mbarrier.test_wait.parity.shared.b64 %p, [%b], 0;
  selp.b32 %r, 1, 0, %p; st.global.b32 [%o], %r; ret;
}
"""


@pytest.mark.parametrize("row", range(len(machine.STEPS)))
def test_a_wait_returns_when_the_picture_says_so(row):
    found = machine.states()[: row + 1]
    events = "\n  ".join(PTX[said] for said, _ in found)
    out = np.full(1, -1, np.int32)
    ptxsim.load(HEAD + KERNEL.replace("EVENTS", events)).launch("k", grid=1, block=1, args=[out])
    assert bool(out[0]) == (found[-1][1].phase > 0)


def test_the_pictures_say_the_bytes_of_step_4():
    assert f"arrive.expect_tx({2 * machine.BOX})" in machine.mbarrier()
    assert [barrier.tx for _, barrier in machine.states()] == [0, -machine.BOX, machine.BOX, 0]
