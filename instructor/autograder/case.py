"""A closer look at a run that is right: more launches of it, and of single clusters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import utils
from instructor.autograder.flow import Flow, Halved, OnlyHalved, weights
from instructor.autograder.plan import Run
from instructor.autograder.purpose import Chosen, Halvings, Outcome, nothing, weight_of
from tirxlab.artifact import Artifact
from tirxlab.devices import sim

INSTRUCTIONS = (
    20_000_000  # warp instructions of a launch, divided among its clusters; the reference takes 1 million
)
WORK = ("warp_instructions", "tensor_operations", "tma_bytes", "busiest")  # counts of a run
POLLS = 0.005  # most that two runs may differ by, as a part of the warp instructions, in polls of barriers
SHARED_OUT = 16  # a cluster that is run alone gets 1/SHARED_OUT of INSTRUCTIONS


def simulate(run: Run, artifact: Artifact, A, B, trace, result=None, **part):
    """One launch on copies of A and B: (Run, D). D is `result`, by default an array full of canaries.

    stats["written"] names the inputs that the kernel changed.
    """
    if result is None:
        result = utils.canaries((run.size[0], run.size[1]), "float16")
    budget = max(1, INSTRUCTIONS // (SHARED_OUT if run.alone else clusters_of(artifact)))
    arrays = [A.copy(), B.copy(), result]
    done = sim.run(artifact, arrays, order=run.order, trace=trace, max_instructions=budget, **part)
    pairs = zip(artifact.buffers, arrays, (A, B), strict=False)
    done.stats["written"] = [b.name for b, now, old in pairs if not np.array_equal(_bits(now), _bits(old))]
    return done, result


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint16)


def clusters_of(artifact: Artifact) -> int:
    return math.prod(artifact.grid) // math.prod(artifact.cluster)


def halved_by(halvings: Halvings, run: Run, record: type[Halved]):
    """The observer of a run whose sums are read out halved."""
    return functools.partial(record, halvings=halvings, weights=weights(run.seed))


def written_of(result: np.ndarray) -> np.ndarray:
    """Which numbers of D were written."""
    return _bits(result) != utils.CANARY["float16"]


@dataclass(frozen=True)
class Case:
    """A recorded run that is right, and its further launches."""

    run: Run
    artifact: Artifact
    A: np.ndarray
    B: np.ndarray
    result: np.ndarray  # D
    main: int = 0  # the cluster that is looked at most closely
    ready: dict[tuple[Chosen, ...], Outcome] = field(default_factory=dict)  # by the experiments made
    # Which numbers of D were written; used only where a single cluster has run.
    written: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))

    @property
    def clusters(self) -> int:
        return clusters_of(self.artifact)

    def cluster(self, number: int, trace: Callable | bool = Flow, checks: bool = False):
        """Runs one cluster alone: (Run, D). Raises ValueError if it waits for other clusters."""
        part = {"first": number, "clusters": 1, "checks": checks}
        return simulate(self.run, self.artifact, self.A, self.B, trace, **part)

    def work(self, result: np.ndarray | None = None) -> list[int]:
        """The WORK counts of the whole grid if D holds canaries at the start, or `result`."""
        done, _ = simulate(self.run, self.artifact, self.A, self.B, False, result, checks=False)
        return [done.stats[count] for count in WORK]

    def spares(self, before: list[int]) -> bool:
        """Whether the kernel does other work if D already holds the product. `before`: its counts otherwise.

        `before` may be slightly off: a recorded run may poll a barrier more often than an unrecorded one.
        """
        again = self.work(self.result.copy())
        near = abs(again[0] - before[0]) <= POLLS * before[0] and again[1:] == before[1:]
        return not near and again != self.work()

    @property
    def drawn(self) -> int:
        """The cluster that the seed chooses."""
        return self.run.seed % self.clusters

    def experiment(
        self, number: int, chosen: tuple[Chosen, ...], record: type[Halved] = OnlyHalved, checks=False
    ):
        """Runs one cluster alone, its sums halved as the experiments ask: Run. The outcome is in `ready`
        then, unless the cluster has nothing to do.
        """
        halvings = Halvings(chosen)
        done, after = self.cluster(number, halved_by(halvings, self.run, record), checks)
        self.enter(halvings, done, after, written_of(after))
        return done

    def enter(self, halvings: Halvings, done, after: np.ndarray, written: np.ndarray) -> None:
        """Enters the outcome of experiments. `after`: D of that Run, perhaps with nothing `written`."""
        if written.any():
            whole = weight_of(self.A, self.B, written, weights(self.run.seed))
            weight = done.trace.weight / max(whole, 1e-9)
            self.ready[halvings.chosen] = halvings.outcome(self.result, after, written, weight)

    def tried(self, chosen: tuple[Chosen, ...]) -> Outcome:
        """The outcome of these experiments in the drawn cluster or, if that has nothing to do, in the main
        one; `nothing` if that writes nothing either when it runs alone.
        """
        for number in (self.drawn, self.main):
            if chosen not in self.ready:
                self.experiment(number, chosen)
        return self.ready.get(chosen) or nothing(len(chosen))

    def busiest(self, most: int) -> int:
        """A cluster other than 0 with at least `most` tensor operations; 0 if there is none."""
        last = self.clusters - 1
        for number in sorted(range(1, self.clusters), key=lambda n: (n != last, n)):
            done, _ = self.cluster(number, trace=False)
            if done.stats["tensor_operations"] >= most:
                return number
        return 0
