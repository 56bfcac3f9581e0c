"""What a student learns about a hidden size: whether the step passes there, and nothing else.

Whatever a kernel does at such a size (what it reports, where, when, in which words) could reveal the size. So
a step that fails there is tried once more, in the same order and with the same checks, at the size drawn for
the submission. Everything about that run may be shown, the size included, and a student can repeat it. Its
kernel was built with those of the public sizes: code that is built later could learn, from the clock, what
was built in between.
"""

from __future__ import annotations

from dataclasses import replace

from instructor.autograder.plan import ADVERSE, Run

HIDDEN_SIZE = "a size that the course keeps to itself"


def stand_in(looked_at: Run) -> Run:
    """The run that stands in for those at hidden sizes: the recorded launch, run as they are."""
    return replace(looked_at, order=ADVERSE, record=False, drawn=False)


def told(run: Run, reason: str) -> str:
    """The hint for a step that passes the public sizes and fails a hidden one.

    `reason`: why the stand-in `run` fails; "" if it passes.
    """
    if reason:
        return f"the step fails at {HIDDEN_SIZE}, and also at {run.place}, which you can try: {reason}"
    return f"the step fails at {HIDDEN_SIZE}, but not at {run.place}: is one of them special in the code?"
