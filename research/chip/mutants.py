"""Mutants of PTX: what a GPU does with each, and what ptxsim reports.

    python -m research.chip.mutants make FILE [--of SOURCE] [--seed S] [--count N]
                                     draws from "ladders", Ampere's and Hopper's (needs TVM: builds them), or
                                     from "foreign", kernels of other compilers (research/foreign)
    python -m research.chip.mutants judge FILE JUDGED [--jobs J]        on ptxsim, in both orders
    python -m research.chip.mutants run JUDGED RESULTS [--jobs J]       on a GPU: each watched, ten launches
    python -m research.chip.mutants witness JUDGED [--jobs J]           each `error`: an order with another D

RESULTS counts the outcomes of both, by operator, and lists what ptxsim let pass.

The operators are those of the mutation bench (research/mutation/ptx_operators.py). A mutant that hangs on a
chip, or computes other bits there, must be found; one that a chip forgives ten times may still be wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (teaches numpy "bfloat16")
import numpy as np

from research import store
from research.chip.launches import LIMIT, launched, solution
from research.mutation.ptx_operators import mutants
from tirxlab.artifact import Artifact
from tirxlab.devices import DeviceError

ORDERS = ("program", "adverse")
WITNESSES = ("adverse", "program", *range(1, 45))  # orders that may show another D, without checks
MOST = 20  # limit of warp instructions, as a multiple of the original kernel's
VERSION = "8.6"  # of the PTX ISA: the least with all that these kernels use
LONG, SEVERAL = (136, 264, 520), ((264, 520, 328), {"sms": 2})  # more K tiles than stages; tiles of a CTA


@dataclass(frozen=True)
class Subject:
    """An unchanged kernel with what its arrays hold at the start."""

    name: str
    artifact: Artifact
    start: tuple[np.ndarray, ...]

    def arrays(self) -> list[np.ndarray]:
        return [array.copy() for array in self.start]

    def with_line(self, line: int, new: str) -> Artifact:
        """The kernel with one line of PTX changed."""
        lines = self.artifact.ptx.split("\n")
        lines[line - 1] = new
        return replace(self.artifact, ptx="\n".join(lines), cubin=b"")


def left(arrays: list[np.ndarray]) -> bytes:
    """All that a launch left."""
    return b"".join(array.tobytes() for array in arrays)


def of_ladders() -> Iterator[Subject]:
    """Every rung. D is prefilled with NaN."""
    from tirxlab.steps import load_kernels
    from tracks.ampere.reference import TRACK as AMPERE
    from tracks.common import inputs
    from tracks.hopper.reference import TRACK as HOPPER

    for track in (AMPERE, HOPPER):
        kernels = load_kernels(solution(track.name))
        for rung in track.rungs:
            persistent = any("sms" in keywords for _, keywords in rung.cases)
            first = (128, 192, 528) if rung.number == 1 else LONG
            size, keywords = SEVERAL if persistent else (first, {})
            artifact = getattr(kernels, rung.builder)(*size, **keywords).artifact
            a, b = inputs(track, size, rung, artifact.buffers[0].dtype)
            out = artifact.outputs[0]
            yield Subject(
                f"{track.name}-{rung.number}", artifact, (a, b, np.full(out.shape, np.nan, out.dtype))
            )


def of_foreign() -> Iterator[Subject]:
    """The kernels that an H200 can run, but for those with parameters that only CuTe knows."""
    from research.foreign.cases import load_cases

    for case in load_cases():
        if not case.name.endswith(("sm80", "sm90", "sm90a")) or any(
            "bytes" in a for a in case.launch["args"]
        ):
            continue
        yield Subject(case.name, *case.as_artifact())


SOURCES = {"ladders": of_ladders, "foreign": of_foreign}


# ---- on ptxsim ----


def simulate(subject: Subject, artifact: Artifact, most: int | None) -> dict:
    """{"verdict", "first", "bits", "instructions"} of both orders; bits: what each left."""
    from tirxlab.devices import sim

    worst, first, bits, executed = "clean", "", [], 0
    for order in ORDERS:
        data = subject.arrays()
        run = sim.run(artifact, data, order=order, max_instructions=most)
        executed = max(executed, run.stats.get("warp_instructions", 0))
        if run.verdict != "clean" and worst not in ("error", "incomplete"):
            worst, first = run.verdict, str(run.findings[0]).split("\n")[0][:300]
        bits.append(left(data))
        if worst == "error":
            break
    return {"verdict": worst, "first": first, "bits": bits, "instructions": executed}


def make(file: Path, source: str, seed: int, count: int) -> None:
    files, drawn = {}, []
    every = list(SOURCES[source]())
    for one in every:
        files[f"{one.name}.lab"] = one.artifact.to_bytes()
        for n, array in enumerate(one.start):
            files[f"{one.name}.{n}.npy"] = array.tobytes()
        drawn += [(one.name, mutant) for mutant in mutants(one.artifact.ptx)]
    chosen = random.Random(seed).sample(drawn, min(count, len(drawn)))
    rows = [
        {
            "kernel": name,
            "operator": m.operator,
            "line": m.line,
            "old": m.old,
            "new": m.text.split("\n")[m.line - 1],
        }
        for name, m in chosen
    ]
    store.save(file, files | {"index.json": json.dumps(rows, indent=1).encode()})
    print(f"{len(rows)} of {len(drawn)} mutants of {len(every)} kernels")


def judge(file: Path, judged: Path, jobs: int) -> None:
    files = store.load(file)
    rows = shared_out(simulated, files, json.loads(files["index.json"]), jobs)
    store.save(judged, files | {"index.json": json.dumps(rows, indent=1).encode()})


def simulated(files: dict, rows: list[dict]) -> list[dict]:
    for row, subject, alone in with_subjects(files, rows, lambda one: simulate(one, one.artifact, None)):
        said = simulate(subject, subject.with_line(row["line"], row["new"]), MOST * alone["instructions"])
        same = all(bits == alone["bits"][0] for bits in said.pop("bits"))
        row |= said | {"same": same}
        print(json.dumps(row), flush=True)
    return rows


def witness(file: Path, jobs: int) -> None:
    """Prints each `error` that is not a deadlock, with the first order that leaves another D, or none."""
    files = store.load(file)
    rows = [
        r for r in json.loads(files["index.json"]) if r["verdict"] == "error" and "deadlock" not in r["first"]
    ]
    rows = shared_out(witnessed, files, rows, jobs)
    shown = sum(row["witness"] is not None for row in rows)
    print(f"{len(rows)} errors: another D is shown for {shown}, not for {len(rows) - shown}")


def witnessed(files: dict, rows: list[dict]) -> list[dict]:
    from tirxlab.devices import sim

    for row, subject, alone in with_subjects(files, rows, lambda one: simulate(one, one.artifact, None)):
        row["witness"] = None
        mutant = subject.with_line(row["line"], row["new"])
        for order in WITNESSES:
            data = subject.arrays()
            run = sim.run(mutant, data, checks=False, order=order, max_instructions=10**6)
            if not run.ran or left(data) != alone["bits"][0]:
                row["witness"] = str(order)
                break
        print(row["kernel"], row["line"], row["operator"], row["witness"], row["first"][:120], flush=True)
    return rows


# ---- on the chip ----


def for_driver(artifact: Artifact) -> Artifact:
    """The same for a driver, which compiles it and may be older than the compiler that wrote it."""
    text = re.sub(r"^\.version .*$", f".version {VERSION}", artifact.ptx, count=1, flags=re.MULTILINE)
    return replace(artifact, cubin=text.encode() + b"\0")


def on_the_chip(subject: Subject, artifact: Artifact, expected: bytes) -> dict[str, int]:
    """The outcomes of ten launches: "same", "other bits", or the finding of a launch that failed."""
    try:
        return launched(artifact, subject.arrays, lambda d: "same" if left(d) == expected else "other bits")
    except DeviceError as error:
        return {f"not run: {error}"[:200]: 1}


def run(file: Path, results: Path, jobs: int) -> None:
    from research.chip.run import gpu

    os.environ.setdefault("LAB_TIMEOUT", LIMIT)
    files = store.load(file)
    rows = shared_out(asked, files, json.loads(files["index.json"]), jobs)
    found = gpu() | summary(rows)
    results.write_text(json.dumps(found, indent=1) + "\n")
    for line in found["table"]:
        print("{:24} chip: {:12} ptxsim: {:14} {}".format(*line))
    print(json.dumps(found["let pass"], indent=1))


def asked(files: dict, rows: list[dict]) -> list[dict]:
    from tirxlab.devices import cuda

    def alone(subject: Subject) -> bytes:
        data = subject.arrays()
        cuda.run(for_driver(subject.artifact), data)
        return left(data)

    for row, subject, expected in with_subjects(files, rows, alone):
        row["chip"] = on_the_chip(subject, for_driver(subject.with_line(row["line"], row["new"])), expected)
        print(row["kernel"], row["line"], row["operator"], row["chip"], row["verdict"], flush=True)
    return rows


def loaded(files: dict, name: str) -> Subject:
    artifact = Artifact.from_bytes(files[f"{name}.lab"])
    start = (
        np.frombuffer(files[f"{name}.{n}.npy"], buffer.dtype).reshape(buffer.shape)
        for n, buffer in enumerate(artifact.buffers)
    )
    return Subject(name, artifact, tuple(start))


# ---- both ----


def with_subjects(files: dict, rows: list[dict], alone: Callable) -> Iterator[tuple[dict, Subject, Any]]:
    """Each row with the kernel that it changes, and with alone(kernel), called once for each kernel."""
    own: dict[str, tuple[Subject, Any]] = {}
    for row in rows:
        name = row["kernel"]
        if name not in own:
            subject = loaded(files, name)
            own[name] = subject, alone(subject)
        yield row, *own[name]


def shared_out(work, files: dict, rows: list[dict], jobs: int) -> list[dict]:
    """work(files, share) for every share of the rows, each in its own process:
    each launches one at a time.
    """
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        shares = [pool.submit(work, files, rows[i::jobs]) for i in range(jobs)]
    return [row for share in shares for row in share.result()]


def chip_says(row: dict) -> str:
    """ "same", "other bits", "fails" (a hang or a fault), or "not run"."""
    seen = row["chip"]
    if any(what.startswith("not run") for what in seen):
        return "not run"
    return "fails" if set(seen) - {"same", "other bits"} else "other bits" if "other bits" in seen else "same"


def ours(row: dict) -> str:
    """ptxsim's result: its verdict, or "wrong numbers" if the only sign is another D."""
    return "wrong numbers" if row["verdict"] in ("clean", "review") and not row["same"] else row["verdict"]


def summary(rows: list[dict]) -> dict:
    """{"mutants": count, "table": [operator, chip, ptxsim, count] for each, "let pass": rows}."""
    table = Counter((row["operator"], chip_says(row), ours(row)) for row in rows)
    passed = [r for r in rows if chip_says(r) in ("other bits", "fails") and ours(r) in ("clean", "review")]
    return {
        "mutants": len(rows),
        "table": [[*key, count] for key, count in sorted(table.items())],
        "let pass": passed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("make", "judge", "run", "witness"))
    parser.add_argument("file", type=Path)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--of", choices=SOURCES, default="ladders", dest="source")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=4)
    given = parser.parse_args()
    for path in filter(None, (given.file, given.results if given.command == "judge" else None)):
        if wrong := store.wrong_name(path):
            parser.error(wrong)
    commands = {
        "make": lambda: make(given.file, given.source, given.seed, given.count),
        "judge": lambda: judge(given.file, given.results, given.jobs),
        "witness": lambda: witness(given.file, given.jobs),
        "run": lambda: run(given.file, given.results, given.jobs),
    }
    commands[given.command]()


if __name__ == "__main__":
    sys.exit(main())
