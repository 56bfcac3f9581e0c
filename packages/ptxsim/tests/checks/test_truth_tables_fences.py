"""tcgen05.fence::before_thread_sync orders for the thread that executes it (PTX ISA 9.7.16.10).

tcgen05.ld and st are operations of a whole warp, and each of its lanes needs a fence.
"""

from __future__ import annotations

from test_truth_tables_tmem import BEFORE, PASSED_ON, WARPS
from truth import Rule, kept_and_broken

RULES = (
    Rule(
        "before-fence-of-all-lanes",
        PASSED_ON,
        (BEFORE + " // 1", "@%lead " + BEFORE),
        "race",
        "review",
        words="lane 0 of its warp alone executed tcgen05.fence::before_thread_sync",
        **WARPS,
    ),
    Rule(
        "before-fence-lane-by-lane",
        PASSED_ON.replace(BEFORE + " // 1", f"@%lead {BEFORE}\n@!%lead {BEFORE} // 1"),
        (f"@!%lead {BEFORE} // 1", ""),
        "race",
        "review",
        **WARPS,
    ),
)


test_kept, test_broken = kept_and_broken(RULES)
