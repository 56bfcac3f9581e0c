"""The points of a submission: the implementation counts if the result is right, speed if both are.

A right result counts in full if the kernel also does what the step before demands, else in part: a copied
step is no new work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tirxlab.rubric import load_rubric

NOT_MEASURED = "not measured"
NOT_GRADED = "not graded"  # a step's state, and the start of a problem, that is not the submission's fault

# One text for every limit: which limit is met first depends on the machine's load, and a grade must not.
OVER = "exceeded a limit (time, memory, disk or instructions) and was stopped"


def stands(problem: str) -> bool:
    """Whether the points of a grade with this problem are final; an unfinished submission is graded again."""
    return not problem.startswith(NOT_GRADED)


@dataclass
class StepGrade:
    """The grade of one step. `earned`: points for what was measured; `possible`: the most of these."""

    step: int
    title: str
    points: float  # that the step is worth, speed included
    state: str  # "right", "wrong", "not built", "not implemented yet", "missing", NOT_GRADED
    right: bool = False
    implemented: bool = False
    complete: bool = True  # it also does what the step before demands
    speed: str = NOT_MEASURED  # or "passed", "too slow", "not reached" (there was a GPU, but no right kernel)
    hints: list[str] = field(default_factory=list)  # one for each lost part
    findings: list[str] = field(default_factory=list)  # kinds of what the simulator found, errors and reviews
    runs: list[dict] = field(default_factory=list)  # for the course: the runs and their outcomes
    ms: dict[str, float] = field(default_factory=dict)  # size -> milliseconds measured on a GPU
    correctness_points: float = 0.0
    implementation_points: float = 0.0
    speed_points: float = 0.0

    @property
    def earned(self) -> float:
        return round(self.correctness_points + self.implementation_points + self.speed_points, 2)

    @property
    def possible(self) -> float:
        shares = load_rubric().shares
        measured = shares.correctness + shares.implementation + shares.speed * (self.speed != NOT_MEASURED)
        return round(self.points * measured, 2)

    def timed(self, hint: str, ms: dict[str, float] | None = None) -> None:
        """Enters what a GPU measured; `hint`: "" if the step is fast enough, else what is wrong."""
        self.ms = ms or {}
        self.speed = "too slow" if hint else "passed"
        self.hints += [hint] if hint else []

    def settle(self) -> None:
        """Sets the points from the rest."""
        shares = load_rubric().shares
        good = self.right and self.implemented
        self.correctness_points = round(self.points * shares.result(self.complete) * self.right, 2)
        self.implementation_points = round(self.points * shares.implementation * good, 2)
        self.speed_points = round(self.points * shares.speed * (good and self.speed == "passed"), 2)


@dataclass
class Grade:
    """The grade of one submission."""

    name: str  # of the file, or of the student
    digest: str  # SHA-256 of the kernels file
    lab: str  # version
    device: str
    steps: list[StepGrade]
    student: str = ""  # as the hand-in says
    handin: str = ""  # lab version that the hand-in was made with
    problem: str = ""  # what is wrong with the file as a whole
    notes: list[str] = field(default_factory=list)  # what was done to the file before it was graded
    confined: str = ""  # the level at which student code was confined
    seconds: float = 0.0  # wall time
    cpu_seconds: float = 0.0  # of all processes
    memory: int = 0  # bytes of the largest process
    artifacts: dict[str, bytes] = field(default_factory=dict, repr=False)  # file name -> artifact, if kept

    @property
    def earned(self) -> float:
        return round(sum(step.earned for step in self.steps), 2)

    @property
    def possible(self) -> float:
        return round(sum(step.possible for step in self.steps), 2)

    @property
    def final(self) -> bool:
        return stands(self.problem)

    @property
    def worth(self) -> float:
        return sum(step.points for step in self.steps)

    @property
    def total(self) -> float:
        """The points that the course counts: those earned, or with "scaled" those scaled up to all points."""
        if load_rubric().shares.without_speed == "apart" or not self.possible:
            return self.earned
        return round(self.earned / self.possible * self.worth, 2)

    @property
    def out_of(self) -> float:
        return self.possible if load_rubric().shares.without_speed == "apart" else self.worth
