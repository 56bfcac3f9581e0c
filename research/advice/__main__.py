"""The rates of right first causes and of wrong advice, on mistakes whose cause is known.

    python -m research.advice --seed 1 --count 60 --out seed1.jsonl   draw, run as `./lab check`, report
    python -m research.advice --slips 1 2 --seed 1 --count 130 --out slips1.jsonl    slips of slips.toml
    python -m research.advice --report seed1.jsonl [--list]           report again

A run with --out can be continued. Mistakes that the compiler refuses, that change nothing, or that no run
finds are counted separately, since they have no first finding. README.md has the figures.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from research.advice.families import judged
from research.advice.mistakes import Mistake, draw
from research.advice.slips import draw_slips
from research.mutation.locate import localised
from research.mutation.runner import Worker

FOUND = ("error", "wrong numbers", "review", "incomplete")


def row_of(mistake: Mistake, outcome) -> dict:
    kept = {k: v for k, v in asdict(mistake).items() if k != "source"}
    return (
        {
            "source": mistake.source.name,
            "depth": mistake.source.depth,
            "operator": mistake.family,
            "lines": [mistake.line],
        }
        | kept
        | {"outcome": asdict(outcome)}
    )


def judgement(row: dict) -> str:
    """right, wrong or vague; "" if there is no first finding."""
    findings = row["outcome"]["findings"]
    if row["outcome"]["kind"] not in FOUND or not findings:
        return ""
    cause = findings[0]["evidence"].get("cause", "")
    return judged(row["family"], cause, localised(row))


def report(rows: list[dict], show: bool) -> None:
    table = Counter((row["family"], judgement(row) or row["outcome"]["kind"]) for row in rows)
    columns = ["right", "vague", "wrong"]
    print(f"{'family':8} {'told':>5} " + " ".join(f"{c:>6}" for c in columns) + "  not found")
    totals = Counter()
    for family in sorted({row["family"] for row in rows}):
        counts = {c: table[family, c] for c in columns}
        rest = {k: n for (f, k), n in table.items() if f == family and k not in columns}
        totals.update(counts)
        told = sum(counts.values())
        print(f"{family:8} {told:5} " + " ".join(f"{n:6}" for n in counts.values()) + f"  {rest or ''}")
    told = sum(totals.values()) or 1
    rates = ", ".join(f"{name} {totals[name]} ({100 * totals[name] / told:.1f} %)" for name in columns)
    print(f"of {told} first findings: {rates}")
    for row in rows if show else ():
        if judgement(row) in ("wrong", "vague"):
            first = row["outcome"]["findings"][0]
            place = f"{row['source']} line {row['line']}"
            print(f"\n{judgement(row)}: {place}: {row['old']}  ->  {row['new']}")
            cause, sentence = first["evidence"].get("cause", ""), first["message"].splitlines()[0]
            print(f"  [{cause}] {first['kind']}: {sentence}")
            print(f"  hint: {first['hint']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument(
        "--slips", type=int, nargs="+", help="draw slips of these lists, not mistakes of mistakes.py"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path, nargs="+")
    parser.add_argument("--list", action="store_true", help="list the rows that are not right")
    options = parser.parse_args()
    files = options.report or [options.out]
    rows = [
        json.loads(line) for path in files if path and path.exists() for line in path.read_text().splitlines()
    ]
    if not options.report:
        rows += list(fresh(options, {row["text"] for row in rows}))
    report(rows, options.list)
    return 0


def fresh(options, known: set[str]):
    """Runs the remaining mistakes and yields their rows."""
    worker, left = Worker(), options.count - len(known)
    with options.out.open("a") as file:
        drawn = draw_slips(options.seed, tuple(options.slips)) if options.slips else draw(options.seed)
        for mistake in drawn:
            if left <= 0:
                break
            if mistake.text in known:
                continue
            left -= 1
            row = row_of(mistake, worker.run(mistake.source, mistake.text))
            file.write(json.dumps(row) + "\n")
            file.flush()
            yield row
    worker.stop()


if __name__ == "__main__":
    raise SystemExit(main())
