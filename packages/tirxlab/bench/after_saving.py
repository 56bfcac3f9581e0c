"""What a student waits for after saving the file: `./lab check S`, warm, on a file that has changed.

    python packages/tirxlab/bench/after_saving.py [-n TIMES] [S ..] [-- COMMAND ..]

Each run gets a copy of the reference with other line numbers, so that its CUDA text is new and only the
simulator's own code comes from a cache. Prints the minimum and the median of the wall time, and the minimum
of the processor time of all processes together. With COMMAND (`-- --help`) it times `./lab COMMAND` instead.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "instructor" / "solutions" / "gemm_kernels.py"


def timed(arguments: list[str]) -> tuple[float, float]:
    """(wall, processor) seconds of one command."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([ROOT / "lab", *arguments], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


def changed(folder: Path, lines: int) -> str:
    """The reference, moved down by so many empty lines."""
    file = folder / "gemm_kernels.py"
    file.write_text("\n" * lines + REFERENCE.read_text())
    return str(file)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", nargs="*", default=["1"], metavar="S")
    parser.add_argument("-n", type=int, default=5, metavar="TIMES")
    known = sys.argv[1:]
    split = known.index("--") if "--" in known else len(known)
    options, command = parser.parse_args(known[:split]), known[split + 1 :]
    first = time.time_ns() % 2_000  # other lines than in the last call of this script
    with tempfile.TemporaryDirectory() as folder:
        for what in [command] if command else [["check", step] for step in options.steps]:
            runs = []
            for i in range(options.n + 1):
                kernels = [] if command else ["--kernels", changed(Path(folder), first + i)]
                runs.append(timed([*what, *kernels]))
            wall, used = zip(*runs[1:], strict=True)  # the first run may find a cold disk
            middle = statistics.median(wall)
            print(f"{' '.join(what):12} {min(wall):.2f} s ({middle:.2f}), processors {min(used):.2f} s")


if __name__ == "__main__":
    main()
