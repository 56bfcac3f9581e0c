"""Small synchronisation programs: what each warp of one CTA does, step by step, drawn from a seed.

A step is a tuple of a verb and numbers:
  ("st", slot), ("ld", slot)           lane 0 writes or reads a word of shared memory
  ("fence",)                           fence.proxy.async
  ("arrive", bar), ("expect", bar)     lane 0 arrives; `expect` announces the bytes of one copy too
  ("wait", bar, parity)                the warp waits
  ("load", slot, bar)                  bulk copy to a slot, which completes on a barrier
  ("put", slot), ("close",)            bulk copy from a slot; all since the last `close` are a group
  ("store", slot)                      both: `put`, then `close`
  ("left", n), ("drain",)              wait until all groups but the last n (or all) have been read
  ("cp", slot), ("commit",)            cp.async to a slot; all since the last `commit` are a group
  ("keep", n)                          wait until all groups but the last n have arrived
  ("signal", bar)                      arrives, with .noinc, when all `cp` so far are complete
  ("sync", id), ("meet", id)           bar.sync, bar.arrive of a barrier of `Program.meets[id]` warps
  ("set", flag), ("poll", flag)        release store of 1; acquire loads until the flag is set
  ("add", flag), ("count", flag, n)    release addition of 1; acquire loads until the sum is n or more
  ("peek", flag, slot)                 one acquire load; reads the slot if the flag is set
  ("test", bar, parity, slot)          one test_wait; reads the slot if it passes
  ("first", flag, slot)                acq_rel addition of 1; writes the slot if nobody added before
  ("later", flag, slot)                the same; reads the slot if somebody did
"""

from __future__ import annotations

import random
from dataclasses import dataclass

SLOTS, BARS, FLAGS = 3, 3, 2
MOST_STEPS = 7  # of a warp

Step = tuple


@dataclass(frozen=True)
class Program:
    warps: tuple[tuple[Step, ...], ...]
    bars: tuple[int, ...]  # arrivals that a phase of each mbarrier expects
    meets: tuple[int, ...]  # warps that each CTA barrier expects; barrier 0 belongs to the kernel's frame

    @property
    def places(self) -> list[tuple[int, int]]:
        """(warp, step) of each step of the program."""
        return [(warp, step) for warp, steps in enumerate(self.warps) for step in range(len(steps))]

    def __str__(self) -> str:
        head = f"mbarriers of {self.bars}, CTA barriers of {self.meets} warps"
        return "\n".join([head, *(f"  warp {w}: {_text(steps)}" for w, steps in enumerate(self.warps))])


def source_line(warp: int, step: int) -> int:
    """The line number of a step in the PTX of its program."""
    return 100 * warp + step + 1


def _text(steps: tuple[Step, ...]) -> str:
    return "; ".join(" ".join(map(str, step)) for step in steps)


def program_of(seed: int) -> Program:
    """The program of a seed, always the same: a correct pattern with up to two changes, or random steps."""
    rng = random.Random(f"every {seed}")
    if rng.random() < 0.25:
        return _random(rng)
    program = rng.choice(PATTERNS)(rng)
    for _ in range(rng.choice((0, 1, 1, 2))):
        program = _changed(rng, program)
    return program


# ---- right patterns ----


def _ring(rng) -> Program:
    """A producer fills a slot, a consumer (or two) reads it and returns it."""
    readers, rounds = rng.choice((1, 1, 2)), rng.choice((1, 2, 2))
    copies = rng.random() < 0.5
    fill = (("expect", 0), ("load", 0, 0)) if copies else (("st", 0), ("arrive", 0))
    producer, consumer = [], []
    for i in range(rounds):
        producer += [("wait", 1, i & 1 ^ 1), *fill]
        consumer += [("wait", 0, i & 1), ("ld", 0), ("arrive", 1)]
    return Program((tuple(producer), *(tuple(consumer),) * readers), (1, readers), ())


def _stages(rng) -> Program:
    """Two slots, each with its own full barrier; nothing is reused."""
    a, b = rng.sample(((("st", 0), ("arrive", 0)), (("expect", 1), ("load", 1, 1))), 2)
    reader = [("wait", 0, 0), ("ld", 0), ("wait", 1, 0), ("ld", 1)]
    return Program(((*a, *b), tuple(reader)), (1, 1), ())


