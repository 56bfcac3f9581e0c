"""Tensor memory that an mbarrier hands on before tcgen05.wait::st or tcgen05.wait::ld."""

from __future__ import annotations

from test_truth_tables_tmem import (
    AFTER,
    BEFORE,
    BEGIN,
    END,
    LOAD,
    LOADED,
    MEET,
    RESULT,
    STORE,
    STORED,
    WARPS,
)
from truth import Rule, kept_and_broken, lines, wait

# an mbarrier tells warp 4 of it
INIT = "@%lead mbarrier.init.shared::cta.b64 [%bar], 32;"
TELL = f"@%w0 {BEFORE} @%w0 mbarrier.arrive.shared::cta.b64 _, [%bar];"
TOLD = lines(INIT, *BEGIN, STORE, f"{STORED} {TELL}", wait(0), AFTER, LOAD, LOADED, RESULT, *END)

# warp 4 reads, and tells warp 0, which overwrites, through warp 1
ASK = f"@%w4 {BEFORE} @%w4 mbarrier.arrive.shared::cta.b64 _, [%bar];"
RELAY = f"@!%w1 bra PAST; {wait(0)} mbarrier.arrive.shared::cta.b64 _, [%bar+8]; PAST:"
RELAYED = lines(
    f"{INIT} {INIT.replace('[%bar]', '[%bar+8]')}",
    *(*BEGIN, STORE, STORED, f"{BEFORE} // 1", MEET, AFTER, LOAD),
    f"{LOADED} {ASK}",
    *(RELAY, f"@!%w0 bra ON; {wait(0, 8)} {AFTER}", STORE.replace("{%t}", "{%sm}"), f"{STORED} // 2"),
    *("ON:", RESULT, *END),
)

RULES = (
    Rule(
        "store-awaited-before-it-is-told",
        TOLD,
        (f"{STORED} {TELL}", f"{TELL} {STORED}"),
        "race",
        words="was signalled (PTX line 20) before tcgen05.wait::st",
        also=("uninitialized",),
        **WARPS,
    ),
    Rule(
        "load-awaited-before-it-is-relayed",
        RELAYED,
        (f"{LOADED} {ASK}", f"{ASK} {LOADED}"),
        "race",
        words="was signalled (PTX line 25) before the read by tcgen05.ld was done",
        **WARPS,
    ),
)


test_kept, test_broken = kept_and_broken(RULES)
