"""Why a mutant that no run distinguishes from a correct kernel is harmless; "" if a person must look.

This concerns only mutants that survive both default orders at every size and three further orders, and that
do not take the same steps as their kernel (same_steps.py). A mutant that neither of the two clears counts as
missed.
"""

from __future__ import annotations

import re

# (operator, pattern in the old or new text, or in the changed lines) -> argument. The first match counts.
ARGUMENTS = (
    (
        "change a number",
        r"(?m)^\s*(PIPE_DEPTH|EPI_N|STAGES) = ",
        "stages of a ring, or columns of an epilogue chunk: any number that fits works as well",
    ),
    (
        "double|swap|move in|move out",
        r"tcgen05\.fence\.(after|before)_thread_sync",
        "the fence is repeated or moved, but still between the same wait and the same use of tensor memory",
    ),
    (
        "double",
        r"^\s*(Tx\.cuda\.\w+_sync\(|Tx\.ptx\.fence|Tx\.ptx\.cp_async\.(bulk\.)?(wait|commit)_group)",
        "all threads that execute it do so twice: the second time there is nothing left to wait for",
    ),
    (
        "double",
        r"^\s*(with Tx\.(cta|warpgroup|thread)\(\):\n\s*)?Tx\.(copy|cast)\(",
        "the same values are copied to the same place twice, with nothing between",
    ),
    (
        "swap",
        r"^\s*\w+ = pool\.alloc(.|\n)*\n\s*\w+ = pool\.alloc",
        "two buffers are exchanged in shared memory",
    ),
    (
        "swap",
        r"^\s*Tx\.copy_async\([AB]smem(.|\n)*\n\s*Tx\.copy_async\([AB]smem(?!(.|\n)*arrive)",
        "two loads that report to one barrier are issued in the other order",
    ),
    (
        "change a number",
        r"(?m)^\s*if warp_id == [0-3]:$",
        "another warp takes over; what the warps share is synchronised by barriers of all of them",
    ),
    (
        "change a number|exchange arithmetic",
        r"(?m)^\s*pool\.move_base_to\(",
        "the buffers start at another multiple of 1024",
    ),
    (
        "delete|double|swap|move in|move out|add guard",
        r"\A\s*Tx\.ptx\.tcgen05\.relinquish_alloc_permit\([^\n]*\)\s*(\n[^\n]*dealloc[^\n]*)?\n",
        "nobody allocates afterwards, so it does not matter when or whether the permit is given up",
    ),
    (
        "double",
        r"\A\s*Tx\.ptx\.wgmma\.encode_matrix_descriptor\(",
        "the same descriptor is built twice",
    ),
    (
        "swap",
        r"\A\s*\w+ = (TMABar|TCGen05Bar|MBarrier)\(pool[^\n]*\n\s*\w+ = (TMABar|TCGen05Bar|MBarrier)\(pool",
        "two barriers are exchanged in shared memory",
    ),
    (
        "swap",
        r"(?m)^\s*\w+ = (?:(?:TMABar|TCGen05Bar|MBarrier)\(pool|pool\.alloc\().*\n\s*pool\.move_base_to\(|"
        r"^\s*pool\.move_base_to\(.*\n\s*\w+ = (?:TMABar|TCGen05Bar|MBarrier)\(pool",
        "a barrier is placed after the base of the buffers instead of before it",
    ),
    (
        "swap",
        r"\A\s*Tx\.copy\([AB]smem[^\n]*\n\s*Tx\.copy\([AB]smem",
        "two tiles are copied in the other order, with nothing between",
    ),
    (
        "swap",
        r"^\s*\w+\.init\(\d+\).*\n(.|\n)*tcgen05\.alloc",
        "a barrier is initialised after the allocation of tensor memory instead of before it",
    ),
    (
        "add guard",
        r"if (lane|warp)_id == 0:\n\s*Tx\.copy\([AB]smem",
        "each remaining thread copies the whole tile (scalar fallback): the same values to the same place",
    ),
)


FORGIVEN = (  # kind and words of a review: what every known chip forgives, or useless work
    ("tmem-alloc", "tcgen05.dealloc by warp"),
    ("tmem-alloc", "which warp"),  # frees columns that another warp has already freed
    ("race", "each issue this copy, to one place"),  # the same bytes to the same place
    ("race", "both write the same value"),
    ("out-of-bounds", "all TMA stores of"),
    ("out-of-bounds", "nothing but zeros"),  # a loop that is too long
)


def forgiven(row: dict) -> bool:
    """Whether D is right and every finding is a deliberate `review` (packages/ptxsim/docs/model.md,
    Severity).
    """
    findings = [(f["kind"], f["message"].split("\n")[0]) for f in row["outcome"]["findings"]]
    known = all(any(k == kind and words in text for kind, words in FORGIVEN) for k, text in findings)
    return row["outcome"]["kind"] == "review" and bool(findings) and known


_INITS = r"(if (warp|lane)_id == 0:|Tx\.ptx\.(tcgen05\.alloc|mbarrier\.init|fence\.proxy_async)\(.*)"


def _beside_inits(row: dict, near: str) -> bool:
    """Whether only a proxy fence next to fence.mbarrier_init is changed, with only inits before both."""
    old = [line.strip() for line in row["old"].split("\n")]
    alone = len(old) < 3 or all(re.fullmatch(_INITS, line) for line in old)
    return alone and "fence.proxy_async" in row["old"] and "fence.mbarrier_init()" in near + row["old"]


def _beside_proxy_fence(row: dict, near: str) -> bool:
    """The reverse, before a CTA barrier, where only this CTA uses the mbarriers."""
    alone = "fence.mbarrier_init()" in row["old"] and row["old"].count("\n") < 2
    beside = re.search(r"fence\.proxy_async\(\S+\)\n(.*\n)?\s*Tx\.cuda\.cta_sync\(\)", near)
    return alone and beside is not None and "cluster" not in near


def _announced_by_the_other(row: dict, near: str) -> bool:
    """Whether the other CTA of a pair announces the bytes of both, each having waited for the same phase."""
    guard = rf"if {re.escape(row['new'])}:\n\s*\w+_cta0\.arrive\(stage, TILE_BYTES\)"
    return row["operator"] == "exchange comparison" and re.search(guard, near) is not None


BESIDE = {  # predicate on the lines around the change -> argument
    _beside_inits: "fence.mbarrier_init is next to it and covers the inits before it",
    _beside_proxy_fence: "fence.proxy.async is next to it, and the CTA barrier releases the inits",
    _announced_by_the_other: "the other CTA announces the bytes at CTA 0's barrier, after the same wait",
}


def argument(row: dict) -> str:
    """Why this mutant is equivalent to the kernel that it came from."""
    if row["outcome"]["kind"] == "equivalent":
        return row["outcome"]["message"]
    lines = row["text"].split("\n")
    near = "\n".join(lines[max(row["lines"][0] - 4, 0) : row["lines"][-1] + 3])
    found = next((reason for looks, reason in BESIDE.items() if looks(row, near)), "")
    if found:
        return found
    text = "\n".join([row["old"], row["new"], *(lines[n - 1] for n in row["lines"])])
    for operator, pattern, reason in ARGUMENTS:
        if re.fullmatch(operator, row["operator"]) and re.search(pattern, text):
            return reason
    return ""
