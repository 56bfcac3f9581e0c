"""Why a mutant that nothing tells from a correct kernel is one: the argument, or "" where a person must look.

Only mutants that survive both default orders at three sizes and four random ones are asked about.
"""

from __future__ import annotations

import re

# (operator, pattern in the old or new text) -> argument. The first that fits counts.
ARGUMENTS = (
    (
        "double|swap|move in|move out",
        r"tcgen05\.fence\.after_thread_sync",
        "the fence stands once more, or elsewhere, between the same wait and the same use of tensor memory",
    ),
)


def argument(row: dict) -> str:
    """Why this mutant is equivalent to the kernel it came from."""
    if row["outcome"]["kind"] == "equivalent":
        return row["outcome"]["message"]
    text = f"{row['old']}\n{row['new']}"
    for operator, pattern, reason in ARGUMENTS:
        if re.fullmatch(operator, row["operator"]) and re.search(pattern, text):
            return reason
    return ""
