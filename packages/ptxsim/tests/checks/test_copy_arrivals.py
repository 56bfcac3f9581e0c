"""Arrivals of cp.async that are missing, doubled, or count for nothing: the deadlock report names them."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

TEXT = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.reg .b64 %in, %out, %own, %s; .reg .b32 %t, %at, %x, %b, %w; .reg .pred %p, %q, %z;
.shared .align 16 .b8 data[1024]; .shared .align 8 .b64 full[2];
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mul.wide.u32 %own, %t, 16;
add.u64 %in, %own, %in; add.u64 %out, %own, %out; mov.u32 %at, data; shl.b32 %x, %t, 4;
add.u32 %at, %at, %x; mov.u32 %b, full; setp.eq.u32 %z, %t, 0; setp.ge.u32 %q, %t, 32;
@%z mbarrier.init.shared.b64 [%b], 64;
bar.sync 0;
.loc 1 6 0
cp.async.cg.shared.global [%at], [%in], 16;
.loc 1 7 0
SIGNAL
.loc 1 8 0
ARRIVE
.loc 1 9 0
W: mbarrier.try_wait.parity.shared.b64 %p, [%b], 0; @!%p bra W;
.loc 1 10 0
xor.b32 %x, %x, 16; mov.u32 %at, data; add.u32 %at, %at, %x; ld.shared.u32 %w, [%at];
st.global.u32 [%out], %w;
ret; }
.file 1 "copies.cu"
"""
NOINC, COUNTED = (f"cp.async.mbarrier.arrive{mod}.shared.b64 [%b];" for mod in (".noinc", ""))
ARRIVE = "mbarrier.arrive.shared.b64 %s, [%b];"


def first(signal: str, arrive: str = "", order="program", count=64):
    text = TEXT.replace("SIGNAL", signal).replace("ARRIVE", arrive).replace("64;", f"{count};")
    arrays = [np.zeros(256, np.uint32), np.zeros(256, np.uint32)]
    return next(iter(ptxsim.load(text).launch("k", block=64, args=arrays, order=order).findings), None)


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize(("signal", "arrive"), [(NOINC, ""), (COUNTED, ARRIVE)])
def test_right(signal, arrive, order):
    assert first(signal, arrive, order) is None


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize(("signal", "arrive", "cause", "told"), [
    (f"@!%q {NOINC}", "", "partial", "32 of 64 arrivals came (warp 0, line 7)"),
    (f"@!%z {NOINC}", "", "partial", "63 of 64 arrivals came (warps 0-1, line 7)"),
    ("", "", "silent", "nobody signals full[0]"),
    (COUNTED, "", "neutral", "those of cp.async (line 7) count for nothing"),
    (COUNTED, f"@!%q {ARRIVE}", "partial", "warps 0-1 arrive without .noinc, which add what they take away"),
])  # fmt: skip
def test_missing(signal, arrive, cause, told, order):
    finding = first(signal, arrive, order)
    assert (finding.kind, finding.evidence["cause"]) == ("deadlock", cause) and told in finding.message


def test_a_leader_arrives_besides():
    finding = first(COUNTED, f"@%z {ARRIVE}", count=65)
    assert finding.evidence["cause"] == "neutral" and "1 of 65 arrivals came, since" in finding.message


@pytest.mark.parametrize(("signal", "arrive", "lines"), [
    (NOINC + NOINC, "", "line 7"), (NOINC, ARRIVE, "lines 7 and 8"),
])  # fmt: skip
def test_doubled(signal, arrive, lines):
    finding = first(signal, arrive)
    assert finding.evidence["cause"] == "arrives-twice"
    assert f"it has arrived 2 times ({lines}) and passed a wait 0 times" in finding.message
