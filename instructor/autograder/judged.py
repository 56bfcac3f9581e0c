"""The outcome of one run: data alone, for the grading process, which never loads the simulator."""

from dataclasses import dataclass, field


@dataclass
class Judged:
    """The outcome of one run. `reason` and `hint` are safe to show to the student."""

    right: bool
    verdict: str  # of the simulator
    reason: str = ""  # why it is not right
    hint: str = ""  # what the implementation lacks; only of a recorded run
    behind: str = ""  # what it lacks of the demands of the step before
    findings: list[dict] = field(default_factory=list)  # of any severity
    seconds: float = 0.0
    instructions: int = 0  # warp instructions simulated
    over: bool = False  # it was stopped at the limit of instructions
