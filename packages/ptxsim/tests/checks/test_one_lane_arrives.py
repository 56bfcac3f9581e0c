"""One lane that arrives for its warp, copies in no group, two counts at a barrier: each is told as itself."""

from __future__ import annotations

import pytest
from truth import Rule, lines, run_rule, wait

FULL = lines(
    "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; bar.sync 0; @%w1 bra READ;",
    "FILL",
    "bar.warp.sync -1; // met",
    "@%lead mbarrier.arrive.shared::cta.b64 _, [%bar]; bra END;",
    f"READ: {wait(0)} ld.shared.u32 %r1, [%mine-128]; st.global.u32 [%myout], %r1;",
    "END:",
)
STORES = FULL.replace("FILL", "st.shared.u32 [%mine], %t;")
COPIES = FULL.replace("FILL", "cp.async.ca.shared.global [%mine], [%myin], 4; cp.async.wait_all;")
GROUP = lines(
    "cp.async.ca.shared.global [%mine], [%myin], 4;",
    "cp.async.commit_group; // group",
    "cp.async.wait_group 0;",
    "bar.sync 0;",
    "ld.shared.u32 %r1, [%other]; st.global.u32 [%myout], %r1;",
)
BULK = "@%lead cp.async.bulk.commit_group; @%lead cp.async.bulk.wait_group 0;"
COUNTS = "@%w1 bra W1; bar.sync 1, 64; bra END;\nW1: bar.sync 1, 64; // own\nEND:"
TWINS = {
    "stores": (STORES, "bar.warp.sync -1;", "", "error", "lane-for-warp"),
    "copies": (COPIES, "bar.warp.sync -1;", "", "error", "lane-for-warp"),
    "no group": (GROUP, "cp.async.commit_group; // group", "", "error", "groups"),
    "no wait, but one of bulk groups": (
        f"{GROUP}\n{BULK}", "cp.async.wait_group 0;", "", "error", "no-wait-at-all"
    ),
    "no barrier": (GROUP, "bar.sync 0;", "", "error", "not-ready"),
    "two counts": (COUNTS, "1, 64; // own", "1, 32; // own", "error", "shared-id"),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_each_twin_is_told_as_itself(name):
    text, old, new, severity, cause = TWINS[name]
    rule = Rule(name, text)
    assert not run_rule(rule, text, "program").findings and text.count(old) == 1
    told = [
        (f.severity, f.evidence.get("cause"))
        for f in run_rule(rule, text.replace(old, new), "program").findings
    ]
    assert told and set(told) == {(severity, cause)}, told
