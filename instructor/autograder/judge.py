"""Judges one run of one artifact, in a killable process: is it right and free of errors, and what did it do?

The inputs are made here from a secret seed. The kernel gets copies of them, which it must not change.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, replace

import numpy as np

from instructor.autograder.behaviour import (
    BEFORE,
    DEMANDS,
    Demands,
    Evidence,
    persistent,
    unmet,
)
from instructor.autograder.case import WORK, Case, clusters_of, halved_by, simulate, written_of
from instructor.autograder.flow import Flow, Halved
from instructor.autograder.judged import Judged
from instructor.autograder.plan import Run
from instructor.autograder.ptx_rules import broken_rule, changing
from instructor.autograder.purpose import Chosen, Halvings, experiments, useless
from instructor.autograder.reads import cannot_read
from tirxlab.artifact import Artifact
from tirxlab.rubric import load_rubric

WHOLE_GRID = "tensor_operations", "tma_bytes"  # counts that demands read as those of the whole grid
MOST_FINDINGS, LONGEST = 100, 10_000  # findings kept of a run; characters of one
TALKS = "its clusters wait for each other through global memory: no step asks for that"
IDLE = "a few CTAs do most of the work: let all of them take tiles of D"
MOST_CTAS = 1024  # of a grid, however small D is
BLOCK = 64  # side of the blocks of D in which two rows are compared if one cluster ran alone
TRIED = 4  # clusters, at most, that are run alone, one by one, until one writes its share of D


def judge(run: Run, artifact: Artifact) -> Judged:
    """Judges a run; never raises for anything the kernel does."""
    start = time.perf_counter()
    rule = broken_rule(artifact.ptx) or changing(artifact.cuda) or _wrong_signature(run, artifact)
    judged = Judged(False, "not run", rule) if rule else _launch(run, artifact)
    judged.seconds = time.perf_counter() - start
    return judged


def inputs(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """A (M, K) and B (N, K), float16."""
    M, N, K = run.size
    rng = np.random.default_rng(run.seed)
    if run.data == "integers":
        return _whole_numbers(rng, M, N, K)
    if run.data == "windows":
        return _windows(rng, M, K), _windows(rng, N, K)
    A, B = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((M, K), (N, K)))
    return A, B


def _windows(rng, rows: int, K: int) -> np.ndarray:
    """Rows that are windows of one pool of random numbers, each at its own offset; cheap however many."""
    pool = rng.standard_normal(1 << 20, np.float32).astype(np.float16)
    return np.lib.stride_tricks.sliding_window_view(pool, K)[rng.integers(0, len(pool) - K, rows)]


def _whole_numbers(rng, M: int, N: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers whose product is exact in float16, although partial sums are too large for float16.

    Half of the columns nearly cancel the others, in an order that nobody can know.
    """
    A, B = (rng.integers(-47, 48, shape).astype(np.float16) for shape in ((M, K), (N, K)))
    one, other = np.split(rng.permutation(K)[: K // 2 * 2], 2)
    A[:, other] = A[:, one]
    B[:, other] = rng.integers(-1, 2, (N, K // 2)).astype(np.float16) - B[:, one]
    return A, B


def _wrong_signature(run: Run, artifact: Artifact) -> str:
    M, N, K = run.size
    wanted = [((M, K), "float16", "in"), ((N, K), "float16", "in"), ((M, N), "float16", "out")]
    given = [(b.shape, b.dtype, b.role) for b in artifact.buffers]
    if given == wanted:
        ctas = math.prod(artifact.grid)
        return f"{ctas} CTAs are too many for {M}x{N} numbers" if ctas > max(MOST_CTAS, M * N // 256) else ""
    return "the kernel must read A (M, K) and B (N, K) and write D (M, N), all float16, and nothing else"


def _launch(run: Run, artifact: Artifact) -> Judged:
    A, B = inputs(run)
    try:
        if run.alone:
            done, case, reason = _one_cluster(run, artifact, A, B)
        else:
            trace = Flow if run.record else False
            done, result = simulate(run, artifact, A, B, trace, checks=not run.drawn)
            case = Case(run, artifact, A, B, result)
            reason = _problem(case, done)
    except ValueError as error:
        if run.alone and "wait for each other" in str(error):
            return Judged(True, "not run", hint=TALKS, behind=TALKS)
        return Judged(False, "error", f"it cannot be launched: {_one_line(error)}")
    judged = Judged(not reason, done.verdict, reason, findings=kept(done.findings))
    judged.instructions = int(done.stats.get("warp_instructions", 0))
    judged.over = any("budget" in (finding.evidence or {}) for finding in done.findings)
    if (run.record or run.alone) and judged.right:
        look = _judge_part if run.alone else _judge_implementation
        look(judged, case, _seen(run, artifact, done))
    return judged


def _seen(run: Run, artifact: Artifact, done) -> Evidence:
    seen = Evidence(done.trace, done.stats, artifact.grid, artifact.cluster, run.size, alone=run.alone)
    seen.sms = run.sms or load_rubric().few_sms.get((run.step, run.size), seen.sms)
    return seen


def _one_cluster(run: Run, artifact: Artifact, A, B) -> tuple:
    """Runs one cluster alone: (Run, the case, why it is not right). It is the one that the seed chooses or,
    if that does not write its share of D, one far from it that does.

    Tiles may be dealt out so that the last clusters have none. The cluster's sums are halved; if D comes out
    as half of the product, that run is enough. If not, the cluster runs once more, unchanged.
    """
    chosen = tuple(one.chosen for one in experiments(DEMANDS[run.step]))
    halvings = Halvings(chosen)
    clusters = clusters_of(artifact)
    tries = min(TRIED, clusters)
    for n in range(tries):
        first = (run.seed + n * (clusters // tries)) % clusters
        part = {"checks": True, "first": first, "clusters": 1}
        done, after = simulate(run, artifact, A, B, halved_by(halvings, run, Halved), **part)
        written = written_of(after)
        if done.findings or written.mean() >= _seen(run, artifact, done).least:
            break
    case = Case(run, artifact, A, B, halvings.undone(after, written), first, written=written)
    reason = _problem(case, done)
    if reason and not _first_error(done.findings):
        done, after = simulate(run, artifact, A, B, Flow, **part)
        case = replace(case, result=after, written=written_of(after))
        return done, case, _problem(case, done)
    if done.trace:
        case.enter(halvings, done, after, written)
    return done, case, reason


def kept(findings: list) -> list[dict]:
    """The findings that leave the run's process: the first of each kind and some more, none of them long.

    A name in PTX may have a million letters, and a million findings may contain it.
    """
    firsts = {finding.kind: finding for finding in reversed(findings)}
    some = [f for n, f in enumerate(findings) if n < MOST_FINDINGS or firsts[f.kind] is f]
    made = [asdict(finding) for finding in some]
    for one in made:
        if len(repr(one)) > LONGEST:
            one |= {"message": one["message"][:LONGEST], "where": {}, "evidence": {}}
    return made


def _judge_implementation(judged: Judged, case: Case, seen: Evidence) -> None:
    """Enters what the kernel lacks, or that it is wrong after all: it skips work if D is already there."""
    step, looked_at = case.run.step, {}
    try:
        one_tile = max(seen.tiles, default=0) == 1 and seen.ctas == seen.sms
        if not seen.tiles or (one_tile and persistent in DEMANDS[step]):
            case, seen = _with_more_tiles(case, seen)
        looked_at[case.main] = seen
        others = sorted({case.drawn, case.clusters - 1} - {case.main})
        planned = tuple(one.chosen for one in experiments(DEMANDS[step], seen))
        made = [_beside(case, number, planned) for number in others]
        for number, done in zip(others, made, strict=True):
            looked_at[number] = replace(seen, timeline=done.trace, first=False)
        if case.run.drawn and not others:
            made.append(case.cluster(case.main, trace=False, checks=True)[0])
        # The whole run had no checks, and the code could know that when it was built: by its process id.
        if error := _first_error([finding for done in made for finding in done.findings]):
            judged.right, judged.reason = False, error
            return
        for most in ("held", "served"):
            seen.stats[most] = max(getattr(one, most) for one in looked_at.values())
        judged.hint = lacking(DEMANDS[step], case, looked_at)
        if judged.hint:
            judged.behind = lacking(BEFORE[step], case, looked_at)
    except ValueError:
        judged.hint = judged.behind = TALKS
    output = case.artifact.buffers[-1].name
    if not cannot_read(case.artifact, output) and case.spares([seen.stats[count] for count in WORK]):
        judged.right, judged.reason = False, "it does other work when D holds the product already"


def _beside(case: Case, number: int, planned: tuple[Chosen, ...]):
    """Runs a cluster other than the main one, alone: Run. In the drawn one the experiments run as well."""
    if number == case.drawn:
        return case.experiment(number, planned, Halved, case.run.drawn)
    return case.cluster(number, checks=case.run.drawn)[0]


def _judge_part(judged: Judged, case: Case, seen: Evidence) -> None:
    """Enters what the kernel lacks in one cluster with many tiles; its counts are scaled up to the grid."""
    share = float(case.written.mean())
    if not share or share < seen.least:
        judged.hint = judged.behind = IDLE
        return
    seen.stats = {**seen.stats, **{count: seen.stats[count] / share for count in WHOLE_GRID}}
    judged.hint = lacking(DEMANDS[case.run.step], case, {case.main: seen})
    if judged.hint:
        judged.behind = lacking(BEFORE[case.run.step], case, {case.main: seen})


def _with_more_tiles(case: Case, seen: Evidence) -> tuple[Case, Evidence]:
    """The same with a cluster that has more tiles, if there is one: tiles may go to clusters in any order,
    and if they are large, some clusters have none.
    """
    issued = sum(map(len, seen.issued("tcgen05.mma").values()))
    number = case.busiest(seen.stats["busiest"]) if seen.stats["busiest"] > issued else 0
    if not number:
        return case, seen
    done, _ = case.cluster(number)
    return replace(case, main=number), replace(seen, timeline=done.trace)


def lacking(demands: Demands, case: Case, looked_at: dict[int, Evidence]) -> str:
    """The first demand that a cluster does not meet, as a hint; "" if all clusters meet all demands."""
    first = looked_at[case.main]
    hint = unmet(demands, first)
    if not hint and demands:
        hint = useless(demands, first, case.tried)
    if hint:
        return hint
    others = (unmet(demands, one) for one in looked_at.values() if not one.first)
    hint = next(filter(None, others), "")
    return hint and f"not all clusters work alike: in some, {hint}"


def _problem(case: Case, done) -> str:
    """Why the run is not right: its first error, else the first thing wrong with its output."""
    if error := _first_error(done.findings):
        return error
    if not done.ran or done.verdict not in ("clean", "review", "not checked"):
        return f"the run is {done.verdict}: {_one_line(done.findings[0].message) if done.findings else ''}"
    if done.stats.get("changed"):
        return f"the kernel keeps global memory of its own ({done.stats['changed'][0]:.60})"
    if done.stats["written"]:
        return (
            f"the kernel changes its input {done.stats['written'][0]:.60}, which the next launch would find"
        )
    wrong = _wrong_where_written(case) if case.run.alone else _wrong(case)
    return f"{100 * wrong:.3g} % of the numbers are wrong" if wrong else ""


def _first_error(findings: list) -> str:
    errors = [finding for finding in findings if finding.severity == "error"]
    line = errors[0].where.get("line") if errors else None
    return f"{errors[0].kind}{f' at line {line}' if line else ''}" if errors else ""


def _wrong(case: Case) -> float:
    """The fraction of elements that are wrong. Whole numbers must match in every bit (but -0 is 0)."""
    exact = case.A.astype(np.float32) @ case.B.astype(np.float32).T
    expected, actual = exact.astype(np.float16), case.result
    at = np.flatnonzero((actual.view(np.uint16) != expected.view(np.uint16)) | ~np.isfinite(expected))
    ours, theirs = (side.ravel()[at].astype(np.float32) for side in (expected, actual))
    wrong = theirs != ours if case.run.data == "integers" else _far(theirs, ours)
    return int(wrong.sum()) / exact.size


def _far(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    rubric = load_rubric()
    with np.errstate(invalid="ignore"):
        return ~(np.abs(actual - expected) <= rubric.atol + rubric.rtol * np.abs(expected))


def _wrong_where_written(case: Case) -> float:
    """The wrong fraction of what one cluster has written, in two secret rows of each block."""
    A, B, written = case.A, case.B, case.written
    strips = np.logical_or.reduce(written.reshape(len(A) // BLOCK, BLOCK, len(B)), axis=1)
    blocks = np.logical_or.reduce(strips.reshape(len(strips), len(B) // BLOCK, BLOCK), axis=2)
    wrong = compared = 0
    for i in np.flatnonzero(blocks.any(axis=1)).tolist():
        rows = slice(i * BLOCK + case.run.seed % (BLOCK // 2), (i + 1) * BLOCK, BLOCK // 2)
        columns = np.flatnonzero(np.repeat(blocks[i], BLOCK))
        exact = A[rows].astype(np.float32) @ B[columns].astype(np.float32).T
        expected = exact.astype(np.float16).astype(np.float32)
        here = written[rows, columns]
        wrong += int((_far(case.result[rows, columns].astype(np.float32), expected) & here).sum())
        compared += int(here.sum())
    return wrong / max(1, compared)


def _one_line(what) -> str:
    return " ".join(str(what).split())[:300]
