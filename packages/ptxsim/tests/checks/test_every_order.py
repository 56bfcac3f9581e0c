"""order="all": faults that show only if another warp comes first (grid/every_order.py)."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ptxsim
from ptxsim.grid.every_order import MOST

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pout) {
.reg .b32 %t, %lane, %w, %sm, %r<6>; .reg .b64 %out, %y; .reg .pred %lead, %me, %p;
.shared .align 16 .b8 buffer[64];
mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; shr.u32 %w, %t, 5; mov.u32 %sm, buffer;
setp.eq.u32 %lead, %lane, 0; ld.param.u64 %out, [pout]; cvta.to.global.u64 %out, %out;
mul.wide.u32 %y, %t, 4; add.u64 %out, %out, %y;
setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%sm], 0; @%p st.shared.u32 [%sm+4], 0; bar.sync 0;
"""
# warps 0 and 1 count; warp 2 polls, then reads what warp 0 wrote
COUNTED = """setp.eq.u32 %me, %w, 2; @%me bra READER;
setp.eq.and.u32 %p, %w, 0, %lead; @%p st.shared.u32 [%sm+4], 7;
@%lead red.release.cta.shared.add.u32 [%sm], 1; bra END;
READER: ld.acquire.cta.shared.u32 %r0, [%sm]; setp.lt.u32 %p, %r0, NEED; @%p bra READER;
ld.shared.u32 %r1, [%sm+4]; st.global.u32 [%out], %r1;
END: ret;
}
"""
# the warp that takes the first ticket writes; in the broken program only warp 1 signals warp 2, whoever wrote
STOLEN = """setp.eq.u32 %me, %w, 2; @%me bra DONE;
mov.u32 %r0, 9; @%lead atom.relaxed.cta.shared.add.u32 %r0, [%sm], 1;
setp.eq.u32 %p, %r0, 0; @%p st.shared.u32 [%sm+4], 7;
WHO bar.arrive 1, COUNT; bra END;
DONE: bar.sync 1, COUNT; ld.shared.u32 %r1, [%sm+4]; st.global.u32 [%out], %r1;
END: ret;
}
"""


def result_of(text: str, order="all"):
    out = np.zeros(96, np.uint32)
    return ptxsim.load(HEAD + text).launch("k", block=96, args=[out], order=order, jobs=1), out


@pytest.mark.parametrize(("need", "verdict"), [(2, "clean"), (1, "error")])
def test_a_counter_that_another_warp_may_have_moved(need, verdict):
    result, out = result_of(COUNTED.replace("NEED", str(need)))
    assert result.verdict == verdict, [str(f) for f in result.findings]
    assert result.stats["orders"]["hangs"]
    assert out[64] == 7  # memory is that of one run


@pytest.mark.parametrize(
    ("who", "count", "verdict"), [("", "96", "clean"), ("setp.ne.u32 %p, %w, 0; @%p bra END;", "64", "error")]
)
def test_work_that_goes_to_who_comes_first(who, count, verdict):
    text = STOLEN.replace("WHO", who).replace("COUNT", count)
    result, _ = result_of(text)
    assert result.verdict == verdict, [str(f) for f in result.findings]
    assert result.stats["orders"]["run"] <= MOST


# warp 0 sets a flag, writes, and sets it to AGAIN; warp 1 polls it and reads
SET_TWICE = """setp.eq.u32 %me, %w, 1; @%me bra READER; setp.eq.u32 %me, %w, 0; @!%me bra END;
@%lead st.release.cta.shared.u32 [%sm], 1; @%lead st.shared.u32 [%sm+4], 7;
@%lead st.release.cta.shared.u32 [%sm], AGAIN; bra END;
READER: ld.acquire.cta.shared.u32 %r0, [%sm]; setp.lt.u32 %p, %r0, NEED; @%p bra READER;
ld.shared.u32 %r1, [%sm+4]; st.global.u32 [%out], %r1;
END: ret;
}
"""


@pytest.mark.parametrize(
    ("again", "need", "verdict"),
    [(2, 2, "clean"), (1, 1, "error")],  # the read cannot tell which of the two it sees
)
@pytest.mark.parametrize("order", ["program", "adverse", "all"])
def test_a_flag_that_is_set_twice(again, need, verdict, order):
    result, _ = result_of(SET_TWICE.replace("AGAIN", str(again)).replace("NEED", str(need)), order)
    assert result.verdict == verdict, [str(f) for f in result.findings]


