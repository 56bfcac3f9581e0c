"""The mutation score: how many one-step mistakes a default check finds, and whether it names their place.

    python dev/bench/mutation --seed 1 --count 300 --out seed1.jsonl     run, then report
    python dev/bench/mutation --report seed1.jsonl [seed2.jsonl ..]      report again

Mutants are drawn with the seed: a source, an operator, a site, each at random. `--count` is the number that
must compile. A run can be continued: what --out already holds is not run again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from operators import Mutant, mutants  # noqa: E402
from report import report  # noqa: E402
from runner import Worker  # noqa: E402
from sources import SOURCES, Source  # noqa: E402


def draw(seed: int):
    """(source, mutant) without end to speak of, each once, in an order that the seed decides."""
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
    seen = {row["text"] for row in rows}
    compiled = sum(row["outcome"]["kind"] != "refused" for row in rows)
    worker = Worker()
    with open(options.out, "a") as file:
        for source, mutant in draw(options.seed):
            if compiled >= options.count:
                break
            if mutant.text in seen or options.only and source.name not in options.only:
                continue
            outcome = worker.run(source, mutant.text)
            compiled += outcome.kind != "refused"
            rows.append(record(source, mutant, outcome))
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            print(f"{compiled}/{options.count} {source.name}: {mutant.operator}: {outcome.kind}", flush=True)
    worker.stop()
    report(rows, options.list)
    return 0


def _known(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300, help="mutants that compile")
    parser.add_argument("--out", type=Path, default=Path("mutation.jsonl"))
    parser.add_argument("--only", nargs="*", help="sources, for example 'step 7'")
    parser.add_argument("--report", type=Path, nargs="+")
    parser.add_argument(
        "--list", action="store_true", help="each survivor and each finding in the wrong place"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
