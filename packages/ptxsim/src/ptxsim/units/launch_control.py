"""clusterlaunchcontrol (PTX ISA 9.7.13.17): a running cluster takes over one that has not started.

try_cancel requests one. The answer, 16 bytes that only query_cancel can read, arrives like an asynchronous
copy. machine/launch_queue.py decides whether a request succeeds, and which cluster it takes.
"""

from __future__ import annotations

import numpy as np

from ptxsim.events.records import BulkCopy, SharedSpan
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Lanes, Split
from ptxsim.units.bulk_copy import NOWHERE
from ptxsim.units.mbarrier import bytes_arrive, place_of
from ptxsim.units.registry import always, slots_of, unit

SIZE = 16  # bytes of an answer
_SEAL = 0x7C1C << 40  # marks the upper half of an answer; PTX does not specify the format
_TAKEN = 1 << 32
_TX = "mbarrier::complete_tx::bytes"


def answer(ctaid: tuple[int, int, int] | None) -> tuple[int, int]:
    """The two 64-bit halves of an answer. ctaid: first CTA of the cluster that was taken, or None."""
    x, y, z = ctaid or (0, 0, 0)
    return x | y << 32, _SEAL | (_TAKEN if ctaid else 0) | z


def sealed(high: int) -> bool:
    """Whether `high` is the upper half of an answer."""
    return high >> 40 << 40 == _SEAL


@unit(
    f"clusterlaunchcontrol.try_cancel .async{{.shared::cta}}.{_TX}{{.all}}.b128 [a], [bar]",
    all="multicast::cluster::all",
    section="9.7.13.17.1",
    signals="",
)
def try_cancel(instr):
    everywhere, generic = "multicast::cluster::all" in instr.mods, "shared::cta" not in instr.mods

    def run(cluster: Cluster, split: Split, args):
        place = place_of(cluster, split, cluster.address(split, args[0]), generic)
        bar = place_of(cluster, split, cluster.address(split, args[1]), generic)
        if place is None or bar is None or not _allowed(cluster, split, place, bar):
            return
        ranks = range(cluster.ctas) if everywhere else [split.cta]
        _ask(cluster, split.at(), place[1], bar[1], list(ranks))

    return run


def _allowed(cluster: Cluster, split: Split, place, bar) -> bool:
    """Checks the rules of try_cancel; False if the request cannot be made."""
    add = cluster.reporter.add
    if not split.one_lane:
        message = f"clusterlaunchcontrol.try_cancel issued by {len(split.lanes)} lanes: each is a request"
        add("illegal", "error", message, "issue it from one elected thread", split, key="clc-lanes")
    if cluster.unit_state.get(("clc-failed", split.cta)):
        message = "clusterlaunchcontrol.try_cancel after this CTA has seen a request fail"
        add("illegal", "review", message, "leave the loop at the first request that fails", split)
    if place[0] != split.cta or bar[0] != split.cta:
        add("cluster", "error", "try_cancel takes addresses of its own CTA", "", split)
        return False
    if place[1] % SIZE:
        name = cluster.reporter.shared_name(place[1])
        add("misaligned", "error", f"the answer of try_cancel goes to {name}: not 16-byte aligned", "", split)
        return False
    return True


def _ask(cluster: Cluster, split: Lanes, offset: int, bar: int, ranks: list[int]) -> None:
    """Sends the request; the answer is decided when it arrives."""
    places = tuple([(rank, bar) for rank in ranks])
    targets = tuple([SharedSpan.run(rank, offset, SIZE) for rank in ranks])
    copy = BulkCopy("load", NOWHERE, (0,), offset, SIZE, None, targets, places)
    token = cluster.bus.copy_issue(cluster, split, copy)

    def finish():
        number = cluster.launch.not_started.take(cluster.index)
        first = None if number is None else cluster.launch.cluster_cta_ids(number)[0]
        for rank in ranks:
            cluster.shared[rank, offset : offset + SIZE].view(np.uint64)[:] = answer(first)
        cluster.bus.copy_write(cluster, token, copy)
        for place in places:
            bytes_arrive(cluster, split, place, SIZE, token)

    cluster.engine.submit(Work(None, finish, "clusterlaunchcontrol.try_cancel"))


def _halves(cluster: Cluster, split: Split, operand) -> tuple[np.ndarray, np.ndarray]:
    """The two halves that each active lane holds; adds a finding if they are not an answer of try_cancel."""
    low, high = (cluster.read(split, slot)[split.lanes] for slot in operand)
    if not all(sealed(int(h)) for h in high):
        message = "query_cancel of 16 bytes that are not an answer of try_cancel: wait for its mbarrier first"
        cluster.reporter.add("illegal", "error", message, "", split, key="clc-answer")
    return low, high


@unit(
    "clusterlaunchcontrol.query_cancel.is_canceled .pred.b128 p, answer", writes=(0,), section="9.7.13.17.2"
)
@always
def is_canceled(cluster: Cluster, split: Split, args):
    _, high = _halves(cluster, split, args[1])
    taken = [sealed(int(h)) and bool(int(h) & _TAKEN) for h in high]
    mask = sum(1 << int(lane) for lane, yes in zip(split.lanes, taken, strict=True) if yes)
    if not all(taken):
        cluster.unit_state["clc-failed", split.cta] = True
    cluster.set_predicate(split, args[0].code, mask)


@unit(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid .v4.b32.b128 d, answer",
    *[f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis} .b32.b128 d, answer" for axis in "xyz"],
    writes=(0,),
    section="9.7.13.17.2",
)
def get_first_ctaid(instr):
    axes = range(3) if "v4" in instr.mods else ["xyz".index(instr.mods[1][-1])]

    def run(cluster: Cluster, split: Split, args):
        low, high = _halves(cluster, split, args[1])
        if any(not int(h) & _TAKEN for h in high):
            message = "get_first_ctaid of a request that failed: its value is undefined"
            hint = "query is_canceled first, and read the CTA only if it is true"
            cluster.reporter.add("illegal", "review", message, hint, split, key="clc-failed")
        values = [low & np.uint64(0xFFFF_FFFF), low >> np.uint64(32), high & np.uint64(0xFFFF_FFFF)]
        for slot, axis in zip(slots_of(args[0]), axes, strict=False):
            cluster.write(split, slot, values[axis])

    return run
