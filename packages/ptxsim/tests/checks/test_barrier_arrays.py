"""Shared variables of bytes that hold one array of mbarriers, as CUDA's compiler declares them."""

from __future__ import annotations

import pytest

import ptxsim
from ptxsim.checks.barrier_arrays import barrier_arrays

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
KERNEL = """.visible .entry k() {{
  .reg .b32 %t, %s, %i, %a, %b; .reg .b64 %y; .reg .pred %p;
  .shared .align 8 .b8 full[32];
  .loc 1 3 1
  mov.u32 %t, %tid.x; mov.u32 %s, full; and.b32 %i, %t, 3; shl.b32 %i, %i, 3; add.u32 %a, %s, %i;
{}
  ret; }}
.file 1 "kernel.cu"
"""
UNROLLED = "  .loc 1 {line} 1\n" + "\n".join(f"  mbarrier.init.shared.b64 [%s+{8 * i}], 1;" for i in range(4))
INDEXED = "  .loc 1 8 1\n  mbarrier.arrive.shared.b64 %y, [%a];"
TWO = INDEXED + "\n  .loc 1 9 1\n  mbarrier.arrive.shared.b64 %y, [%a+16];"


def arrays(body: str, change=("", "")) -> frozenset[str]:
    text = HEAD + KERNEL.format(body).replace(*change)
    return barrier_arrays(ptxsim.load(text).prepare("k", 1, 4, 1, 0, []))


@pytest.mark.parametrize(
    "body, change, found",
    [
        (INDEXED, ("", ""), True),
        (UNROLLED.format(line=7), ("", ""), True),
        (UNROLLED.format(line=7), (".loc", "// .loc"), False),  # it may hold several
        (INDEXED, (".loc", "// .loc"), True),
        (INDEXED + "\n  st.shared.u32 [%s+24], %t;", ("", ""), False),  # a structure with other members
        (TWO, ("", ""), False),  # two arrays in a structure
        (TWO.replace("1 9 1", "1 8 1"), ("", ""), True),
        ("  mbarrier.init.shared.b64 [%s], 1;", ("", ""), False),  # nothing shows that there are more
        (INDEXED, ("full[32]", "full[8]"), False),
        (INDEXED, ("full[32]", "full[32768]"), False),
    ],
)  # fmt: skip
def test_a_variable_that_only_barriers_use_is_an_array(body, change, found):
    assert arrays(body, change) == ({"full"} if found else set())


def test_its_elements_are_named_by_their_index():
    text = HEAD + KERNEL.format(UNROLLED.format(line=7) + "\n  mbarrier.init.shared.b64 [%s+16], 1;")
    (finding,) = ptxsim.load(text).launch("k", block=1).findings
    assert "full[2]" in finding.message


HEADER = """
  .loc 1 {line} 1
  .loc 2 130 5, function_name $L__info_string0, inlined_at 1 {line} 1
  mbarrier.arrive.shared.b64 %y, [{array}{offset}];"""

WAIT = """
  .loc 1 10 1
  WAIT: mbarrier.test_wait.parity.shared.b64 %p, [full+8], 0;
  @!%p bra WAIT;"""


def test_a_line_of_a_header_that_serves_two_arrays_is_no_stage_past_the_end():
    """One that is inlined once, and goes past the end of its array, is."""
    inits = "".join(
        f"  mbarrier.init.shared.b64 [{a}+{8 * i}], 4;\n" for a in ("full", "free") for i in (0, 1)
    )
    twice = [("full", 0, 5), ("full", 8, 5), ("free", 0, 6), ("free", 8, 6)]
    for places, past in ((twice, False), ([(a, o, 5) for a, o, _ in twice[:3]], True)):
        used = "".join(HEADER.format(array=a, offset=f"+{o}", line=line) for a, o, line in places)
        body = inits + used + WAIT
        text = KERNEL.format(body).replace("full[32]", "full[16]; .shared .align 8 .b8 free[16]")
        text = HEAD + text + '.file 2 "barrier.h"\n'
        told = [f.message for f in ptxsim.load(text).launch("k", block=1).findings]
        assert any("stage 2 of full, a barrier array of 2" in one for one in told) == past, told
