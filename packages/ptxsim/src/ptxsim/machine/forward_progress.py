"""Lanes of a warp progress independently, as since sm_70 (CUDA C++ guide, independent thread scheduling).

Lanes at a reconvergence point can continue without lanes of their warp that poll, and waits can time out. The
watchdog does both when nothing else makes progress. Whole-warp instructions bring such lanes together again.
"""

from __future__ import annotations

from ptxsim.jit import bytecode
from ptxsim.machine.cluster_view import Cluster
from ptxsim.machine.split import BLOCK, Split, Wait
from ptxsim.report.findings import lanes_text

PATIENCE = 64  # turns that a whole-warp instruction waits for lanes that still run
WARP_SYNC = "bar.warp.sync"
ASIDE = "let all lanes of the mask reach it, or leave the others out of the mask"
MOST_UNITS = 4096  # consecutive unit instructions after which other splits get a turn


def time_out(cluster: Cluster) -> bool:
    """Times out all waiting try_waits (PTX ISA 9.7.13.15.16), once per standstill; False if there is none."""
    if cluster.timeouts == cluster.effects + 1:
        return False
    cluster.timeouts = cluster.effects + 1
    polls = [(g, w) for g, w in cluster.waits.items() if w.detail.get("may_time_out")]
    for g, wait in polls:
        cluster.waiting[wait.key].remove(g)
        del cluster.waits[g]
        cluster.split_table[g, bytecode.SP_STATE] = bytecode.RUNNABLE
        cluster.unit_state[("timed-out", g)] = True
        cluster.queue.append(g)
    return bool(polls)


def release(cluster: Cluster) -> bool:
    """Lets lanes at a reconvergence point continue without lanes that poll; False if there are none."""
    return any([_without(cluster, g) for g in list(cluster.queue)])


def release_from_sleepers(cluster: Cluster) -> bool:
    """Lets lanes at a reconvergence point continue without lanes that sleep at a bar.warp.sync.

    bar.warp.sync does not wait for lanes that have ended, so it can pass when the others end. A `review` says
    that these never reached it. False if there are no such lanes.
    """
    freed = False
    for g, wait in list(cluster.waits.items()):
        instr = cluster.program.instrs[cluster.splits[g].row]
        if (
            wait.kind == "collective"
            and instr is not None
            and instr.name == WARP_SYNC
            and _without(cluster, g)
        ):
            missing = wait.detail["members"] & ~wait.detail["present"]
            message = f"lanes {lanes_text(missing)} do not reach this bar.warp.sync, and continue without it"
            cluster.reporter.add("collective", "review", message, ASIDE, cluster.splits[g], key="aside")
            freed = True
    return freed


def _without(cluster: Cluster, g: int) -> bool:
    """Lets lanes continue that wait for split g, at its innermost reconvergence point where any wait."""
    group = int(cluster.split_table[g, bytecode.SP_GROUP])
    while group >= 0 and not cluster.group_table[group, bytecode.G_ARRIVED]:
        group = int(cluster.group_table[group, bytecode.G_PARENT])
    return group >= 0 and _go_on(cluster, cluster.splits[g].warp, group)


def _go_on(cluster: Cluster, w: int, group: int) -> bool:
    rows = range(w * 32, w * 32 + 32)
    free = next((k for k in rows if cluster.split_table[k, bytecode.SP_STATE] == bytecode.FREE), None)
    if free is None:
        return False
    state = cluster.group_table[group]
    cluster.split_table[free] = (
        state[bytecode.G_REJOIN],
        state[bytecode.G_ARRIVED],
        bytecode.RUNNABLE,
        state[bytecode.G_PARENT],
        w,
    )
    state[bytecode.G_NEED] &= ~state[bytecode.G_ARRIVED]
    state[bytecode.G_ARRIVED] = 0
    cluster.queue.append(free)
    cluster.apart.add(w)
    return True


def gather(cluster: Cluster, split: Split):
    """Before a whole-warp instruction, lets lanes that continued separately wait and become one split again.

    None: there is nothing to do. BLOCK: the split sleeps, or runs the instruction again with more lanes.
    """
    w, g = split.warp, split.index
    key = ("gather", w, split.row)
    others = [k for k in cluster.waiting.get(key, ()) if k != g]
    mine, alive = int(cluster.split_table[g, bytecode.SP_MASK]), cluster.alive[w]
    present = mine | sum(int(cluster.split_table[k, bytecode.SP_MASK]) for k in others)
    if mine == alive:
        cluster.apart.discard(w)
        return None
    if alive & ~present:
        return cluster.wait(split, Wait("collective", key, {"members": alive, "present": present}))
    if not _same_branch(cluster, g, others):
        return None  # they belong to different branches: the instruction itself reports it
    _absorb(cluster, g, others, key, present)
    return BLOCK


def become_one(cluster: Cluster, split: Split, key: tuple) -> bool:
    """Merges lanes of a warp that meet at the same bar.warp.sync into one split (9.7.13.2); True if it did.

    A compiler may lead lanes there from several branches, with no other point at which they reconverge.
    """
    g, others = split.index, [k for k in cluster.waiting.get(key, ()) if k != split.index]
    rows = {int(cluster.split_table[k, bytecode.SP_PC]) for k in (g, *others)}
    present = split.full_mask | sum(int(cluster.split_table[k, bytecode.SP_MASK]) for k in others)
    if not others or len(rows) > 1 or cluster.alive[split.warp] & ~present:
        return False
    if not _same_branch(cluster, g, others):
        return False
    cluster.unit_state.pop(key, None)
    _absorb(cluster, g, others, key, present)
    return True


def _same_branch(cluster: Cluster, g: int, others: list[int]) -> bool:
    groups = cluster.split_table[[g, *others], bytecode.SP_GROUP]
    return bool((groups == groups[0]).all())


def _absorb(cluster: Cluster, g: int, others: list[int], key: tuple, lanes: int) -> None:
    """Moves the lanes of splits that wait for `key` to split g, and queues g."""
    for k in others:
        del cluster.waits[k]
        cluster.split_table[k, bytecode.SP_STATE] = bytecode.FREE
    cluster.waiting.pop(key, None)
    cluster.split_table[g, bytecode.SP_MASK] = lanes
    cluster.queue.append(g)


def held_back(cluster: Cluster, split: Split) -> bool:
    """Whether a whole-warp instruction waits for lanes that continued separately or have yet to arrive."""
    g = split.index
    if not cluster.program.whole_warp[split.row]:
        return False
    if split.warp in cluster.apart:
        return gather(cluster, split) is not None
    rows = range(split.warp * 32, split.warp * 32 + 32)
    coming = any(cluster.split_table[k, bytecode.SP_STATE] == bytecode.RUNNABLE for k in rows if k != g)
    turns = cluster.unit_state.pop(("held", g), 0)
    if not coming or turns >= PATIENCE:
        return False
    cluster.unit_state["held", g] = turns + 1
    cluster.queue.append(g)
    return True
