"""mbarrier instructions that the main loop executes itself: random programs give the result of a small model
and of the handlers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from test_called import both  # noqa: F401  (a fixture)
from warp_kernels import register_kernel

import ptxsim

BARRIERS, STEPS = 4, 40
COUNTS = 1, 2, 3, 3, 4, 6, 8, 31, 32  # small ones, so that many phases complete
ADDRESS = "mad.lo.u32 %x1, %t, {a}, {b}; and.b32 %x1, %x1, 3; shl.b32 %x1, %x1, 3; add.u32 %x1, %x1, %sm;"
GENERIC = "cvt.u64.u32 %y1, %x1; cvta.shared.u64 %y1, %y1;"


@dataclass
class Barrier:
    """An independent model of PTX ISA 9.7.13.15."""

    expected: int
    pending: int = field(init=False)
    tx: int = 0
    phase: int = 0

    def __post_init__(self):
        self.pending = self.expected

    def step(self, arrivals: int, size: int, drop: bool) -> None:
        self.tx += size
        self.pending -= arrivals
        self.expected -= arrivals * drop
        if not self.pending and not self.tx:
            self.phase, self.pending = self.phase + 1, self.expected


class Program:
    """A random program of one warp: its text, and the resulting registers."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng([11, seed])
        self.counts = self.rng.choice(COUNTS, BARRIERS).tolist()
        self.barriers = [Barrier(count) for count in self.counts]
        self.lines, self.expected = [self._init()], []
        while len(self.expected) < STEPS:
            getattr(self, self.rng.choice(["arrive"] * 6 + ["bytes", "bytes", "parity", "again"]))()

    def _init(self) -> str:
        counts = enumerate(self.counts)
        set_count = "".join(f"setp.eq.u32 %q, %t, {i}; @%q mov.u32 %x2, {c};" for i, c in counts)
        first = f"setp.lt.u32 %q, %t, {BARRIERS}; @%q mbarrier.init.shared::cta.b64 [%x1], %x2;"
        return f"{ADDRESS.format(a=1, b=0)} mov.u32 %x2, 1; {set_count} {first} bar.warp.sync -1;"

    def _operand(self) -> tuple[str, str, str, np.ndarray]:
        """Instructions that make an address, its space and the operand; the barrier of each lane."""
        a, b, generic = int(self.rng.integers(4)), int(self.rng.integers(4)), self.rng.random() < 0.3
        made = ADDRESS.format(a=a, b=b) + (GENERIC if generic else "")
        return (
            made,
            "" if generic else ".shared",
            "[%y1]" if generic else "[%x1]",
            (np.arange(32) * a + b) % 4,
        )

    def _signals(self, lanes: range, which: np.ndarray, arrivals: np.ndarray, sizes: np.ndarray, drop=False):
        """The state that each lane gets; None if a lane may not do this."""
        for i, barrier in enumerate(self.barriers):
            mine = [lane for lane in lanes if which[lane] == i]
            if sum(arrivals[mine]) > barrier.pending or drop and sum(arrivals[mine]) >= barrier.expected:
                return None
        states = np.zeros(32, np.uint64)
        for lane in lanes:
            barrier = self.barriers[which[lane]]
            states[lane] = barrier.phase << 32 | barrier.pending
            barrier.step(int(arrivals[lane]), int(sizes[lane]), drop)
        return states

    def arrive(self) -> None:
        """An arrival by some lanes, with or without a count, or with bytes that one of them announces and
        delivers.
        """
        made, space, operand, which = self._operand()
        lanes, kind = (
            range(int(self.rng.choice([1, 1, 2, 3, 32]))),
            self.rng.choice(["plain", "count", "drop"]),
        )
        counts = np.ones(32, int) if kind == "plain" else np.arange(32) % 3
        states = self._signals(lanes, which, counts, np.zeros(32, int), kind == "drop")
        if states is None:
            return
        name = "arrive_drop" if kind == "drop" else "arrive"
        count = ", %x3" if kind != "plain" else ""
        keep = self.rng.random() < 0.5
        target = f"%o{len(self.expected)}" if keep else "_"
        self.lines.append(
            f"{made} rem.u32 %x3, %t, 3; setp.lt.u32 %q, %t, {len(lanes)}; "
            f"@%q mbarrier.{name}{space}.b64 {target}, {operand}{count};"
        )
        self.expected.append(states if keep else np.zeros(32, np.uint64))

    def bytes(self) -> None:
        made, space, operand, which = self._operand()
        size, arrives = int(self.rng.integers(1, 500)), int(self.rng.integers(2))
        states = self._signals(range(1), which, np.full(32, arrives), np.full(32, size))
        if states is None:
            return
        self._signals(range(1), which, np.zeros(32, int), np.full(32, -size))
        state = f"%o{len(self.expected)}, " if arrives else ""
        announce = f"mbarrier.{'arrive.' * arrives}expect_tx{space}.b64 {state}"
        self.lines.append(
            f"{made} setp.eq.u32 %q, %t, 0; @%q {announce}{operand}, {size};"
            f"@%q mbarrier.complete_tx{space}.b64 {operand}, {size};"
        )
        self.expected.append(states * np.uint64(arrives))

    def parity(self) -> None:
        """A wait for a phase that is complete."""
        number, form = int(self.rng.integers(BARRIERS)), self.rng.choice(["test_wait", "try_wait"])
        barrier = self.barriers[number]
        parity = barrier.phase - 1 & 1
        out = len(self.expected)
        state = (barrier.phase - 1 & 0xFFFF_FFFF) << 32 | 1
        ask = (".parity", f"{parity}") if self.rng.random() < 0.5 else ("", "%y2")
        self.lines.append(
            f"mov.u64 %y2, {state}; mbarrier.{form}{ask[0]}.shared.b64 %q, [%sm+{8 * number}], {ask[1]};"
            f"selp.b64 %o{out}, 1, 0, %q;"
        )
        self.expected.append(np.ones(32, np.uint64))

    def again(self) -> None:
        """Invalidates a barrier and initialises it again; the memory holds the first state then."""
        number, count = int(self.rng.integers(BARRIERS)), int(self.rng.choice(COUNTS))
        at, out = f"[%sm+{8 * number}]", len(self.expected)
        self.barriers[number] = Barrier(count)
        self.lines.append(
            f"setp.eq.u32 %q, %t, 7; @%q mbarrier.inval.shared.b64 {at};"
            f"@%q mbarrier.init.shared.b64 {at}, {count}; bar.warp.sync -1; ld.shared.b64 %o{out}, {at};"
        )
        self.expected.append(np.full(32, count, np.uint64))

    def text(self) -> str:
        clear = "".join(f"mov.b64 %o{i}, 0;" for i in range(STEPS))
        return register_kernel(clear + "\n".join(self.lines), 0, STEPS, 64, 64)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(both, seed):  # noqa: F811
    program, arrays = Program(seed), [np.zeros(1, np.uint64), np.zeros((STEPS, 32), np.uint64)]
    both(program.text(), arrays, "mbarrier")
    ptxsim.load(program.text()).launch("k", block=32, args=arrays, checks=False)
    assert np.array_equal(arrays[1], np.array(program.expected))


