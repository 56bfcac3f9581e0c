"""Times a round on this GPU: `python3 -m research.time.round 3|4|5|6 FOLDER [--dry]`, about five minutes.

Needs torch, numpy and cuda-bindings; no TVM, no network. Writes into FOLDER:

timed-N.json, for `rounds.py`: every kernel of the sets NAME-N, sampled as in tracks/measure.py, in three
shuffled rounds over the whole set, so that a row's spread is that of the run.
timing-sass.json: what ptxas leaves of each saved kernel (sass_counts.py), if ptxas is there.

A kernel that the driver refuses, or that faults, is left out and named: each is first launched by itself in a
separate process. --dry loads every artifact, needs no GPU and times nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import random
import subprocess
import sys
import time
from pathlib import Path

from research.time.run import SAVED, Saved, contender, load
from tracks import measure

HERE = Path(__file__).parent
ROUNDS = (3, 4, 5, 6)  # the rounds that this command can run
OUT, SASS, TRYING = "timed-{}.json", "timing-sass.json", "trying.txt"
TURNS = 3  # passes over the whole set
SECONDS = 290  # after which no further pass begins
COUNTING = 60  # seconds reserved for the count of SASS


def sets(number: int) -> list[Path]:
    return [SAVED / f"{name}-{number}" for name in ("ladders", "triton", "public")]


def kernels(number: int, without=()) -> list[Saved]:
    return [s for path in sets(number) for s in load(path) if s.name not in without]


def tried(number: int, folder: Path) -> dict[str, str]:
    """Kernels that do not run, and why. A fault ends its process; the next process continues after it."""
    bad: dict[str, str] = {}
    command = [sys.executable, "-m", "research.time.round", str(number), str(folder), "--try-from"]
    begin = 0
    while True:
        (folder / TRYING).unlink(missing_ok=True)
        done = subprocess.run([*command, str(begin)], capture_output=True, text=True)
        if done.returncode == 0:
            return bad
        if not (folder / TRYING).exists():
            raise SystemExit(f"no kernel could be tried: {done.stderr[-800:]}")
        place, name = (folder / TRYING).read_text().split()
        bad[name] = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]
        begin = int(place) + 1


def try_all(number: int, folder: Path, begin: int) -> None:
    """Launches each kernel once, from the one numbered `begin` on."""
    import torch

    for place, saved in enumerate(kernels(number)):
        if place >= begin:
            (folder / TRYING).write_text(f"{place} {saved.name}")
            contender(saved).launch(0)
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


def timed(number: int, folder: Path, bad: dict[str, str]) -> None:
    """Times the passes; writes the results so far after each of them."""
    import torch

    start, order = time.monotonic(), random.Random(number)
    chosen = [contender(saved) for saved in kernels(number, bad)]
    clock, power = measure.Clock(), measure.Power()
    for one in chosen:
        measure.capture(one)
    print(f"{len(chosen)} kernels ready after {time.monotonic() - start:.0f} s", flush=True)
    for done in range(1, TURNS + 1):
        for one in order.sample(chosen, len(chosen)):
            measure.sample(one, clock, power)
        rows = [{"half": "unseen", **measure.row(one, None)} for one in chosen]
        rows += [{"half": "unseen", "kernel": name, "failed": why} for name, why in bad.items()]
        record = {
            "gpu": torch.cuda.get_device_name(),
            "date": datetime.date.today().isoformat(),
            "method": f"random normal data, {measure.WARMUP} s warm-up, {measure.WINDOW} s window, {done} "
            "rounds, each over the whole set in another order, CUDA graphs, medians",
            "rows": rows,
        }
        (folder / OUT.format(number)).write_text(json.dumps(record, indent=1) + "\n")
        taken = time.monotonic() - start
        print(f"turn {done} of {TURNS} after {taken:.0f} s", flush=True)
        if taken * (done + 1) / done > SECONDS:
            return


def counted(folder: Path) -> subprocess.Popen:
    """Starts the count of SASS instructions, which needs no GPU."""
    return subprocess.Popen([sys.executable, "-m", "research.time.sass_counts", str(folder / SASS)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("round", type=int, choices=ROUNDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--try-from", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.dry:
        print(f"{len(kernels(given.round))} kernels load")
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.try_from is not None:
        try_all(given.round, given.folder, given.try_from)
        return
    counting = counted(given.folder)
    bad = tried(given.round, given.folder)
    print(f"refused: {bad or 'none'}", flush=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        counting.wait(COUNTING)
    timed(given.round, given.folder, bad)
    counting.wait()


if __name__ == "__main__":
    main()
