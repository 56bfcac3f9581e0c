"""Runs one mutant as `./lab check` would, in a worker process that is replaced if it takes too long."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from research.mutation.sources import ROOT, Source

LIMIT = 60.0  # seconds of processor time for one mutant: all sizes, builds included
WALL = 240.0  # seconds of wall time, for machines that others use too
ORDERS = (("program", "adverse"), ("program",))  # at the first size, at the other sizes
BUILDS, RUNS = "builds", "runs"
LATER = ("adverse", 0, 1)  # orders that a mutant must survive at every size to be listed as harmless


@dataclass
class Outcome:
    """The result of a mutant's run."""

    kind: str  # refused, error, wrong numbers, review, clean, equivalent, incomplete, no verdict, crash
    message: str = ""
    size: str = ""
    order: str | int = ""
    findings: list[dict] = field(default_factory=list)
    seconds: float = 0.0  # of processor time


class Worker:
    """One process at a time; `run` sends it a mutant and waits."""

    def __init__(self):
        self.process = None

    def run(self, source: Source, text: str, limit: float = WALL) -> Outcome:
        if self.process is None:
            self._start()
        self.pipe.send((source, text))
        end, stage = time.monotonic() + limit, ""
        while self.pipe.poll(max(0.0, end - time.monotonic())):
            try:
                told = self.pipe.recv()
            except EOFError:
                self.stop()
                return Outcome(
                    "refused" if stage == BUILDS else "no verdict", f"the process ended: it {stage}"
                )
            if isinstance(told, Outcome):
                return told
            stage = told
        self.stop()
        if stage == BUILDS:
            return Outcome("refused", f"not built within {limit:.0f} s of wall time", seconds=limit)
        return Outcome("no verdict", f"no verdict within {limit:.0f} s of wall time", seconds=limit)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other,), daemon=False)
        self.process.start()
        other.close()
        self.pipe.recv()  # ready: imports do not count as a mutant's time

    def stop(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # the simulator's processes with it
            self.process.join()
            self.process = None


# ---- in the worker ----


def serve(pipe) -> None:
    os.setsid()
    sys.path[:0] = [str(ROOT)]
    import tirxlab.toolchain.build  # noqa: F401
    from tirxlab.devices import sim  # noqa: F401

    known: dict[tuple, object] = {}
    pipe.send("ready")
    while True:
        try:
            source, text = pipe.recv()
        except EOFError:
            return
        start = time.process_time()
        outcome = examine(source, text, known, tell=pipe.send)
        outcome.seconds = time.process_time() - start
        if outcome.seconds > LIMIT and outcome.kind not in ("clean", "review", "equivalent"):
            outcome.kind = "no verdict"  # a mutant that passes also ran in further orders, unlike in a check
        pipe.send(outcome)


def examine(source: Source, text: str, known: dict, tell) -> Outcome:
    """Builds at every size and runs; stops at the first failure, as `check` does. `tell` is called at each
    stage: a compiler that ends its process counts as refusing the kernel.
    """
    artifacts, same = [], True
    for number, size in enumerate(source.sizes):
        try:
            tell(BUILDS)
            artifact = _build(source, text, size)
            tell(RUNS)
        except Exception as error:
            if number == 0:
                return Outcome("refused", f"{type(error).__name__}: {error}"[:600])
            return Outcome("error", f"only this size is refused: {error}"[:600], _text(size))
        if (source, size) not in known:
            known[source, size] = _build(source, source.text(), size)
        same &= _fingerprint(artifact) == _fingerprint(known[source, size])
        artifacts.append(artifact)
        outcome = None if same else _run_orders(source, artifact, size, ORDERS[number > 0])
        if outcome is not None:
            return outcome
    if same:
        return Outcome("equivalent", "the same PTX and the same launch")
    outcome = _survivor(source, artifacts)
    if outcome.kind == "clean" and not outcome.size and _same_steps(source, artifacts, known):
        return Outcome("equivalent", "the same steps, with at least as much order (same_steps.py)")
    return outcome


def _same_steps(source: Source, artifacts: list, known: dict) -> bool:
    """Whether every thread takes the same steps at every size, in the same order."""
    from research.mutation.same_steps import at_least

    for artifact, size in zip(artifacts, source.sizes, strict=True):
        (kernel, expected), (mutant, found) = (
            _noted(source, a, size) for a in (known[source, size], artifact)
        )
        if expected != found or not at_least(kernel, mutant):
            return False
    return True


def _noted(source: Source, artifact, size):
    """(steps, bytes of the output) of a run without checks."""
    from research.mutation.steps import Steps
    from tirxlab.devices import sim

    a, b, d = _arrays(source, size)
    run = sim.run(artifact, [a, b, d], checks=False, trace=Steps)
    return run.trace, d.tobytes()


def _survivor(source: Source, artifacts: list) -> Outcome:
    """The outcome of a mutant that passes: whether further orders distinguish it from a correct kernel."""
    review = None
    for artifact, size in zip(artifacts, source.sizes, strict=True):
        for order in LATER:
            outcome = _run(source, artifact, size, order)
            if outcome.kind not in ("clean", "review"):
                return Outcome(
                    "clean", f"found only in order {order}: {outcome.message}"[:600], _text(size), order
                )
            review = outcome if outcome.kind == "review" else review
    return review or Outcome("clean", "survives every order")


def _run_orders(source: Source, artifact, size, orders) -> Outcome | None:
    digests = set()
    for order in orders:
        outcome = _run(source, artifact, size, order)
        if outcome.kind not in ("clean", "review"):
            return outcome
        digests.add(outcome.message)
    return (
        Outcome("wrong numbers", "the result depends on the order", _text(size)) if len(digests) > 1 else None
    )


def _run(source: Source, artifact, size, order) -> Outcome:
    """One launch. The message of a correct result is its digest."""
    from tirxlab.devices import sim

    a, b, d = _arrays(source, size)
    try:
        run = sim.run(artifact, [a, b, d], order=order)
    except Exception as error:
        return Outcome("crash", f"{type(error).__name__}: {error}"[:600], _text(size), order)
    findings = [asdict(f) | {"evidence": _plain(f.evidence)} for f in run.findings]
    wrong = _wrong(source, a, b, d)
    digest = hashlib.sha256(d.tobytes()).hexdigest()
    verdict = run.verdict
    if wrong and verdict in ("clean", "review"):
        return Outcome("wrong numbers", wrong[:1500], _text(size), order, findings)
    if verdict in ("error", "incomplete"):
        return Outcome(verdict, wrong[:300], _text(size), order, findings)
    return Outcome(verdict, digest, _text(size), order, findings)


def _arrays(source: Source, size) -> tuple:
    """A, B and an unwritten output."""
    import numpy as np

    import utils

    M, N, K = size
    kind = "bf16" if source.track else "fp16"
    a, b, d = utils.prepare_data(M, N, K, kind, 0, device="sim")
    if source.name == "hopper":
        b = np.ascontiguousarray(b.T)
    return a, b, utils.canaries((M, N), "float32") if source.track else d


def _wrong(source: Source, a, b, d) -> str:
    """The message of the comparison with the reference; "" if D is right."""
    import numpy as np

    import utils

    if not source.track:
        try:
            utils.verify(d, a, b)
        except AssertionError as error:
            return str(error)
        return ""
    second = b if source.name == "hopper" else b.T
    expected = a.astype(np.float32) @ second.astype(np.float32)
    bad = ~np.isclose(d, expected, rtol=1e-2, atol=1e-2)
    return f"{bad.sum()} of {bad.size} elements are wrong" if bad.any() else ""


def _build(source: Source, text: str, size):
    from tirxlab.steps import load_kernels
    from tirxlab.toolchain.build import build

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / source.file
        path.write_text(text)
        made = getattr(load_kernels(path), source.builder)(*size)
        return made.artifact if source.track else build(made, use_cache=False)


def _fingerprint(artifact) -> str:
    """Everything that decides what runs: the PTX without its source marks, and the launch."""
    ptx = re.sub(r"// @src \d+", "", artifact.ptx)
    launch = [artifact.grid, artifact.block, artifact.cluster, artifact.shared_bytes]
    parts = [ptx, *map(str, launch), *map(str, artifact.params)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _plain(value):
    return json.loads(json.dumps(value, default=str))


def _text(size) -> str:
    return "x".join(map(str, size))
