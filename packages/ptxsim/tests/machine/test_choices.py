"""Each unkind choice of docs/choices.md shows in a run, and no other row claims to make one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxsim

PAGE = Path(__file__).parents[2] / "docs" / "choices.md"
HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.reg .b32 %t, %a, %b, %r; .reg .b64 %in, %out; .reg .pred %lead, %q, %p;
.shared .align 128 .b8 buffer[1024]; .shared .align 8 .b64 bars[2];
mov.u32 %t, %tid.x; setp.eq.u32 %lead, %t, 0; mov.u32 %a, buffer; mov.u32 %b, bars;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout];
cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;
"""
BARS = """@%lead mbarrier.init.shared.b64 [%b], 1; @%lead mbarrier.init.shared.b64 [%b+8], 1;
@%lead fence.mbarrier_init.release.cluster; @%lead st.shared.u32 [%a], 7; fence.proxy.async.shared::cta;
bar.sync 0;
"""
BULK = "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a]"
EXPECT = "@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%b{at}], 16;\n"
WAIT = "W{n}: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b{at}], 0; @!%p bra W{n};\n"
ONCE = """mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;
selp.b32 %r, 1, 0, %p; @%lead st.global.u32 [%out], %r;
"""
FIRST = EXPECT.format(at="") + BULK + ", [%in], 16, [%b];\n"
SECOND = EXPECT.format(at="+8") + BULK + ", [%in+16], 16, [%b+8];\n"
BOTH_DONE = WAIT.format(n=1, at="") + WAIT.format(n=2, at="+8")
SHOW = "@%lead ld.shared.u32 %r, [%a];\n@%lead st.global.u32 [%out], %r;\n"
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%a], 32;\n"
ABSENT = """setp.ge.u32 %q, %t, 16; add.u32 %r, %t, 100; @%q bra END;
shfl.sync.idx.b32 %r, %r, 20, 31, 0xffff; @%lead st.global.u32 [%out], %r; END:
"""
ELECT = "elect.sync _|%q, -1; @%q st.global.u32 [%out], %t;\n"

# row of the page -> (program, what it writes under `program`, under `adverse`: a value, or all but one)
SHOWN = {
    "which column `tcgen05.alloc` returns": (ALLOC + SHOW, 0, "not 0"),
    "which lane `elect.sync` takes": (ELECT, 0, 31),
    "what `shfl.sync` takes from a lane that does not take part": (ABSENT, 120, 0xFFFB_7FFB),
    "when a TMA copy, a bulk copy, an MMA or a commit is complete": (
        BARS + FIRST + "bar.sync 0;\n" + SHOW + WAIT.format(n=1, at=""), 100, 7
    ),
    "whether `mbarrier.try_wait` gives up": (
        BARS + FIRST + ONCE + WAIT.format(n=1, at=""), 1, 0
    ),
    "in which order pieces of different queues complete": (
        BARS + FIRST + SECOND + BOTH_DONE + SHOW, 104, 100
    ),
}  # fmt: skip


def _rows() -> dict[str, str]:
    """Choice -> the column `adverse`, from the first table of the page."""
    table = PAGE.read_text().split("## Choices of a run")[1].split("\n## ")[0]
    lines = [line.split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    return {cells[1].strip(): cells[4].strip() for cells in lines}


def test_every_unkind_choice_of_the_page_is_shown_here():
    assert {choice for choice, adverse in _rows().items() if adverse != "the same"} == set(SHOWN)


@pytest.mark.parametrize("choice", SHOWN)
def test_the_choice_shows(choice):
    text, kind, unkind = SHOWN[choice]
    module = ptxsim.load(f"{HEAD}{text}ret;\n}}\n")
    for order, expected in (("program", kind), ("adverse", unkind)):
        out = np.full(8, 999, np.uint32)
        module.launch("k", block=32, args=[np.arange(100, 132, dtype=np.uint32), out], order=order)
        if expected == "not 0":
            assert out[0] not in (0, 999)
        else:
            assert out[0] == expected
