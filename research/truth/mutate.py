"""One small change of a program, as a tired programmer might make it. Some changes are harmless."""

from __future__ import annotations

import random

from research.truth.model import COLLECTIVE, FULL, Op, Program


def _lists(program: Program) -> list[list[Op]]:
    """Every list of events, including those of arms."""
    found = [code for code in program.code if code]
    return found + [inner for code in found for op in code for _, inner in op.arms if inner]


def mutate(program: Program, rng: random.Random) -> None:
    """Changes the program in place; it stays unchanged if the change does not apply."""
    lists = _lists(program)
    if not lists:
        return
    code = rng.choices(lists, [len(c) for c in lists])[0]
    at = rng.randrange(len(code))
    rng.choices([c for c, _ in CHANGES], [w for _, w in CHANGES])[0](program, code, at, rng)


def _delete(program, code, at, rng):
    del code[at]


def _move(program, code, at, rng):
    op = code.pop(at)
    code.insert(max(0, min(len(code), at + rng.choice([-3, -2, -1, 1, 2, 3]))), op)


def _double(program, code, at, rng):
    op = code[at]
    if op.kind != "arms" and "block" not in op.a:
        code.insert(at + 1, Op(op.kind, op.lanes, dict(op.a)))


def _lanes(program, code, at, rng):
    op = code[at]
    if op.kind not in COLLECTIVE and op.kind not in ("arms", "cl_arrive", "cl_wait"):
        op.lanes = rng.choice([FULL, 1, 0xFFFF, 0xFFFFFFFE, 2])


def _pass_on(program, code, at, rng):
    """Moves the event to another warp of the same CTA."""
    number = next((i for i, c in enumerate(program.code) if c is code), None)
    if number is None or code[at].kind == "arms" or program.warps == 1:
        return
    first = number // program.warps * program.warps
    other = rng.choice([c for c in program.code[first : first + program.warps] if c is not code])
    other.insert(rng.randint(0, len(other)), code.pop(at))


def _count(program, code, at, rng):
    """Makes an mbarrier expect one arrival more or fewer."""
    if program.bars:
        place = rng.choice(sorted(program.bars))
        program.bars[place] = max(1, program.bars[place] + rng.choice([-1, 1]))


def _barrier_count(program, code, at, rng):
    """Makes everyone at a barrier expect 32 threads more or fewer."""
    numbers = sorted({(i // program.warps, op.a["id"]) for i, op in _meetings(program)})
    if numbers:
        rank, number = rng.choice(numbers)
        change = rng.choice([-32, 32])
        for i, op in _meetings(program):
            if (i // program.warps, op.a["id"]) == (rank, number):
                op.a["count"] = max(32, op.a["count"] + change)


def _meetings(program):
    return [
        (i, op) for i, code in enumerate(program.code) for op in code if op.kind in ("bar_sync", "bar_arrive")
    ]


_CHOICES = {  # argument -> other values
    "parity": lambda v, p, rng: 1 - v,
    "sem": lambda v, p, rng: {"release": "relaxed", "acquire": "relaxed"}.get(v, v),
    "scope": lambda v, p, rng: rng.choice(["cta", "cluster", "gpu"]),
    "n": lambda v, p, rng: v + 1,
    "read": lambda v, p, rng: not v,
    "inc": lambda v, p, rng: not v,
    "at": lambda v, p, rng: rng.choice(["own", "next", "flip", "one"]),
    "slot": lambda v, p, rng: max(0, v + rng.choice([-1, 1])),
    "bytes": lambda v, p, rng: rng.choice([v // 2, v * 2, v + 16]),
    "space": lambda v, p, rng: v,
    "after": lambda v, p, rng: not v,
    "column": lambda v, p, rng: max(0, v + rng.choice([-1, 1, -16])),
    "tile": lambda v, p, rng: (v + 1) % 4,
    "arrive": lambda v, p, rng: 1 - v,
    "need": lambda v, p, rng: v + rng.choice([-1, 1]),
    "bar": lambda v, p, rng: rng.choice([x for x in sorted(p.bars) if x[0] == v[0]]),
}


def _argument(program, code, at, rng):
    op = code[at]
    names = sorted(set(op.a) & set(_CHOICES))
    if names:
        name = rng.choice(names)
        value = _CHOICES[name](op.a[name], program, rng)
        for twin in program.ops() if "block" in op.a else (op,):
            if twin.a.get("block") == op.a.get("block"):
                twin.a[name] = value


CHANGES = (
    (_delete, 8),
    (_argument, 8),
    (_move, 5),
    (_double, 1),
    (_lanes, 4),
    (_pass_on, 2),
    (_count, 3),
    (_barrier_count, 1),
)
