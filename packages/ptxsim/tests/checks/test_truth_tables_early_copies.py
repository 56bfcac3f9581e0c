"""A copy for the next phase is issued after the end of the current phase, if
that phase has bytes of its own.
"""

from __future__ import annotations

from truth import Rule, kept_and_broken, lines, wait

INIT = "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"
ONE = "@!%lead bra END;"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%bar];"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;"
END = "END: bar.sync 0;"


def copy(slot: int) -> str:
    fetch = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    return f"{fetch} [%sm+{16 * slot}], [%in], 16, [%bar];"


def rule(name: str, *steps: str, change: tuple[str, str]) -> Rule:
    return Rule(name, lines(INIT, ONE, *steps, END), change, "tx-count", words="copies in one step")


RULES = (
    rule("behind the phase before", EXPECT, copy(0), f"{wait(0)} {copy(1)}", EXPECT + wait(1),
         change=(f"{wait(0)} {copy(1)}", f"{copy(1)} {wait(0)}")),
    rule("behind a phase that has no bytes", ARRIVE, copy(0), f"{wait(0)} {EXPECT}{wait(1)}",
         change=(ARRIVE, f"{EXPECT} {copy(1)}")),
)  # fmt: skip


test_kept, test_broken = kept_and_broken(RULES)
