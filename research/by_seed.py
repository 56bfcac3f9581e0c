"""The benches that draw programs by number: their options, one loop over the numbers, and its report."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

BLOCK = 1_000_000  # numbers of one seed
EVERY = 60  # seconds between two reports in --out
T = TypeVar("T")


def parser(doc: str) -> argparse.ArgumentParser:
    """SEED [--count N] [--minutes M]"""
    made = argparse.ArgumentParser(description=doc.split("\n")[0])
    made.add_argument("seed", type=int)
    made.add_argument("--count", type=int, default=1000)
    made.add_argument("--minutes", type=float, default=600.0)
    return made


def numbers(given: argparse.Namespace) -> range:
    """SEED * 1,000,000 and following."""
    return range(given.seed * BLOCK, given.seed * BLOCK + given.count)


def in_time(items: Iterable[T], minutes: float) -> Iterator[T]:
    """The items until the minutes have passed."""
    start = time.monotonic()
    for item in items:
        yield item
        if time.monotonic() - start > 60 * minutes:
            return


def bench(doc: str, examine: Callable[[int], tuple], tally) -> int:
    """tally.add(*examine(number)) for each number; prints tally.report(SHOW); 1 if tally.bad()."""
    options = parser(doc)
    options.add_argument("--jobs", type=int, default=1, help="processes; the result does not depend on it")
    options.add_argument("--show", type=int, default=0)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    last = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for result in in_time(pool.imap(examine, numbers(given), chunksize=8), given.minutes):
            tally.add(*result)
            if given.out and time.monotonic() - last > EVERY:
                given.out.write_text(tally.report(given.show) + "\n")
                last = time.monotonic()
    spent = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    text = f"{tally.report(given.show)}\n{spent:.0f} s of processor time"
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    return int(tally.bad())
