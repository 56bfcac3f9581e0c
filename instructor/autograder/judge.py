"""One run of one artifact, in a process that may be killed: is it right, free of errors, and what did it do?

The inputs are made here from a secret seed. The kernel gets copies: what it writes into them changes nothing.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field

import numpy as np

from instructor.autograder.behaviour import Evidence, unmet
from instructor.autograder.plan import Run
from instructor.autograder.ptx_rules import broken_rule
from tirxlab.artifact import Artifact
from tirxlab.rubric import load_rubric


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
        return ""
    return "the kernel must read A (M, K) and B (N, K) and write D (M, N), all float16, and nothing else"


def _launch(run: Run, artifact: Artifact) -> Judged:
    import utils

    A, B = inputs(run)
    C = utils.canaries((run.size[0], run.size[1]), "float16")
    try:
        done, _ = utils.launch(
            artifact, A.copy(), B.copy(), C, device="sim", order=run.order, trace=run.record
        )
    except ValueError as error:
        return Judged(False, "error", f"it cannot be launched: {_one_line(error)}")
    judged = Judged(False, done.verdict, findings=[asdict(finding) for finding in done.findings])
    judged.instructions = int(done.stats.get("warp_instructions", 0))
    judged.reason = _problem(run, done, artifact, A, B)
    judged.right = not judged.reason
    if run.record and judged.right:
        seen = Evidence(done.trace, done.stats, artifact.grid, artifact.cluster, run.size)
        judged.hint = unmet(run.step, seen)
    return judged


def _problem(run: Run, done, artifact: Artifact, A: np.ndarray, B: np.ndarray) -> str:
    """Why the run is not right: its first error, else the first thing that its output lacks."""
    errors = [finding for finding in done.findings if finding.severity == "error"]
    if errors:
        line = errors[0].where.get("line")
        return f"{errors[0].kind}{f' at line {line}' if line else ''}"
    if not done.ran or done.verdict not in ("clean", "review"):
        return f"the run is {done.verdict}: {_one_line(done.findings[0].message) if done.findings else ''}"
    result = done.outputs[artifact.buffers[2].name]
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
