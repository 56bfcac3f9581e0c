"""One run of one artifact, in a process that may be killed: is it right, free of errors, and what did it do?

The inputs are made here from a secret seed. The kernel gets copies: what it writes into them changes nothing.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field, replace

import numpy as np

import utils
from instructor.autograder.behaviour import Evidence, unmet
from instructor.autograder.plan import Run
from instructor.autograder.ptx_rules import broken_rule
from tirxlab.artifact import Artifact
from tirxlab.devices import sim
from tirxlab.rubric import load_rubric

INSTRUCTIONS = (
    20_000_000  # warp instructions of a launch, shared out to its clusters; the reference: 1 million
)
MOST_CTAS = 1024  # of a grid, where D is small


@dataclass
class Judged:
    """What came of one run. `reason` and `hint` are safe to show to the student."""

    right: bool
    verdict: str  # of the simulator
    reason: str = ""  # why it is not right
    hint: str = ""  # what the implementation lacks; only of a recorded run
    findings: list[dict] = field(default_factory=list)  # of any severity
    seconds: float = 0.0
    instructions: int = 0  # warp instructions simulated


def judge(run: Run, artifact: Artifact) -> Judged:
    """Never raises for what the kernel does."""
    start = time.perf_counter()
    rule = broken_rule(artifact.ptx) or _wrong_signature(run, artifact)
    judged = Judged(False, "not run", rule) if rule else _launch(run, artifact)
    judged.seconds = time.perf_counter() - start
    return judged


def inputs(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """A (M, K) and B (N, K), float16."""
    M, N, K = run.size
    rng = np.random.default_rng(run.seed)
    if run.data == "integers":
        return tuple(rng.integers(-2, 3, shape).astype(np.float16) for shape in ((M, K), (N, K)))
    return tuple(rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((M, K), (N, K)))


def _wrong_signature(run: Run, artifact: Artifact) -> str:
    M, N, K = run.size
    wanted = [((M, K), "float16", "in"), ((N, K), "float16", "in"), ((M, N), "float16", "out")]
    given = [(b.shape, b.dtype, b.role) for b in artifact.buffers]
    if given == wanted:
        ctas = math.prod(artifact.grid)
        return f"a grid of {ctas} CTAs for {M}x{N} numbers" if ctas > max(MOST_CTAS, M * N // 256) else ""
    return "the kernel must read A (M, K) and B (N, K) and write D (M, N), all float16, and nothing else"


def _launch(run: Run, artifact: Artifact) -> Judged:
    A, B = inputs(run)
    try:
        done, result = _simulate(run, artifact, A, B, run.record)
    except ValueError as error:
        return Judged(False, "error", f"it cannot be launched: {_one_line(error)}")
    judged = Judged(False, done.verdict, findings=[asdict(finding) for finding in done.findings])
    judged.instructions = int(done.stats.get("warp_instructions", 0))
    judged.reason = _problem(run, done, result, A, B)
    judged.right = not judged.reason
    if run.record and judged.right:
        seen = Evidence(done.trace, done.stats, artifact.grid, artifact.cluster, run.size)
        judged.reason = _spares_work(run, artifact, seen, A, B, result)
        judged.right = not judged.reason
        judged.hint = unmet(run.step, seen) or _unmet_elsewhere(run, artifact, seen, A, B)
    return judged


def _simulate(run: Run, artifact: Artifact, A, B, trace: bool, result=None, **part):
    """One launch on copies: (Run, D). D is held here alone; it was full of canaries, or is `result`."""
    if result is None:
        result = utils.canaries((run.size[0], run.size[1]), "float16")
    budget = max(1, INSTRUCTIONS // _clusters(artifact))
    arrays = [A.copy(), B.copy(), result]
    return sim.run(artifact, arrays, order=run.order, trace=trace, max_instructions=budget, **part), result


def _spares_work(run: Run, artifact: Artifact, seen: Evidence, A, B, result: np.ndarray) -> str:
    """Why it is not right, if the first cluster does less once D holds the product, as in a timed loop."""
    again, _ = _simulate(run, artifact, A, B, True, result.copy(), clusters=1)
    multiplied = [_multiplied(one) for one in (seen, replace(seen, timeline=again.trace))]
    return "it works less when D holds the product already" if multiplied[0] != multiplied[1] else ""


def _multiplied(seen: Evidence) -> int:
    return sum(map(len, seen.issued("tcgen05.mma").values()))


def _clusters(artifact: Artifact) -> int:
    return math.prod(artifact.grid) // math.prod(artifact.cluster)


def _unmet_elsewhere(run: Run, artifact: Artifact, seen: Evidence, A: np.ndarray, B: np.ndarray) -> str:
    """The same of the last cluster and of one that nobody can foresee: each is run alone."""
    count = _clusters(artifact)
    for number in sorted({run.seed % count, count - 1} - {0}):
        try:
            done, _ = _simulate(run, artifact, A, B, True, first=number, clusters=1)
        except ValueError:
            return "its clusters wait for each other through global memory: no step asks for that"
        hint = unmet(run.step, replace(seen, timeline=done.trace, first=False))
        if hint:
            return f"not all clusters work alike: in some, {hint}"
    return ""


def _problem(run: Run, done, result: np.ndarray, A: np.ndarray, B: np.ndarray) -> str:
    """Why the run is not right: its first error, else the first thing that its output lacks."""
    errors = [finding for finding in done.findings if finding.severity == "error"]
    if errors:
        line = errors[0].where.get("line")
        return f"{errors[0].kind}{f' at line {line}' if line else ''}"
    if not done.ran or done.verdict not in ("clean", "review"):
        return f"the run is {done.verdict}: {_one_line(done.findings[0].message) if done.findings else ''}"
    wrong = _wrong(run, result, A, B)
    return f"{100 * wrong:.3g} % of the numbers are wrong" if wrong else ""


def _wrong(run: Run, result: np.ndarray, A: np.ndarray, B: np.ndarray) -> float:
    """The part of the elements that are wrong. Of whole numbers every bit counts (but -0 is 0)."""
    exact = A.astype(np.float32) @ B.astype(np.float32).T
    expected, actual = exact.astype(np.float16).astype(np.float32), result.astype(np.float32)
    if run.data == "integers":
        return float((actual != expected).mean())
    rubric = load_rubric()
    with np.errstate(invalid="ignore"):
        near = np.abs(actual - expected) <= rubric.atol + rubric.rtol * np.abs(expected)
    return float((~near).mean())


def _one_line(what) -> str:
    return " ".join(str(what).split())[:300]
