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


def forgiven(row: dict) -> bool:
    """Does it only break what every known chip forgives? Then the verdict is `review`, on purpose: one warp
    frees tensor memory that another has freed (docs/ptxsim-model.md).
    """
    outcome = row["outcome"]
    found = {(f["kind"], f["message"].split(" by warp")[0].split(" of ")[0]) for f in outcome["findings"]}
    return outcome["kind"] == "review" and found == {("tmem-alloc", "tcgen05.dealloc")}


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
