"""Two buffers in a ring of barriers: a wrong index of one buffer, a wrong index of the wait, and a wrong
barrier of a load are distinguished at every depth, in every order. A thread loads both buffers of element
after element, another stores both to global memory.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_repairs import role, waits
from truth import ORDERS, START, lines

import ptxsim

BUFFER = ".shared .align 1024 .b8 buffer[32768];"
VARIABLES = " ".join(  # the barriers are 8192 B after the first buffer
    f".shared .align {align} .b{bits} {name}[{size}];"
    for name, align, bits, size in (
        ("X", 1024, 8, 4096), ("Y", 1024, 8, 4096), ("full", 64, 64, 8), ("free", 64, 64, 8),
    )
)  # fmt: skip
NEXT = "add.u32 %x6, %x5, 1; rem.u32 %x6, %x6, {depth}; mad.lo.u32 %x6, %x6, {size}, %sm;"
FREE, FULL = "WAIT(8256, %x1)", "WAIT(8192, %x1)"
SIGNAL = "mbarrier.arrive.shared::cta.b64 _, [%x3+8256];"
ANNOUNCE = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%x3+8192], 512;"


def load(buffer: str, source: str, barrier: str = "%x4", size: int = 256) -> str:
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    return f"{copy} [{buffer}], [{source}], {size}, [{barrier}];"


def store(buffer: str, target: str) -> str:
    return f"cp.async.bulk.global.shared::cta.bulk_group [{target}], [{buffer}], 256;"


LOADS = [load("%x2", "%y1"), load("%x2+4096", "%y1+4096")]
STORES = [store("%x2", "%y2"), store("%x2+4096", "%y2+4096")]
DONE = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
SECOND_LOAD = NEXT + load("%x6+4096", "%y1+4096")
SECOND_STORE = NEXT + store("%x6+4096", "%y2+4096")
ITS_BARRIER = NEXT + "add.u32 %x6, %x6, 8192;" + load("%x2+4096", "%y1+4096", "%x6")
MISTAKES = {  # name -> (loads, wait of the consumer, stores, permitted words about an index)
    "the second load one element on": ([LOADS[0], SECOND_LOAD], FULL, STORES, {"buffer"}),
    "the second store one element on": (LOADS, FULL, [STORES[0], SECOND_STORE], {"buffer"}),
    "the second load's barrier one on": ([LOADS[0], ITS_BARRIER], FULL, STORES, {"load-apart"}),
    "the first load half an element longer": (
        [load("%x2", "%y1", size=384), load("%x2+4096", "%y1+4096", size=128)], FULL, STORES, {"past-stage"},
    ),
    "the wait one element on": (LOADS, "WAIT_NEXT{depth}(8192, %x1)", STORES, {"slot", "shifted"}),
    "no wait for data": (LOADS, "", STORES, set()),
    "both stores one element on": (LOADS, FULL, [NEXT, "mov.u32 %x2, %x6;", *STORES], {"slot"}),
}  # fmt: skip
INDEX = {"buffer", "load-apart", "past-stage", "slot", "shifted"}


def program(depth: int, rounds: int, loads=LOADS, wait: str = FULL, stores=STORES) -> str:
    inits = [
        f"@%lead mbarrier.init.shared::cta.b64 [%sm+{8192 + b + 8 * i}], 1;"
        for i in range(depth)
        for b in (0, 64)
    ]
    text = lines(
        *inits,
        "@%lead fence.mbarrier_init.release.cluster; bar.sync 0;",
        "setp.eq.u32 %q, %t, 32; @%q bra CONSUMER; @!%lead bra END;",
        role("P", 1, rounds, depth, FREE, ANNOUNCE, *loads),
        "bra END; CONSUMER:",
        role("C", 0, rounds, depth, wait, *stores, DONE, SIGNAL),
        "cp.async.bulk.wait_group 0;",
        "END:",
    )  # fmt: skip
    for name, value in (("{depth}", depth), ("{size}", 8 if ITS_BARRIER in loads else 256)):
        text = text.replace(name, str(value))
    return "\n".join(map(waits, text.split("\n"), range(10_000)))


def causes(text: str, order) -> list[str]:
    start = (
        START.format(target="sm_100a", directives="")
        .replace(BUFFER, VARIABLES)
        .replace("%sm, buffer", "%sm, X")
    )
    module = ptxsim.load(start + text + "\nret;\n}\n")
    data, out = np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32)
    result = module.launch("k", grid=1, block=64, args=[data, out], order=order)
    if result.verdict == "clean":
        return []
    return [f.evidence.get("cause", f.kind) for f in result.findings]


SHAPES = [(2, 5), (3, 8), (4, 9)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("depth", "rounds"), SHAPES)
def test_two_buffers_in_order_are_clean(depth, rounds, order):
    assert causes(program(depth, rounds), order) == []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("depth", "rounds"), SHAPES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_index_that_is_wrong_is_named(mistake, depth, rounds, order):
    *parts, expected = MISTAKES[mistake]
    told = causes(program(depth, rounds, *parts), order)
    assert told
    assert set(told) & INDEX <= expected
    assert not expected or told[0] in expected, told