def _exchange(rng) -> Program:
    """Warps write, synchronise, read what others wrote, and do so once more."""
    n = rng.choice((2, 2, 3))
    twice = rng.random() < 0.5
    warps = []
    for w in range(n):
        steps = [("st", w), ("sync", 0), ("ld", (w + 1) % n)]
        warps.append(tuple([*steps, ("sync", 1), ("st", (w + 1) % n)] if twice else steps))
    return Program(tuple(warps), (), (n, n))


def _hand_over(rng) -> Program:
    """One warp writes and only signals, another one waits and reads; then they swap roles."""
    back = rng.random() < 0.5
    first, second = [("st", 0), ("meet", 0)], [("sync", 0), ("ld", 0)]
    if back:
        first += [("sync", 1), ("st", 0)]
        second += [("meet", 1)]
    return Program((tuple(first), tuple(second)), (), (2, 2))


def _out(rng) -> Program:
    """A result leaves by a bulk copy, and its slot is reused."""
    writer = [("st", 0), ("fence",), ("arrive", 0)]
    issuer = [("wait", 0, 0), ("store", 0)]
    if rng.random() < 0.6:
        issuer += [("drain",), ("arrive", 1)]
        writer += [("wait", 1, 0), ("st", 0)]
    return Program((tuple(writer), tuple(issuer)), (1, 1), ())


def _flags(rng) -> Program:
    """A word guarded by a flag, or by a counter of several writers."""
    if rng.random() < 0.5:
        return Program(((("st", 0), ("set", 0)), (("poll", 0), ("ld", 0))), (), ())
    writers = rng.choice((1, 2))
    warps = [(("st", w), ("add", 0)) for w in range(writers)]
    reader = (("count", 0, writers), *(("ld", w) for w in range(writers)))
    return Program((*warps, reader), (), ())


def _all_arrive(rng) -> Program:
    """Every warp arrives and waits, phase after phase."""
    n, rounds = rng.choice((2, 2, 3)), rng.choice((1, 2))
    warps = []
    for w in range(n):
        steps: list[Step] = []
        for i in range(rounds):
            steps += [("st", w) if i == 0 else ("ld", (w + 1) % n), ("arrive", 0), ("wait", 0, i & 1)]
        warps.append(tuple([*steps, ("ld", (w + 1) % n) if rounds == 1 else ("st", (w + 1) % n)]))
    return Program(tuple(warps), (n,), ())


def _groups(rng) -> Program:
    """cp.async in groups: the copying warp waits for all but the last group and
    passes on what has arrived.
    """
    own = rng.random() < 0.5
    copier: list[Step] = [("cp", 0), ("commit",), ("cp", 1), ("commit",), ("keep", 1)]
    if own:
        return Program(((*copier, ("ld", 0), ("keep", 0), ("ld", 1)),), (), ())
    return Program(((*copier, ("arrive", 0)), (("wait", 0, 0), ("ld", 0))), (1,), ())


def _signalled(rng) -> Program:
    """cp.async whose completion arrives at an mbarrier; the slot may be returned and filled again."""
    copier: list[Step] = [("cp", 0), ("signal", 0)]
    reader: list[Step] = [("wait", 0, 0), ("ld", 0)]
    if rng.random() < 0.5:
        copier += [("wait", 1, 0), ("cp", 0), ("signal", 0)]
        reader += [("arrive", 1), ("wait", 0, 1), ("ld", 0)]
    return Program((tuple(copier), tuple(reader)), (1, 1), ())


def _out_in_groups(rng) -> Program:
    """Two results leave in separate groups or in one; the slot of the older is reused."""
    together = rng.random() < 0.3
    writer: list[Step] = [("st", 0), ("st", 1), ("fence",), ("put", 0)]
    writer += [("put", 1), ("close",), ("left", 0)] if together else [("close",), ("store", 1), ("left", 1)]
    if rng.random() < 0.5:
        return Program(((*writer, ("st", 0)),), (), ())
    return Program(((*writer, ("arrive", 0)), (("wait", 0, 0), ("st", 0))), (1,), ())


def _last_one(rng) -> Program:
    """Each warp writes its word and adds one; a warp that is not the first reads the other's word."""
    n = rng.choice((2, 2, 3))
    if n == 3:  # the third comes when both are there
        return Program(((("st", 0), ("add", 0)), (("later", 0, 0),), (("count", 0, 2), ("ld", 0))), (), ())
    return Program(tuple((("st", w), ("later", 0, 1 - w)) for w in range(2)), (), ())