def test_a_table_that_is_full_grows():
    """The loop initialises 64 barriers, the handler the next one, and all continue."""
    text = """mad.lo.u32 %x1, %t, 8, %sm; mov.b64 %o0, 0;
    mbarrier.init.shared.b64 [%x1], 1; mbarrier.init.shared.b64 [%x1+256], 1; bar.sync 0;
    mbarrier.init.shared.b64 [%x1+512], 1; bar.sync 0; mbarrier.arrive.shared.b64 _, [%x1];
    mbarrier.arrive.shared.b64 _, [%x1+512]; mbarrier.arrive.shared.b64 %o0, [%x1];"""
    out = np.zeros((1, 32), np.uint64)
    ptx = register_kernel(text, 0, 1, 64, 1024)
    result = ptxsim.load(ptx).launch("k", block=32, args=[np.zeros(1, np.uint64), out], checks=False)
    assert not result.findings and (out == (1 << 32 | 1)).all()


@pytest.mark.parametrize("broken, said", [
    ("@%q mbarrier.arrive.shared.b64 _, [%sm], 2;", "while only"),
    ("@%q mbarrier.arrive.shared.b64 %o0, [%sm], 2;", "while only"),
    ("mbarrier.arrive.shared.b64 _, [%sm+8];", "nobody has initialised"),
    ("@%q mbarrier.init.shared.b64 [%sm], 2;", "initialised twice"),
    ("mbarrier.arrive.shared.b64 _, [%sm]; @%q mbarrier.init.shared.b64 [%sm], 1;", "initialised twice"),
    ("@%q mbarrier.init.shared.b64 [%sm+8], 0;", "legal counts"),
    ("@%q mbarrier.init.shared.b64 [%sm+4], 1;", "not 8-byte aligned"),
    ("@%q mbarrier.inval.shared.b64 [%sm+8];", "nobody has initialised"),
    ("@%q mbarrier.expect_tx.shared.b64 [%sm], 1048576;", "1048576 bytes are announced at once"),
    ("@%q mbarrier.expect_tx.shared.b64 [%sm], 1048575;" * 2, "leaves its range"),
    ("@%q mbarrier.complete_tx.shared.b64 [%sm], 1048576;", "leaves its range"),
    ("mbarrier.test_wait.parity.shared.b64 %p, [%sm+8], 0;", "nobody has initialised"),
    ("mbarrier.test_wait.parity.shared.b64 %p, [%sm], 3;", "only 0 and 1 exist"),
])  # fmt: skip
def test_what_is_wrong_is_left_to_the_handler_which_says_so(broken, said):
    text = (
        f"setp.eq.u32 %q, %t, 0; mov.b64 %o0, 0; @%q mbarrier.init.shared.b64 [%sm], 1; bar.sync 0; {broken}"
    )
    args = [np.zeros(1, np.uint64), np.zeros((1, 32), np.uint64)]
    result = ptxsim.load(register_kernel(text, 0, 1, 64, 64)).launch("k", block=32, args=args, checks=False)
    assert any(said in one.message for one in result.findings), result.findings


def test_a_phase_that_is_open_has_not_passed():
    """By its state and by its parity; after the last arrival it has passed."""
    by_state = "mbarrier.test_wait.shared.b64 %q, [%sm], %y2; selp.b64 %o{}, 1, 0, %q;"
    by_parity = "mbarrier.test_wait.parity.shared.b64 %q, [%sm], 0; selp.b64 %o{}, 1, 0, %q;"
    text = f"""setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%sm], 33; bar.warp.sync -1;
    mbarrier.arrive.shared.b64 %y2, [%sm]; shr.u64 %y2, %y2, 32; shl.b64 %y2, %y2, 32;
    {by_state.format(0)} {by_parity.format(1)} @%p mbarrier.arrive.shared.b64 _, [%sm]; bar.warp.sync -1;
    {by_state.format(2)} {by_parity.format(3)}"""
    out = np.zeros((4, 32), np.uint64)
    ptx = register_kernel(text, 0, 4, 64, 64)
    result = ptxsim.load(ptx).launch("k", block=32, args=[np.zeros(1, np.uint64), out], checks=False)
    assert not result.findings and out[:, 5].tolist() == [0, 0, 1, 1]
