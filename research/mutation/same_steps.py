"""A rule that proves a mutant as correct as its kernel although its PTX differs: it takes the same steps.

Both run once, without checks, in program order, at each size. The steps of each thread are recorded: its
accesses to memory, copies, MMAs, arrivals, commits, allocations (effects), and its barriers, waits and fences
(order). A mutant is equivalent if for every thread

- the effects are the same, at the same addresses, in the same order; accesses between the same two
  other steps may be reordered unless they touch the same bytes and one writes, and may be repeated;
  adjacent initialisations and allocations, or adjacent copies, may be reordered;
- between the same two effects there is, in the same order, all the order of the original, or more,
  also between accesses with nothing between them before. Adjacent fences may be reordered,
  fences that order nothing (steps.py) may be dropped, and CTA barriers may have other numbers;
- the output has the same bytes.

The warps of one warpgroup may exchange roles as a whole: it does not matter which of them plays a role if all
32 lanes do the same, at the same addresses, including tensor memory lanes. So may lanes of one warp before
their first CTA barrier, if all they do until then is set up and fence, since the barrier releases it to all
threads. And it does not matter who initialises a barrier that nobody uses.

Then every schedule of the mutant is a schedule of the kernel. A mutant that removes order is never equivalent
by this rule, whatever the checks report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from research.mutation.steps import ACCESS, COPY, FENCE, ORDER, SETUP, Steps

_WARPGROUP = 128  # threads


def at_least(kernel: Steps, mutant: Steps) -> bool:
    """Whether every thread of the mutant has the same effects, with at least
    the order that the kernel has.
    """
    first, second = _without_unused(kernel.threads), _without_unused(mutant.threads)
    if first.keys() != second.keys():
        return False
    apart = {who for who, steps in first.items() if not _same(steps, second[who])}
    groups: dict[tuple[int, int], set[int]] = {}
    for cluster, warp in sorted({(cluster, thread // 32) for cluster, thread in apart}):
        if not _lanes_exchanged(_lanes(first, cluster, warp), _lanes(second, cluster, warp)):
            groups.setdefault((cluster, warp * 32 // _WARPGROUP), set()).add(warp)
    return all(_exchanged(first, second, cluster, warps) for (cluster, _), warps in groups.items())


def _lanes(threads: dict, cluster: int, warp: int) -> list[list[tuple]]:
    every = ((cluster, thread) for thread in range(warp * 32, warp * 32 + 32))
    return [threads[who] for who in every if who in threads]


def _without_unused(threads: dict) -> dict:
    """The threads' steps without the initialisation of barriers that no other step names."""
    used: dict[int, set] = {}
    for (cluster, _), steps in threads.items():
        used.setdefault(cluster, set()).update(
            part for kind, *what in steps if kind not in (SETUP, ACCESS) for part in _places(what)
        )
    return {
        who: [step for step in steps if step[:2] != (SETUP, "init") or step[2] in used[who[0]]]
        for who, steps in threads.items()
    }


def _places(what) -> Iterator[tuple]:
    """The places of barriers that a step names, at any depth."""
    for part in what:
        if isinstance(part, tuple | list):
            yield from _places(part)
    if len(what) == 2 and all(isinstance(part, int) for part in what):
        yield tuple(what)


def _lanes_exchanged(kernel: list[list[tuple]], mutant: list[list[tuple]]) -> bool:
    """Whether lanes of a warp do, before their first CTA barrier, the set-up that other lanes of the warp
    did, and otherwise the same as in the kernel.
    """
    starts = [[_first_barrier(steps) for steps in lanes] for lanes in (kernel, mutant)]
    if len(kernel) != len(mutant) or None in starts[0] + starts[1]:
        return False
    before = [
        Counter(tuple(steps[:at]) for steps, at in zip(lanes, ends, strict=True))
        for lanes, ends in zip((kernel, mutant), starts, strict=True)
    ]
    after = zip(kernel, starts[0], mutant, starts[1], strict=True)
    return before[0] == before[1] and all(_same(one[at:], other[to:]) for one, at, other, to in after)


def _first_barrier(steps: list[tuple]) -> int | None:
    """The position of the first CTA barrier, if only set-up and fences come before it."""
    at = next((at for at, step in enumerate(steps) if step[0] not in (SETUP, FENCE)), None)
    return at if at is not None and steps[at][:2] == (ORDER, "bar") else None


def _exchanged(kernel: dict, mutant: dict, cluster: int, warps: set[int]) -> bool:
    """Whether each of these warps of the mutant takes the steps of another one of them in the kernel."""

    def alike(one: int, other: int) -> bool:
        lanes = ((kernel, one), (mutant, other))
        steps = [[run.get((cluster, warp * 32 + lane)) for lane in range(32)] for run, warp in lanes]
        return all(a is b is None or None not in (a, b) and _same(a, b) for a, b in zip(*steps, strict=True))

    left = sorted(warps)
    for warp in sorted(warps):
        found = next((other for other in left if alike(warp, other)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _same(one: list[tuple], other: list[tuple]) -> bool:
    """`at_least` for one thread: walks over both, effect by effect; the kernel's order must be present."""
    if one == other:
        return True
    first, second = _blocks(one), _blocks(other)
    at = 0
    for kind, steps in first:
        while (
            at < len(second) and not _stands_for(kind, steps, second[at]) and second[at][0] in (ORDER, FENCE)
        ):
            at += 1  # more order than before
        if at == len(second) or not _stands_for(kind, steps, second[at]):
            return False
        found, at = second[at][1], at + 1
        while kind == ACCESS and not set(steps) <= set(found):  # order added between accesses
            at = next((n for n in range(at, len(second)) if second[n][0] not in (ORDER, FENCE)), len(second))
            if at == len(second) or second[at][0] != ACCESS:
                return False
            found, at = found + second[at][1], at + 1
        if kind == ACCESS and not _alike(steps, found):
            return False
    return all(kind in (ORDER, FENCE) for kind, _ in second[at:])


def _stands_for(kind: str, steps: list[tuple], block: tuple[str, list[tuple]]) -> bool:
    """Whether the mutant's block may replace the kernel's. Accesses are compared only by class here."""
    if kind != block[0] or kind == ACCESS:
        return kind == block[0]
    return set(steps) <= set(block[1]) if kind == FENCE else steps == block[1]


def _blocks(steps: list[tuple]) -> list[tuple[str, list[tuple]]]:
    """Adjacent steps of one class as a block, each listed once if their order does not matter; a block of its
    own for each step if it does.
    """
    found = []
    for kind, group in groupby(steps, key=lambda step: step[0]):
        if kind in (SETUP, COPY):
            found.append((kind, sorted(set(group), key=repr)))
        elif kind in (FENCE, ACCESS):
            found.append((kind, list(group)))
        else:
            found += [(kind, [step]) for step in group]
    return found


def _alike(one: list[tuple], other: list[tuple]) -> bool:
    """Whether the accesses are the same, and those to the same bytes in the same order."""
    return set(one) == set(other) and _conflicts(one) == _conflicts(other)


def _conflicts(steps: list[tuple]) -> dict[int, list[tuple]]:
    """Word -> the accesses to it in order, without immediate repetition, for
    words that one of them writes.
    """
    words: dict[int, list[tuple]] = {}
    for step in steps:
        _, place, kind = step
        for word in range(place >> 2, (place + max(kind >> 1, 1) - 1 >> 2) + 1):
            known = words.setdefault(word, [])
            if not known or known[-1] != step:
                known.append(step)
    return {word: known for word, known in words.items() if any(step[2] & 1 for step in known)}