def _claimed(rng) -> Program:
    """The first warp to come writes; all synchronise; all read."""
    n = rng.choice((2, 2, 3))
    return Program(((("first", 0, 0), ("sync", 0), ("ld", 0)),) * n, (), (n,))


def _glance(rng) -> Program:
    """A reader that looks once, and reads only what has arrived."""
    if rng.random() < 0.5:
        reader: tuple[Step, ...] = (
            (("peek", 0, 0), ("peek", 0, 0)) if rng.random() < 0.5 else (("peek", 0, 0),)
        )
        return Program(((("st", 0), ("set", 0)), reader), (), ())
    fill = (("expect", 0), ("load", 0, 0)) if rng.random() < 0.5 else (("st", 0), ("arrive", 0))
    after = (("wait", 0, 0), ("ld", 0)) if rng.random() < 0.5 or fill[0][0] == "expect" else ()
    return Program((fill, (("test", 0, 0, 0), *after)), (1,), ())


PATTERNS = (
    _ring, _ring, _stages, _exchange, _hand_over, _out, _flags, _all_arrive,
    _groups, _signalled, _out_in_groups, _last_one, _claimed, _glance,
)  # fmt: skip


# ---- at random, and changes ----


def _step(rng, bars: int, meets: int) -> Step:
    slot = rng.randrange(2)
    choices: list[Step] = [("st", slot), ("ld", slot), ("ld", slot)]
    if bars:
        bar = rng.randrange(bars)
        choices += [("arrive", bar), ("arrive", bar), ("wait", bar, rng.randrange(2)), ("wait", bar, 0)]
    if meets:
        choices += [("sync", rng.randrange(meets)), ("meet", rng.randrange(meets))]
    return rng.choice(choices)


def _random(rng) -> Program:
    n, bars, meets = rng.choice((2, 2, 3)), rng.choice((1, 1, 2)), rng.choice((0, 0, 1))
    warps = [[_step(rng, bars, meets) for _ in range(rng.randint(1, 4))] for _ in range(n)]
    counts = tuple(rng.randint(1, 2) for _ in range(bars))
    return Program(tuple(map(tuple, warps)), counts, tuple(rng.randint(2, n) for _ in range(meets)))


def _changed(rng, program: Program) -> Program:
    """The program with one mistake: a step dropped, doubled, moved, exchanged or renumbered, or another
    count.
    """
    warps, bars = [list(steps) for steps in program.warps], list(program.bars)
    if bars and rng.random() < 0.12:
        bar = rng.randrange(len(bars))
        bars[bar] = max(1, bars[bar] + rng.choice((-1, 1)))
        return Program(program.warps, tuple(bars), program.meets)
    steps = rng.choice([w for w in warps if w])
    at, kind = rng.randrange(len(steps)), rng.random()
    if kind < 0.35:
        del steps[at]
    elif kind < 0.45 and len(steps) < MOST_STEPS:
        steps.insert(at, steps[at])
    elif kind < 0.7 and len(steps) > 1:
        moved = steps.pop(at)
        steps.insert(rng.randrange(len(steps) + 1), moved)
    elif kind < 0.85:
        steps[at] = _renumbered(rng, steps[at], program)
    elif len(steps) < MOST_STEPS:
        steps.insert(at, _step(rng, len(bars), len(program.meets)))
    return Program(tuple(map(tuple, warps)), program.bars, program.meets)


def _renumbered(rng, step: Step, program: Program) -> Step:
    verb, *numbers = step
    if verb in ("wait",) and rng.random() < 0.6:
        return verb, numbers[0], numbers[1] ^ 1
    if verb in ("wait", "arrive", "expect", "signal"):
        return verb, rng.randrange(len(program.bars)), *numbers[1:]
    if verb in ("sync", "meet"):
        return verb, rng.randrange(len(program.meets))
    if verb in ("st", "ld", "store", "put", "cp"):
        return verb, rng.randrange(SLOTS)
    if verb in ("keep", "left"):
        return verb, rng.randrange(3)
    if verb in ("peek", "first", "later"):
        return verb, numbers[0], rng.randrange(SLOTS)
    if verb == "test":
        return verb, numbers[0], rng.randrange(2), rng.randrange(SLOTS)
    if verb == "load":
        return verb, rng.randrange(SLOTS), rng.randrange(len(program.bars))
    if verb == "count":
        return verb, numbers[0], max(1, numbers[1] + rng.choice((-1, 1)))
    return step
