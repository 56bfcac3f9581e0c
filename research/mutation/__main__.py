"""The mutation score: how many one-step mistakes a default check finds, and whether it names their place.

    python -m research.mutation --seed 1 --count 300 [--jobs 8] --out seed1.jsonl     run, then report
    python -m research.mutation --report seed1.jsonl [seed2.jsonl ..]                 report again

Mutants are drawn with the seed: a random source, operator and site. `--count` is the number that must
compile. `--jobs` worker processes share them; neither the mutants of a seed nor their order in --out depends
on it. A run can be continued: mutants that --out already holds are not run again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from research.mutation.operators import Mutant, mutants
from research.mutation.report import report
from research.mutation.runner import Worker
from research.mutation.sources import SOURCES, Source


def draw(seed: int):
    """A practically endless sequence of distinct (source, mutant) pairs, in an
    order that the seed decides.
    """
    rng = random.Random(seed)
    pools: dict[str, dict[str, list[Mutant]]] = {}
    for source in SOURCES:
        by_operator = pools.setdefault(source.name, {})
        for mutant in mutants(source.text(), source.builder):
            by_operator.setdefault(mutant.operator, []).append(mutant)
    for by_operator in pools.values():
        for sites in by_operator.values():
            rng.shuffle(sites)
    while any(pools.values()):
        source = rng.choice([s for s in SOURCES if pools[s.name]])
        by_operator = pools[source.name]
        operator = rng.choice(sorted(by_operator))
        yield source, by_operator[operator].pop()
        if not by_operator[operator]:
            del by_operator[operator]


def record(source: Source, mutant: Mutant, outcome) -> dict:
    data = asdict(mutant)
    return {"source": source.name} | data | {"outcome": asdict(outcome)}


def main() -> int:
    options = _parse()
    if options.report:
        rows = [json.loads(line) for path in options.report for line in path.read_text().splitlines()]
        report(rows, options.list)
        return 0
    rows = _known(options.out)
    compiled = sum(row["outcome"]["kind"] != "refused" for row in rows)
    with open(options.out, "a") as file:
        for row in outcomes(_fresh(options, rows), options.jobs):
            if compiled >= options.count:
                break
            compiled += row["outcome"]["kind"] != "refused"
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            kind = row["outcome"]["kind"]
            print(f"{compiled}/{options.count} {row['source']}: {row['operator']}: {kind}", flush=True)
    report(rows, options.list)
    return 0


def _fresh(options, rows: list[dict]):
    """The mutants of this seed that are not run yet."""
    seen = {row["text"] for row in rows}
    for source, mutant in draw(options.seed):
        if mutant.text not in seen and (not options.only or source.name in options.only):
            yield source, mutant


def outcomes(drawn, jobs: int):
    """Results of the mutants, in the order in which they were drawn. Each of `jobs` threads drives one
    process.
    """
    workers = deque(Worker() for _ in range(jobs))

    def run(source: Source, mutant: Mutant) -> dict:
        worker = workers.popleft()  # as many workers as threads
        try:
            return record(source, mutant, worker.run(source, mutant.text))
        finally:
            workers.append(worker)

    ahead: deque = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for source, mutant in drawn:
                ahead.append(pool.submit(run, source, mutant))
                if len(ahead) >= 2 * jobs:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
            pool.shutdown()
            for worker in workers:
                worker.stop()


def _known(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300, help="mutants that compile")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--out", type=Path, default=Path("mutation.jsonl"))
    parser.add_argument("--only", nargs="*", help="sources, for example 'step 7'")
    parser.add_argument("--report", type=Path, nargs="+")
    parser.add_argument(
        "--list", action="store_true", help="list each survivor and each finding in the wrong place"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
