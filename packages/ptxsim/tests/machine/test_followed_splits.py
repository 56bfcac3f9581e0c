"""Under the checks, parts of a warp run one after the other without Python between them."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.machine import control_words
from ptxsim.machine.cluster import Cluster

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.shared .align 16 .b8 tile[512];
.reg .b64 %in, %out, %wide; .reg .b32 %t, %x, %y, %z, %at, %flag; .reg .pred %p, %q;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x; mul.wide.u32 %wide, %t, 4; add.u64 %in, %in, %wide; ld.global.u32 %x, [%in];
mov.u32 %flag, tile; shl.b32 %y, %t, 2; add.u32 %at, %flag, %y;
"""
TAIL = "add.u64 %out, %out, %wide; st.global.u32 [%out], %x;\nret;\n}\n"
PARTS = """mov.u32 %y, 40; AGAIN: and.b32 %z, %x, 1; setp.eq.u32 %p, %z, 0; @%p bra EVEN;
mad.lo.u32 %x, %x, 3, 1; {odd} bra.uni MEET; EVEN: shr.u32 %x, %x, 1; {even}
MEET: sub.u32 %y, %y, 1; setp.ne.u32 %p, %y, 0; @%p bra AGAIN;"""
RACE = PARTS.format(odd="st.shared.u32 [%flag], %x;", even="ld.shared.u32 %z, [%flag];")
NO_END = """AGAIN: and.b32 %z, %t, 1; setp.eq.u32 %p, %z, 0; @%p bra EVEN;
mov.u32 %x, 1; bra.uni MEET; EVEN: mov.u32 %x, 2; MEET: setp.ne.u32 %p, %x, 9; @%p bra AGAIN;"""
BODIES = {
    "parts": PARTS.format(odd="", even=""),
    "parts that store": PARTS.format(odd="st.shared.u32 [%at], %x;", even="ld.shared.u32 %z, [%at];"),
    "nested": PARTS.format(odd="and.b32 %z, %x, 2; setp.eq.u32 %q, %z, 0; @%q bra MEET;", even=""),
    "units in the parts": PARTS.format(odd="activemask.b32 %z; bar.warp.sync %z;",
                                          even="atom.shared.add.u32 %z, [%at], 1;"),
    "some leave": "and.b32 %z, %x, 3; setp.eq.u32 %p, %z, 0; @%p bra OUT;" + PARTS.format(odd="", even="")
    + "OUT: setp.eq.u32 %p, %z, 1; @%p exit;",
    "one lane waits for another": """setp.ne.u32 %p, %t, 0; @%p bra OTHERS; st.shared.u32 [%flag], 0;
OTHERS: bar.sync 0; setp.eq.u32 %p, %t, 7; @%p bra SET;
WAIT: ld.acquire.cta.shared.u32 %z, [%flag]; setp.eq.u32 %q, %z, 0; @%q bra WAIT; bra.uni END;
SET: st.release.cta.shared.u32 [%flag], 1; END: bar.sync 0;""",
    "a lock for each lane": """st.shared.u32 [%at], 0; bar.sync 0; mov.u32 %y, 0;
TRY: atom.acquire.cta.shared.cas.b32 %z, [%flag], 0, 1; setp.ne.u32 %p, %z, 0; @%p bra BUSY;
ld.shared.u32 %z, [%flag+256]; add.u32 %z, %z, 1; st.shared.u32 [%flag+256], %z;
mov.u32 %y, 1; atom.release.cta.shared.exch.b32 %z, [%flag], 0;
BUSY: setp.eq.u32 %p, %y, 0; @%p bra TRY;""",
}  # fmt: skip


def launched(body: str, order: str):
    """(its output, its findings)."""
    data = np.random.default_rng(5).integers(100, 1 << 20, 64, np.uint32)
    out = np.zeros_like(data)
    module = ptxsim.load(HEAD + body + TAIL)
    result = module.launch("k", block=64, args=[data, out], order=order)
    return out.tolist(), [(str(finding), finding.count) for finding in result.findings]


def one_by_one(cluster) -> None:
    control_words.describe_launch(cluster)
    cluster.control[control_words.bytecode.FOLLOWS] = 0


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_parts_do_what_they_do_with_python_between_them(body, order, monkeypatch):
    found = launched(body, order)
    monkeypatch.setattr("ptxsim.machine.cluster.describe_launch", one_by_one)
    assert found == launched(body, order)


@pytest.mark.parametrize("body", [RACE, NO_END])
def test_mistakes_are_found_in_any_order_of_the_parts(body, monkeypatch):
    found = launched(body, "program")[1]
    monkeypatch.setattr("ptxsim.machine.cluster.describe_launch", one_by_one)
    known = launched(body, "program")[1]
    assert len(found) == len(known) and all(text.startswith("error") for text, _ in found + known)


def test_parts_take_no_turn_of_their_own(monkeypatch):
    turns = []
    step = Cluster._step
    monkeypatch.setattr(Cluster, "_step", lambda self, g: (turns.append(g), step(self, g))[1])
    launched(BODIES["parts"], "program")
    assert len(turns) < 10
    monkeypatch.setattr("ptxsim.machine.cluster.describe_launch", one_by_one)
    turns.clear()
    launched(BODIES["parts"], "program")
    assert len(turns) > 60
