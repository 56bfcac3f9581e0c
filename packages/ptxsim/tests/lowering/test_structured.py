"""Random structured kernels with blocks in any order: lanes that did not return have reconverged at the end.

Branches, loops with breaks, and returns inside them, by no lanes or by some; a `bar.sync` comes after all of
them. Each thread's result is compared with Python's own run of the same program.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from warp_kernels import register_kernel, run_registers

THREADS = 64
DEPTH = 3
BITS = (1 << 32) - 1
Condition = tuple[str, int]


class Returned(Exception):
    """Raised when a thread has left the kernel."""


class Broken(Exception):
    """Raised when a thread has left its loop."""


def draw(rng: random.Random, depth: int, inside: bool) -> list[tuple]:
    """Random statements; `inside` a loop, where a break is allowed."""
    return [draw_one(rng, depth, inside) for _ in range(rng.randint(1, 3))]


def draw_one(rng: random.Random, depth: int, inside: bool) -> tuple:
    kinds = ["set", "return"] + ["break"] * inside + ["if", "if", "loop"] * (depth > 0)
    match rng.choice(kinds):
        case "set":
            return "set", rng.randint(3, 9)
        case "return":
            return "return", ("eq", rng.choice([rng.randrange(THREADS), THREADS])), rng.choice(list(RETURNS))
        case "break":
            return "break", draw_test(rng)
        case "if":
            other = draw(rng, depth - 1, inside) if rng.random() < 0.5 else []
            return "if", draw_test(rng), draw(rng, depth - 1, inside), other
        case _:
            return "loop", draw(rng, depth - 1, True)


def draw_test(rng: random.Random) -> Condition:
    return rng.choice([("lt", rng.randint(0, THREADS)), ("bit", rng.randint(0, 4))])


BIT = "shr.u32 %x0, %r0, {}; and.b32 %x0, %x0, 1; setp.eq.u32 %p, %x0, 1;"
TESTS: dict[str, tuple[str, Callable[[int, int, int], bool]]] = {
    "lt": ("setp.lt.u32 %p, %t, {};", lambda x, t, k: t < k),
    "eq": ("setp.eq.u32 %p, %t, {};", lambda x, t, k: t == k),
    "bit": (BIT, lambda x, t, k: bool(x >> k & 1)),
}
RETURNS = {"at once": "", "jumps": "st.global.b32 [%out], %t; bra.uni OUT;", "returns": "ret;"}


@dataclass
class Thread:
    """A thread of the program, run by Python."""

    t: int
    x: int
    out: int = 0

    def run(self, program: list[tuple]) -> int:
        try:
            self.do(program)
        except Returned:
            return self.out
        return self.x

    def do(self, statements: list[tuple]) -> None:
        for kind, *parts in statements:
            getattr(self, f"do_{kind}")(*parts)

    def holds(self, test: Condition) -> bool:
        return TESTS[test[0]][1](self.x, self.t, test[1])

    def do_set(self, factor: int) -> None:
        self.x = (self.x * factor + self.t) & BITS

    def do_return(self, test: Condition, how: str) -> None:
        if self.holds(test):
            self.out = self.t if "st.global" in RETURNS[how] else 0
            raise Returned

    def do_break(self, test: Condition) -> None:
        if self.holds(test):
            raise Broken

    def do_if(self, test: Condition, then: list[tuple], other: list[tuple]) -> None:
        self.do(then if self.holds(test) else other)

    def do_loop(self, body: list[tuple]) -> None:
        try:
            for _ in range((self.x + self.t) & 3):
                self.do(body)
        except Broken:
            pass


@dataclass
class Compiler:
    """The same program as PTX: blocks that all end with a jump."""

    blocks: list[list[str]] = field(default_factory=list)
    depth: int = 0  # of loops
    exits: list[int] = field(default_factory=list)  # where control continues after each loop

    def block(self) -> int:
        self.blocks.append([f"B{len(self.blocks)}:"])
        return len(self.blocks) - 1

    def text(self, program: list[tuple], rng: random.Random) -> str:
        self.now = self.block()
        self.do(program)
        self.put("bra.uni FINAL;")
        first, *rest = ["\n".join(block) for block in self.blocks]
        rest.append("OUT: ret;")
        rng.shuffle(rest)
        return "\n".join([first, *rest, "FINAL: bar.sync 0; mov.u32 %o0, %r0;"])

    def put(self, *lines: str) -> None:
        self.blocks[self.now] += lines

    def part(self, test: Condition, yes: int, no: int) -> None:
        self.put(TESTS[test[0]][0].format(test[1]), f"@%p bra B{yes};", f"bra.uni B{no};")

    def do(self, statements: list[tuple]) -> None:
        for kind, *parts in statements:
            getattr(self, f"do_{kind}")(*parts)

    def do_set(self, factor: int) -> None:
        self.put(f"mad.lo.u32 %r0, %r0, {factor}, %t;")

    def do_return(self, test: Condition, how: str) -> None:
        after = self.block()
        if RETURNS[how]:
            leaving = self.block()
            self.part(test, leaving, after)
            self.blocks[leaving].append(RETURNS[how])
        else:
            self.put(TESTS[test[0]][0].format(test[1]), "@%p bra OUT;", f"bra.uni B{after};")
        self.now = after

    def do_break(self, test: Condition) -> None:
        after = self.block()
        self.part(test, self.exits[-1], after)
        self.now = after

    def do_if(self, test: Condition, then: list[tuple], other: list[tuple]) -> None:
        yes, no, after = self.block(), self.block(), self.block()
        self.part(test, yes, no)
        for start, statements in ((yes, then), (no, other)):
            self.now = start
            self.do(statements)
            self.put(f"bra.uni B{after};")
        self.now = after

    def do_loop(self, body: list[tuple]) -> None:
        count, bound = f"%x{2 * self.depth + 1}", f"%x{2 * self.depth + 2}"
        head, inside, after = self.block(), self.block(), self.block()
        self.put(
            f"mov.u32 {count}, 0; add.u32 {bound}, %r0, %t; and.b32 {bound}, {bound}, 3; bra.uni B{head};"
        )
        self.blocks[head].append(f"setp.ge.u32 %p, {count}, {bound}; @%p bra B{after}; bra.uni B{inside};")
        self.exits.append(after)
        self.depth += 1
        self.now = inside
        self.do(body)
        self.put(f"add.u32 {count}, {count}, 1; bra.uni B{head};")
        self.depth -= 1
        self.now = self.exits.pop()


@given(st.integers(0, BITS), st.sampled_from(["program", "adverse"]))
@settings(max_examples=60)
def test_those_that_stay_are_together_at_the_end(seed, order):
    rng = random.Random(seed)
    program = draw(rng, DEPTH, False)
    data = np.array([rng.getrandbits(32) for _ in range(THREADS)], np.uint32)
    ptx = register_kernel(Compiler().text(program, rng), 1, 1)
    found = run_registers(ptx, data.reshape(1, -1), 1, order)[0].tolist()
    assert found == [Thread(t, int(x)).run(program) for t, x in enumerate(data)]
