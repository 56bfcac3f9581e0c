"""Variants of PTX that are as correct as the original kernel: none may get an `error`, or leave another D.

    python -m research.mutation.right FILE.. [--seed S] [--count N]

FILE is a saved artifact (.lab) of a step or rung of the course. Each variant has up to three changes of the
table below: synchronisation that is repeated or stronger, a wait for more than necessary, another free
number, a thread that sleeps. None removes order. They run in both orders; each `error` or `review` that the
original kernel does not have, and each other D, is printed. Exit code 1 if there is an `error` or another D.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import ml_dtypes  # noqa: F401  (teaches numpy "bfloat16")
import numpy as np

from tirxlab.artifact import Artifact
from tirxlab.devices import sim

ORDERS = ("program", "adverse")
MOST_CHANGES = 3
_GUARD = r"(?:@!?%?\w+\s+)?"
_ALL_LANES = "bar.warp.sync 0xffffffff;"


@dataclass(frozen=True)
class Right:
    """The lines that a change applies to (whole statements), and their replacement."""

    pattern: str
    new: Callable[[str], str]


def _twice(line: str) -> str:
    return f"{line} {line.strip()}"


RIGHT: dict[str, Right] = {
    "a fence twice": Right(_GUARD + r"(?:fence\.|tcgen05\.fence|wgmma\.fence)[^;]*;$", _twice),
    "a wait for groups twice": Right(_GUARD + r"(?:cp\.async\.(?:bulk\.)?|wgmma\.)wait_group[^;]*;$", _twice),
    "a wait for tensor memory twice": Right(_GUARD + r"tcgen05\.wait[^;]*;$", _twice),
    "a CTA barrier twice": Right(r"(?:bar|barrier)\.sync\b[^;]*;$", _twice),
    "a warp barrier before the CTA's": Right(r"bar\.sync\b[^;]*;$", lambda line: f"{_ALL_LANES} {line}"),
    "a fence for all of the async proxy": Right(
        _GUARD + r"fence\.proxy\.async\.\S+;$", lambda line: re.sub(r"async\.\S+;", "async;", line)
    ),
    "a wait for all groups": Right(
        _GUARD + r"(?:cp\.async\.(?:bulk\.)?|wgmma\.)wait_group\S*\s+[1-9]\d*;$",
        lambda line: re.sub(r"\d+;$", "0;", line),
    ),
    "a wait for writes too": Right(
        _GUARD + r"cp\.async\.bulk\.wait_group\.read[^;]*;$", lambda line: line.replace(".read", "")
    ),
    "a fence before an arrival": Right(
        _GUARD + r"mbarrier\.arrive\b[^;]*;$", lambda line: f"fence.proxy.async; {line}"
    ),
    "a thread that sleeps": Right(
        _GUARD + r"(?:mbarrier\.arrive|cp\.async|st\.|bar\.sync)[^;]*;$",
        lambda line: f"nanosleep.u32 200; {line}",
    ),
}


def renumbered(ptx: str) -> str | None:
    """The PTX with other numbers for CTA barriers except 0; None if there are
    none, or a register holds one.
    """
    barrier = r"((?:bar|barrier)\.(?:cta\.)?(?:sync|arrive)(?:\.aligned)?\s+)(%?\w+)"
    used = {found[2] for found in re.finditer(barrier, ptx)}
    if any(not number.isdigit() for number in used) or not used - {"0"}:
        return None
    return re.sub(barrier, lambda found: f"{found[1]}{_other(int(found[2]))}", ptx)


def _other(number: int) -> int:
    return 16 - number if number else 0


def variant(ptx: str, rng: random.Random) -> tuple[str, str]:
    """(what was changed, the new text)."""
    lines, said = ptx.split("\n"), []
    for _ in range(rng.randint(1, MOST_CHANGES)):
        name = rng.choice(sorted(RIGHT))
        places = [n for n, line in enumerate(lines) if re.match(RIGHT[name].pattern, line.strip())]
        if places:
            at = rng.choice(places)
            lines[at] = RIGHT[name].new(lines[at])
            said.append(f"{name} (line {at + 1})")
    text = "\n".join(lines)
    other = renumbered(text) if rng.random() < 0.15 else None
    return ", ".join(said + ["other barrier numbers"] * (other is not None)), other or text


@dataclass
class Outcome:
    verdict: str
    findings: list[str]
    output: bytes


class Subject:
    """A kernel, random inputs, and its findings in each order."""

    def __init__(self, file: Path):
        self.name, self.artifact = file.stem, Artifact.from_bytes(file.read_bytes())
        rng = np.random.default_rng(1)
        self.inputs = [_random(rng, buffer) for buffer in self.artifact.buffers[:2]]
        self.own = {order: self.run(self.artifact.ptx, order) for order in ORDERS}

    def run(self, ptx: str, order: str) -> Outcome:
        out = self.artifact.outputs[0]
        data = [*self.inputs, np.full(out.shape, np.nan, out.dtype)]
        run = sim.run(replace(self.artifact, ptx=ptx), data, order=order)
        return Outcome(run.verdict, [str(f).split("\n")[0] for f in run.findings], data[2].tobytes())

    def judged(self, ptx: str) -> tuple[str, str]:
        """("same", ""), or how the result is worse than the kernel's: ("error" | "review" | .., words)."""
        for order in ORDERS:
            found, own = self.run(ptx, order), self.own[order]
            fresh = [words for words in found.findings if found.verdict != own.verdict]
            if fresh:
                return found.verdict, f"{order}: {fresh[0]}"
            if found.output != own.output:
                return "another D", order
        return "same", ""


def _random(rng, buffer) -> np.ndarray:
    return rng.integers(-2, 3, buffer.shape).astype(buffer.dtype)


def drawn(subjects: list[Subject], rng: random.Random) -> Iterator[tuple[Subject, str, str]]:
    """An endless sequence of distinct variants."""
    seen: set[str] = set()
    while True:
        subject = rng.choice(subjects)
        said, text = variant(subject.artifact.ptx, rng)
        if said and text not in seen:
            seen.add(text)
            yield subject, said, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    variants = drawn([Subject(file) for file in given.files], random.Random(given.seed))
    for _, (subject, said, text) in zip(range(given.count), variants, strict=False):
        verdict, words = subject.judged(text)
        counts[verdict] += 1
        if verdict != "same":
            print(f"{verdict}: {subject.name}: {said}: {words}", flush=True)
    print(f"{counts.total()} right variants of {len(given.files)} kernels: {dict(counts)}")
    return 1 if counts["error"] or counts["another D"] else 0


if __name__ == "__main__":
    sys.exit(main())
