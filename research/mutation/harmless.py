"""Why a mutant that nothing tells from a correct kernel is one: the argument, or "" where a person must look.

Only mutants that survive both default orders at every size and three further orders are asked about.
"""

from __future__ import annotations

import re

# (operator, pattern in the old or new text, or in the changed lines) -> argument. The first that fits counts.
ARGUMENTS = (
    (
        "double|swap|move in|move out",
        r"tcgen05\.fence\.(after|before)_thread_sync",
        "the fence stands once more, or elsewhere, between the same wait and the same use of tensor memory",
    ),
    (
        "double",
        r"^\s*(Tx\.cuda\.\w+_sync\(|Tx\.ptx\.fence|Tx\.ptx\.cp_async\.(bulk\.)?(wait|commit)_group)",
        "all threads that come to it come twice: the second time there is nothing left to wait for",
    ),
    (
        "double",
        r"^\s*(with Tx\.(cta|warpgroup|thread)\(\):\n\s*)?Tx\.(copy|cast)\(",
        "the same values are copied to the same place twice, with nothing between",
    ),
    (
        "swap",
        r"^\s*\w+ = pool\.alloc(.|\n)*\n\s*\w+ = pool\.alloc",
        "two buffers change places in shared memory",
    ),
    (
        "swap",
        r"^\s*Tx\.copy_async\([AB]smem(.|\n)*\n\s*Tx\.copy_async\([AB]smem(?!(.|\n)*arrive)",
        "two loads that report to one barrier are issued in the other order",
    ),
    (
        "change a number|exchange arithmetic",
        r"(?m)^\s*pool\.move_base_to\(",
        "the buffers start at another multiple of 1024",
    ),
    (
        "delete|double|swap|move in|move out|add guard",
        r"\A\s*Tx\.ptx\.tcgen05\.relinquish_alloc_permit\([^\n]*\)\s*(\n[^\n]*dealloc[^\n]*)?\n",
        "nobody allocates afterwards, so nothing depends on when the permit is given up, or whether",
    ),
    (
        "double",
        r"\A\s*Tx\.ptx\.wgmma\.encode_matrix_descriptor\(",
        "the same descriptor is built twice",
    ),
    (
        "swap",
        r"\A\s*\w+ = (TMABar|TCGen05Bar|MBarrier)\(pool[^\n]*\n\s*\w+ = (TMABar|TCGen05Bar|MBarrier)\(pool",
        "two barriers change places in shared memory",
    ),
    (
        "swap",
        r"\A\s*Tx\.copy\([AB]smem[^\n]*\n\s*Tx\.copy\([AB]smem",
        "two tiles are copied in the other order, with nothing between",
    ),
    (
        "swap",
        r"^\s*\w+\.init\(\d+\).*\n(.|\n)*tcgen05\.alloc",
        "a barrier is initialised behind the allocation of tensor memory instead of before it",
    ),
)


FORGIVEN = (  # kind of a review, words of it: what every known chip forgives, or work that is for nothing
    ("tmem-alloc", "tcgen05.dealloc by warp"),
    ("tmem-alloc", "which warp"),  # frees columns that another warp has freed
    ("race", "each issue this copy, where one thread is meant to"),  # the same bytes to the same place
    ("race", "both write the same value"),
    ("out-of-bounds", "all TMA stores of"),
)


def forgiven(row: dict) -> bool:
    """Is D right, and is all that is said a `review` on purpose (packages/ptxsim/docs/model.md, Severity)?"""
    findings = [(f["kind"], f["message"].split("\n")[0]) for f in row["outcome"]["findings"]]
    known = all(any(k == kind and words in text for kind, words in FORGIVEN) for k, text in findings)
    return row["outcome"]["kind"] == "review" and bool(findings) and known


def argument(row: dict) -> str:
    """Why this mutant is equivalent to the kernel it came from."""
    if row["outcome"]["kind"] == "equivalent":
        return row["outcome"]["message"]
    lines = row["text"].split("\n")
    text = "\n".join([row["old"], row["new"], *(lines[n - 1] for n in row["lines"])])
    for operator, pattern, reason in ARGUMENTS:
        if re.fullmatch(operator, row["operator"]) and re.search(pattern, text):
            return reason
    return ""
