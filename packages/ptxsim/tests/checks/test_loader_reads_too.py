"""One thread loads operands, issues MMAs and reads the product: free[] announces nothing."""

import pytest
from test_truth_tables_tmem import AFTER, ALL_LOAD, ALL_LOADED, BEGIN, BULK, COMMIT, END, SETUP
from truth import ORDERS, Rule, lines, run_rule, wait

VARIABLES = " ".join(f".shared .align 8 .b64 {v};" for v in ("full[2]", "free[2]", "done[1]", "pad[8]"))
INITS = " ".join(f"@%lead mbarrier.init.shared.b64 [%bar+{8 * i}], 1;" for i in range(5))
DONE = wait(0, 32)


def _one(parity: int, at: int) -> str:
    return wait(parity, at).replace("{ ", "{ @!%lead bra PAST; ").replace(" }", " PAST: }")


def _round(k: int) -> list[str]:
    stage, turn = k % 2, k // 2
    return [
        _one(turn - 1, 16 + 8 * stage) if turn else "",
        f"@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar+{8 * stage}], 4096;",
        f"@%lead {BULK} [%sm+{4096 * stage}], [%in], 4096, [%bar+{8 * stage}];",
        f"{_one(turn & 1, 8 * stage)} {AFTER} add.u64 %y9, %y8, {256 * stage};",
        f"@%lead tcgen05.mma.cta_group::1.kind::f16 [%x8], %y9, %y9, %x9, {'%q' if k else '%p'};",
        f"add.u32 %x7, %bar, {16 + 8 * stage}; {COMMIT}",
    ]


KERNEL = lines(
    f"{VARIABLES} mov.u32 %bar, full; {INITS} @%lead fence.mbarrier_init.release.cluster;",
    *(*BEGIN, SETUP, "setp.eq.u32 %q, %t, %t;"),
    *(step for k in range(4) for step in _round(k)),
    f"add.u32 %x7, %bar, 32; {COMMIT}",
    DONE,
    *(AFTER, ALL_LOAD, ALL_LOADED, "st.global.u32 [%myout], %r0;", *END),
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel, told", [(KERNEL, False), (KERNEL.replace(DONE, ""), True)])
def test_the_barrier_of_the_product_is_named(kernel, told, order):
    found = run_rule(Rule("", kernel, threads=128), kernel, order).findings
    assert bool(found) == told, found
    assert not told or "done[0]" in found[0].message