# warp 0 arrives, writes, and arrives again; warp 1 tests once, and reads if only the first phase is complete
TESTED = """setp.eq.u32 %me, %w, 2; @%me bra END; setp.ne.u32 %me, %w, 0;
@%p mbarrier.init.shared.b64 [%sm+16], 1; @%p fence.mbarrier_init.release.cluster; bar.sync 1, 64;
@%me bra TEST; @%lead mbarrier.arrive.shared.b64 _, [%sm+16]; @%lead st.shared.u32 [%sm+4], 7;
@%lead mbarrier.arrive.shared.b64 _, [%sm+16]; bra END;
TEST: mbarrier.test_wait.parity.shared.b64 %p, [%sm+16], 0; @!%p bra END;
ld.shared.u32 %r1, [%sm+4]; st.global.u32 [%out], %r1;
END: ret;
}
"""


def test_a_test_between_two_arrivals():
    result, _ = result_of(TESTED)
    assert [f.kind for f in result.findings if f.severity == "error"] == ["race"]


# an mbarrier of COUNT arrivals on which warps 0 and 1 arrive: with 1, either one may complete the first phase
PHASES = """setp.eq.u32 %me, %w, 2; @%me bra END; setp.ne.u32 %me, %w, 0;
@%p mbarrier.init.shared.b64 [%sm+16], COUNT; @%p fence.mbarrier_init.release.cluster; bar.sync 1, 64;
@!%me bra FIRST; @%lead st.shared.u32 [%sm+4], 7;
FIRST: @%lead mbarrier.arrive.shared.b64 _, [%sm+16];
@%me bra END;
WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%sm+16], 0; @!%p bra WAIT;
ld.shared.u32 %r1, [%sm+4]; st.global.u32 [%out], %r1;
END: ret;
}
"""


@pytest.mark.parametrize(("count", "verdict"), [("2", "clean"), ("1", "error")])
def test_arrivals_that_make_other_phases_by_luck(count, verdict):
    result, _ = result_of(PHASES.replace("COUNT", count))
    assert result.verdict == verdict, [str(f) for f in result.findings]


def test_nothing_more_is_tried_where_nobody_can_tell_who_was_first():
    text = "st.shared.u32 [%sm+8], 1; bar.sync 1; st.global.u32 [%out], %t; ret;\n}\n"
    result, _ = result_of(text.replace("st.shared.u32 [%sm+8], 1;", "@%p st.shared.u32 [%sm+8], 1;"))
    assert result.stats["orders"] == {"run": 2, "left_out": 0, "hangs": False}
    assert result.verdict == "clean"


def test_what_is_left_out_is_counted():
    loop = "mov.u32 %r2, 0;\nMORE: @%lead atom.relaxed.cta.shared.add.u32 %r0, [%sm], 1; add.u32 %r2, %r2, 1;"
    text = f"{loop} setp.lt.u32 %p, %r2, 12; @%p bra MORE; st.global.u32 [%out], %t; ret;\n}}\n"
    result, _ = result_of(text)
    operations = 3 * 12
    everything = operations + operations * (operations - 1) // 2
    by_turns = MOST - 2 - 6 - operations  # two runs are the usual ones, six put three warps in each order
    held = operations + by_turns // 2  # of those by turns the first hold back one, with a precedence
    assert result.stats["orders"] == {"run": MOST, "left_out": everything - held, "hangs": True}


# warp 0 writes and sets a flag; warp 1 tests it once, and reads if it is set
GLANCE = """setp.eq.u32 %me, %w, WHO; @%me bra READER; setp.eq.u32 %me, %w, FROM; @!%me bra END;
WRITES bra END;
READER: ld.acquire.cta.shared.u32 %r0, [%sm]; setp.eq.u32 %p, %r0, 0; @%p bra END;
ld.shared.u32 %r1, [%sm+4]; st.global.u32 [%out], %r1;
END: ret;
}
"""
WRITE, SET = "@%lead st.shared.u32 [%sm+4], 7;", "@%lead st.release.cta.shared.u32 [%sm], 1;"


@pytest.mark.parametrize(("writes", "verdict"), [(WRITE + SET, "clean"), (SET + WRITE, "error")])
@pytest.mark.parametrize("reader", [0, 1, 2])
def test_a_word_that_is_looked_at_once(writes, verdict, reader):
    who = ("WHO", str(reader)), ("FROM", str((reader + 1) % 3)), ("WRITES", writes)
    text = functools.reduce(lambda text, pair: text.replace(*pair), who, GLANCE)
    result, _ = result_of(text)
    assert result.verdict == verdict, [str(f) for f in result.findings]
