"""Makes a class of mixed submissions for `./lab grade-all`, and the points that each of them must earn.

    python instructor/bench/mixed_class.py make DIR [--count 60] [--seed 1] [--light]
    ./lab grade-all DIR --output GRADES [--scheduler tcp://..]
    python instructor/bench/mixed_class.py check DIR GRADES [OTHER_GRADES]

`check` compares grades.csv (of one run or more) with expected.json and prints the time and memory of grading;
exit code 1 if a grade differs or a submission is missing. `--light`: most have only a few, small steps.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "instructor/tests"), str(ROOT / "instructor/tests/bugs")]

from corpus import bug_source, of_file  # noqa: E402
from kernel_variants import REFERENCE, file_with, moved, solved, variants  # noqa: E402

from instructor.exploits.exploit import EXPLOITS, NOISE, SPEED, WORK, honest_step, kernels_file  # noqa: E402
from tirxlab.cli.handin import write_tar  # noqa: E402
from tirxlab.rubric import load_rubric  # noqa: E402
from tirxlab.steps import read_skeleton, sections  # noqa: E402

BUGS = [
    bug
    for name in ("barriers", "fences", "phases")
    for bug in of_file(name)
    if bug.ctas is None and bug.severity == "error" and bug.kind != "build"
]
ENDLESS_KERNEL = sections(REFERENCE)[1].replace("Tx.cuda.cta_sync()", "while True: Tx.cuda.cta_sync()", 1)
Made = tuple[str | bytes, float]  # a kernels file, and the points that it must earn


def worth(*steps: int) -> float:
    """Points of these steps, without those for speed."""
    rubric = load_rubric()
    return round(sum(rubric.points[n] for n in steps) * (1 - rubric.shares.speed), 2)


def prefix(rng: random.Random) -> Made:
    last = rng.randint(1, 9)
    return solved(*range(1, last + 1)), worth(*range(1, last + 1))


def mutant(rng: random.Random) -> Made:
    bug = rng.choice(BUGS)
    steps = {bug.step, *rng.sample(range(1, 6), 2)}
    text = sections(bug_source(bug))
    return file_with({n: text[n] for n in steps}), worth(*(steps - {bug.step}))


def variant(rng: random.Random) -> Made:
    step = rng.choice([4, 5, 6, 7, 8])
    made = variants(step)
    return made[rng.choice(sorted(made))], worth(step)


def early(rng: random.Random) -> Made:
    step = rng.choice([3, 4, 5])
    points, shares = load_rubric().points[step + 1], load_rubric().shares
    return moved(step, step + 1), round(points * shares.correctness, 2)


def hostile(rng: random.Random) -> Made:
    found = [e for e in EXPLOITS if e.gain not in (SPEED, NOISE, WORK) and not e.top]
    chosen = rng.choice(found)
    return kernels_file(chosen, sections(REFERENCE)), worth(honest_step(chosen))


def looping(rng: random.Random) -> Made:
    if rng.random() < 0.5:
        return file_with({1: ENDLESS_KERNEL, 2: sections(REFERENCE)[2]}), worth(2)
    endless = "def hgemm_v{}(M, N, K):\n    while True:\n        pass\n\n\n"
    return file_with({n: endless.format(n) for n in (1, 4, 7)} | {2: sections(REFERENCE)[2]}), worth(2)


KINDS: dict[str, tuple[int, Callable[[random.Random], Made]]] = {  # name -> (how many of 60, maker)
    "full": (3, lambda rng: (REFERENCE, worth(*range(1, 11)))),
    "prefix": (12, prefix),
    "mutant": (8, mutant),
    "variant": (4, variant),
    "early": (3, early),
    "hostile": (12, hostile),
    "empty": (6, lambda rng: (read_skeleton(), 0.0)),
    "syntax": (5, lambda rng: (REFERENCE.replace("def ", "def (", rng.randint(1, 9)), 0.0)),
    "looping": (3, looping),
    "binary": (2, lambda rng: (rng.randbytes(1000), 0.0)),
    "nothing": (2, lambda rng: (b"", 0.0)),
}


def small(maker: Callable[[random.Random], Made]) -> Callable[[random.Random], Made]:
    """The same kind, but nothing that earns more than steps 4 and 5 are worth."""

    def made(rng: random.Random) -> Made:
        while True:
            what, points = maker(rng)
            if points <= worth(4, 5):
                return what, points

    return made


LIGHT = {  # name -> how many of 60
    "full": 1, "prefix": 10, "mutant": 6, "variant": 2, "early": 2, "hostile": 11,
    "empty": 10, "syntax": 8, "looping": 1, "binary": 5, "nothing": 4,
}  # fmt: skip


def mix(light: bool) -> dict[str, tuple[int, Callable[[random.Random], Made]]]:
    if not light:
        return KINDS
    return {
        kind: (n, KINDS[kind][1] if kind == "full" else small(KINDS[kind][1])) for kind, n in LIGHT.items()
    }


def make(folder: Path, count: int, seed: int, light: bool) -> None:
    rng, kept = random.Random(seed), 0.0
    expected: dict = {}
    folder.mkdir(parents=True)
    kinds = mix(light)
    for kind, (share, maker) in kinds.items():
        kept += share * count / sum(share for share, _ in kinds.values())
        while len(expected) < round(kept):
            name = f"{len(expected):03}-{kind}"
            what, expected[name] = maker(rng)
            (folder / name).mkdir()
            if kind == "nothing":
                continue
            if isinstance(what, str) and rng.random() < 0.3:
                write_tar(folder / name / "handin.tar", what, f"student-{name}")
            else:
                data = what if isinstance(what, bytes) else what.encode()
                (folder / name / "gemm_kernels.py").write_bytes(data)
    folder.with_name(f"{folder.name}.expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    print(f"{len(expected)} submissions in {folder}, {sum(expected.values()):g} points in all")


def check(folder: Path, *grades: Path) -> bool:
    expected = json.loads(folder.with_name(f"{folder.name}.expected.json").read_text())
    good = True
    for place in grades:
        rows = {row["submission"]: row for row in csv.DictReader((place / "grades.csv").open())}
        wrong = {n: (p, rows[n]["total"] if n in rows else None) for n, p in expected.items()}
        wrong = {n: pair for n, pair in wrong.items() if pair[1] is None or float(pair[1]) != pair[0]}
        good = good and not wrong
        print(f"{place}: {len(rows)} rows, {len(wrong)} differ from what they must earn", wrong or "")
        for what, unit in (("seconds", "s wall"), ("cpu_seconds", "s CPU"), ("memory_mib", "MiB")):
            values = [float(row[what]) for row in rows.values()]
            mean, most = statistics.mean(values), max(values)
            print(f"  {what}: mean {mean:.1f}, largest {most:.1f}, sum {sum(values):.0f} {unit}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--count", type=int, default=60)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--light", action="store_true")
    checking = commands.add_parser("check")
    checking.add_argument("folder", type=Path)
    checking.add_argument("grades", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "make":
        make(given.folder, given.count, given.seed, given.light)
        return 0
    return 0 if check(given.folder, *given.grades) else 1


if __name__ == "__main__":
    sys.exit(main())
