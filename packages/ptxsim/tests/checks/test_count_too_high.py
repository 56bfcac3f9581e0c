"""A barrier that counts one arrival more than its threads make, all of which have come."""

from __future__ import annotations

import numpy as np
from ptx_samples import HEAD

import ptxsim

KERNEL = """.visible .entry k(.param .u64 p) {
  .shared .align 8 .b64 bar; .reg .b32 %t; .reg .b64 %state; .reg .pred %first, %done;
  mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; @%first mbarrier.init.shared.b64 [bar], 65; bar.sync 0;
  mbarrier.arrive.shared.b64 %state, [bar];
READY: mbarrier.try_wait.shared.b64 %done, [bar], %state; @!%done bra READY;
  mbarrier.arrive.shared.b64 %state, [bar];
DONE: mbarrier.try_wait.shared.b64 %done, [bar], %state; @!%done bra DONE;
  ret;
}"""


def test_no_thread_is_said_to_wait_for_its_own_arrival():
    """All have arrived, so the arrival after the wait is not the one that is missing."""
    result = ptxsim.load(HEAD + KERNEL).launch("k", grid=1, block=64, args=[np.zeros(1, np.uint32)])
    (finding,) = (f for f in result.findings if f.kind == "deadlock")
    assert "only 64 of 65 arrivals came" in finding.message
    assert finding.hint.startswith("init(count) must equal the number of arrivals in a phase")
