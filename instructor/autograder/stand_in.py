"""What a student is told of a size that the course keeps to itself: whether it passes. Nothing else.

Whatever a kernel does at such a size (what it reports, where, when, in which words) could carry the size
out. So a step that fails there is tried once more, in the same order and with the same checks, at the size
that was drawn for the submission; of that run everything may be told, the size too, and a student can try it.
Its kernel was built with those of the public sizes: code that is built later could tell, by the clock, what
was built between.
"""

from __future__ import annotations

from dataclasses import replace

from instructor.autograder.plan import ADVERSE, Run

HIDDEN_SIZE = "a size that the course keeps to itself"


def stand_in(looked_at: Run) -> Run:
    """The run that stands in for those at hidden sizes: of the launch that was looked at, as they are run."""
    return replace(looked_at, order=ADVERSE, record=False, drawn=False)


def told(run: Run, reason: str) -> str:
    """The hint for a step that passes the public sizes and fails a hidden one; `reason`: at the stand-in."""
    if reason:
        return f"it fails at {HIDDEN_SIZE}, and at {run.place}, which you can try: {reason}"
    return f"it fails at {HIDDEN_SIZE}, and not at {run.place}: is one of them special in the code?"
