"""Correct kernels that are unusual: the references with a change that no rule forbids.

A `Change` is an edit of a kernel's text that applies to many steps; `TWINS` are all pairs of a step and a
change that applies to it. None may lead to an `error`, and each must compute the reference's product.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from corpus import Bug, bug_source

SIZES = {1: (128, 128, 64), 2: (128, 128, 192), 9: (512, 256, 192), 10: (1024, 256, 192)}  # else:
SIZE = (256, 256, 192)
PERSISTENT = 6  # from this step on two CTAs (or one pair) share the tiles


@dataclass(frozen=True)
class Change:
    name: str
    edit: Callable[[str], str]  # of the whole builder's text
    why: str  # it is correct


def every(pattern: str, new: str) -> Callable[[str], str]:
    """Replaces each match of a pattern of whole lines."""
    return lambda text: re.sub(pattern, new, text, flags=re.M)


def last(pattern: str, new: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        found = list(re.finditer(pattern, text, re.M))
        return text[: found[-1].start()] + found[-1].expand(new) + text[found[-1].end() :] if found else text

    return edit


def first(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, count=1, flags=re.M)


_RELINQUISH = r"^ +Tx\.ptx\.tcgen05\.relinquish_alloc_permit\(.*\n"
_ALLOC = r"^ +Tx\.ptx\.tcgen05\.alloc\(.*\n"
_LAST_SYNC = r"^( +)(Tx\.cuda\.(?:cta|cluster)_sync\(\)).*$"
_WAIT_GROUP = r"^ +Tx\.ptx\.cp_async\.bulk\.wait_group\(0\).*$"
_UNROLL = r"\bTx\.unroll\(([A-Z]+_N // EPI_N)\)"
_TWICE = r"\g<0>\n\g<0>"
CHANGES = (
    Change("cta-sync-twice", every(r"^ +Tx\.cuda\.cta_sync\(\).*$", _TWICE), "all come to both"),
    Change("cluster-sync-twice", every(r"^ +Tx\.cuda\.cluster_sync\(\).*$", _TWICE), "all come to both"),
    Change("proxy-fence-twice", every(r"^ +Tx\.ptx\.fence\.proxy_async\(.*$", _TWICE), "fences add order"),
    Change("after-fence-twice", every(r"^ +Tx\.ptx\.tcgen05\.fence\.after_\w+\(\).*$", _TWICE), "same"),
    Change("before-fence-twice", every(r"^ +Tx\.ptx\.tcgen05\.fence\.before_\w+\(\).*$", _TWICE), "same"),
    Change("init-fence-twice", every(r"^ +Tx\.ptx\.fence\.mbarrier_init\(\).*$", _TWICE), "same"),
    Change("wait-group-twice", every(_WAIT_GROUP, _TWICE), "nothing is left"),
    Change("warpgroup-sync-twice", every(r"^ +Tx\.cuda\.warpgroup_sync\(.*$", _TWICE), "all four warps come"),
    Change(
        "relinquish-early",
        lambda text: _moved(text, _RELINQUISH, _ALLOC),
        "no further alloc comes (9.7.16.7.1)",
    ),
    Change("three-stages", every(r"^    PIPE_DEPTH = 2$", "    PIPE_DEPTH = 3"), "the ring has any depth"),
    Change("four-stages", every(r"^    PIPE_DEPTH = \d$", "    PIPE_DEPTH = 4"), "the ring has any depth"),
    Change("wide-gap", every(r"pool\.move_base_to\(1024\)", "pool.move_base_to(3072)"), "still 1024-aligned"),
    Change("b-before-a", lambda text: _swapped(text), "two loads of one phase, in any order"),
    Change("rolled-epilogue", every(_UNROLL, r"Tx.serial(\1)"), "the same loop"),
    Change("other-load-warp", every(r"^( +)if warp_id == 3:", r"\1if warp_id == 2:"), "any warp may load"),
    Change("sync-before-dealloc", last(_LAST_SYNC, r"\g<0>\n\1Tx.cuda.warp_sync()\n\1\2"),
           "one more meeting"),
)  # fmt: skip


def _moved(text: str, line: str, behind: str) -> str:
    """Moves a one-line statement after another one."""
    moving, target = re.search(line, text, re.M), re.search(behind, text, re.M)
    if not moving or not target:
        return text
    indent = re.match(r" +", target[0])[0]
    statement = indent + moving[0].strip() + "\n"
    text = text[: moving.start()] + text[moving.end() :]
    at = text.index(target[0]) + len(target[0])
    return text[:at] + statement + text[at:]


def _swapped(text: str) -> str:
    """B is loaded before A."""
    load = r"^( +)Tx\.copy_async\({0}smem[^\n]*(?:\n(?:\1 +[^\n]*|\1\)))*\n"
    a, b = (re.search(load.format(side), text, re.M) for side in "AB")
    if not a or not b or a.end() != b.start() or a[1] != b[1]:
        return text
    return text[: a.start()] + b[0] + a[0] + text[b.end() :]


def _twins() -> list[Bug]:
    found = []
    for step in range(1, 11):
        for change in CHANGES:
            twin = Bug(
                name=f"step{step}-{change.name}",
                step=step,
                size=SIZES.get(step, SIZE),
                edits=(lambda lines, edit=change.edit: edit("\n".join(lines)).split("\n"),),
                kind="",
                names="",
                why=change.why,
                ctas=2 if step >= PERSISTENT else None,
            )
            if bug_source(twin) != bug_source(twin, mutated=False):
                found.append(twin)
    return found


TWINS = _twins()
