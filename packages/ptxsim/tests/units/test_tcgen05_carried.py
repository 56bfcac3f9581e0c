"""Registers of a tcgen05.ld that are copied before its wait: the copies get the
loaded values in any order.
"""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel, run_registers

LD, WAIT = "tcgen05.ld.sync.aligned.32x32b", "tcgen05.wait::ld.sync.aligned;"
# column c of lane t holds 100 * c + t
SETUP = """
.reg .b32 %a, %b, %cur, %next, %sum, %at, %i;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%sm], 32;
bar.sync 0; ld.shared.b32 %at, [%sm]; mov.u32 %i, 0;
FILL: mad.lo.u32 %a, %i, 100, %t; add.u32 %b, %at, %i;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%b], {%a};
add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 32; @%p bra FILL;
tcgen05.wait::st.sync.aligned; mov.u32 %sum, 0; mov.u32 %i, 0;
"""
END = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %at, 32; mov.u32 %o0, %sum;"
AHEAD = f"""{LD}.x1.b32 {{%cur}}, [%at];
LOOP: {WAIT}
add.u32 %i, %i, 1; add.u32 %b, %at, %i; {LD}.x1.b32 {{%next}}, [%b];
setp.gt.u32 %q, %i, 100; @%q bra SKIP; add.u32 %sum, %sum, %cur;
SKIP: mov.u32 %cur, %next; setp.lt.u32 %p, %i, 8; @%p bra LOOP;
{WAIT}
"""
TWICE = f"""{LD}.x1.b32 {{%cur}}, [%at]; {WAIT} add.u32 %b, %at, 5;
{LD}.x1.b32 {{%next}}, [%b]; mov.u32 %a, %next; add.u32 %sum, %sum, %cur; mov.u32 %cur, %a;
{WAIT} add.u32 %sum, %sum, %cur;
"""
USED = f"""{LD}.x1.b32 {{%cur}}, [%at]; {WAIT} add.u32 %b, %at, 5;
{LD}.x2.b32 {{%next, %a}}, [%b]; add.u32 %sum, %sum, %cur; mov.u32 %cur, %next; add.u32 %sum, %sum, %a;
{WAIT} add.u32 %sum, %sum, %cur;
"""


@pytest.mark.parametrize("order", ["program", "adverse", 1])
@pytest.mark.parametrize(
    ("text", "columns", "verdict"),
    [(AHEAD, range(8), "clean"), (TWICE, (0, 5), "clean"), (USED, (0, 5, 6), "review")],
    ids=["at the end of a loop", "a copy of a copy", "another register is used"],
)
def test_a_copy_before_the_wait_has_what_was_loaded(text, columns, verdict, order):
    ptx = register_kernel(SETUP + text + END, 1, 1, shared=64, target="sm_100a")
    threads = np.zeros((1, 32), np.uint32)
    found = run_registers(ptx, threads, 1, order, verdict)
    assert found[0].tolist() == [sum(100 * c + t for c in columns) for t in range(32)]
