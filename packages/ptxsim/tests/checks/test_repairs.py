"""Repairs tried on the record: a late wait, or a wait for another parity, is named if moving or flipping it
would fix the program; never if something else would. The program is a ring: a thread loads element after
element, another stores each to global memory.
"""

from __future__ import annotations

import numpy as np
import pytest
from truth import ORDERS, START, lines

import ptxsim
from ptxsim.checks.diagnosis.replay import RecordReplay, by_warp
from ptxsim.checks.race.barrier_record import BarrierStep

FREE = "WAIT(8256, %x1)"  # 64 bytes after the barriers `full`
FULL = "WAIT(8192, %x1)"
LOAD = lines(
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%x3+8192], 256;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x2], [%y1], 256, [%x4];",
)
STORE = lines(
    "cp.async.bulk.global.shared::cta.bulk_group [%y2], [%x2], 256;",
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
)
SIGNAL = "mbarrier.arrive.shared::cta.b64 _, [%x3+8256];"
MISTAKES = {  # name -> (change of the producer, change of the consumer, cause)
    "the load before its wait": ((FREE, LOAD), None, "wait-late"),
    "the store before its wait": (None, (FULL, STORE), "wait-late"),
    "the parity of free buffers for data": (None, ("mov.u32 %x1, 0;", "mov.u32 %x1, 1;"), "phase"),
    "no wait for data": (None, (FULL, ""), None),
    "no wait for a free buffer": ((FREE, ""), None, None),
    "data of the next element": (None, (FULL, "WAIT_NEXT(8192, %x1)"), None),
}
PHASE = {"wait-phase", "fresh", "fresh-read"}


def role(name: str, parity: int, rounds: int, depth: int, *body: str) -> str:
    """A loop: %x0 counts, %x1 is the parity, %x2 the buffer, %x3 and %x4 barriers, %x5 the element."""
    return lines(
        f"mov.u32 %x0, 0; mov.u32 %x1, {parity}; mov.u32 %x5, 0;",
        f"{name}:",
        "mad.lo.u32 %x2, %x5, 256, %sm; mad.lo.u32 %x3, %x5, 8, %sm; add.u32 %x4, %x3, 8192;",
        "mul.wide.u32 %y3, %x0, 256; add.u64 %y1, %in, %y3; add.u64 %y2, %out, %y3;",
        *body,
        f"add.u32 %x5, %x5, 1; setp.eq.u32 %p, %x5, {depth}; @%p xor.b32 %x1, %x1, 1; @%p mov.u32 %x5, 0;",
        f"add.u32 %x0, %x0, 1; setp.lt.u32 %p, %x0, {rounds}; @%p bra {name};",
    )


def program(depth: int, rounds: int, mistake: str = "") -> str:
    producer = role("P", 1, rounds, depth, FREE, LOAD)
    consumer = role("C", 0, rounds, depth, FULL, STORE, SIGNAL)
    changes = MISTAKES[mistake][:2] if mistake else (None, None)
    producer, consumer = (changed(t, c, depth) for t, c in zip((producer, consumer), changes, strict=True))
    inits = [
        f"@%lead mbarrier.init.shared::cta.b64 [%sm+{8192 + b + 8 * i}], 1;"
        for i in range(depth)
        for b in (0, 64)
    ]
    text = lines(
        *inits,
        "@%lead fence.mbarrier_init.release.cluster; bar.sync 0;",
        "setp.eq.u32 %q, %t, 32; @%q bra CONSUMER; @!%lead bra END;",
        producer,
        "bra END; CONSUMER:",
        consumer,
        "cp.async.bulk.wait_group 0;",
        "END:",
    )
    return "\n".join(map(waits, text.split("\n"), range(10_000)))


def changed(text: str, change: tuple[str, str] | None, depth: int) -> str:
    if change is None:
        return text
    old, new = change
    if text.count(old) != 1:
        raise ValueError(f"{old!r} occurs {text.count(old)} times")
    if new in text and new:  # the two lines are exchanged
        return text.replace(f"{old}\n{new}", f"{new}\n{old}")
    return text.replace(old, new.replace("NEXT", f"NEXT{depth}"))


def waits(line: str, number: int) -> str:
    """WAIT(offset, parity) as a loop."""
    if not line.startswith("WAIT"):
        return line
    offset, parity = line.partition("(")[2].rstrip(")").split(", ")
    ahead = line.startswith("WAIT_NEXT")
    depth = line.partition("NEXT")[2].partition("(")[0]
    other = f"add.u32 %x6, %x5, 1; rem.u32 %x6, %x6, {depth}; mad.lo.u32 %x6, %x6, 8, %sm;" if ahead else ""
    where = "%x6" if ahead else "%x3"
    test = f"mbarrier.try_wait.parity.shared::cta.b64 %r, [{where}+{offset}], {parity}"
    return f"{{ .reg .pred %r; {other} A{number}: {test}; @!%r bra A{number}; }}"


def causes(text: str, order) -> list[str]:
    start = START.format(target="sm_100a", directives="")
    module = ptxsim.load(start + text + "\nret;\n}\n")
    data, out = np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32)
    names = [("full", "uint64", 8192, 64), ("free", "uint64", 8256, 64), ("ring", "uint8", 0, 2048)]
    result = module.launch("k", grid=1, block=64, args=[data, out], order=order, names=names)
    if result.verdict == "clean":
        return []
    return [f.evidence.get("cause", f.kind) for f in result.findings]


SHAPES = [(1, 4), (2, 5), (3, 8)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("depth", "rounds"), SHAPES)
def test_the_ring_is_clean(depth, rounds, order):
    assert causes(program(depth, rounds), order) == []


@pytest.mark.parametrize(("depth", "rounds"), SHAPES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_only_what_would_mend_it_is_named(mistake, depth, rounds):
    if depth == 1 and "next" in mistake:
        pytest.skip("the next element is the same one")
    told = [causes(program(depth, rounds, mistake), order) for order in ORDERS]
    assert all(told), "every order finds it"
    expected = MISTAKES[mistake][2]
    every = {cause for found in told for cause in found}
    if expected == "phase":
        assert every & PHASE and "wait-late" not in every
    elif expected is not None:
        assert expected in every and not every & PHASE
    else:
        assert not every & (PHASE | {"wait-late"})


LANE, OTHER = 1, 2
STEPS = [  # a signal by one lane, two waits for it by another lane of the same warp, then its own signal
    BarrierStep(0, LANE, 1, "arrive", ((0, 8),), 1),
    BarrierStep(0, OTHER, 2, "wait", ((0, 8),), 0),
    BarrierStep(0, OTHER, 3, "arrive", ((0, 16),), 1),
    BarrierStep(1, LANE, 4, "wait", ((0, 16),), 0),
]


@pytest.mark.parametrize(("held", "done"), [((), {0, 1, 2, 3}), ((0,), {0}), ((2,), {0, 1, 2})])
def test_what_is_held_back_holds_back_who_waits_for_it(held, done):
    assert RecordReplay(by_warp(STEPS), {(0, 8): 1, (0, 16): 1}, held).done == done
