"""Lanes and clusters that wait by polling: found by states that repeat, freed where a chip would free them.

A split that used up its turn in a state it had before, without any effect, polls. When all that can run
polls, or has long had no effect, asynchronous work completes; then lanes that stand at a meeting point go on
without those that poll: threads of a warp progress on their own since sm_70 (CUDA C++ guide, independent
thread scheduling). Instructions for the whole warp later bring such lanes together again.
"""

from __future__ import annotations

import zlib

import numpy as np

from ptxsim.jit import bytecode
from ptxsim.machine.split import BLOCK

FIRST = 1260  # instructions of a checked split's first turn without an effect
PATIENCE = 64  # turns that an instruction for the whole warp waits for lanes that still run
IMPATIENT = 200_000  # instructions per split without an effect after which pending work completes
ENDLESS = 200_000_000  # ... after which a run counts as stuck
MOST_UNITS = 4096  # unit instructions in a row after which others get a turn


class Progress:
    """What is known about the splits of a cluster since something last happened."""

    def __init__(self):
        self.loose: set[int] = set()  # warps whose lanes went on apart
        self.moved = True  # something happened since the cluster was last given up
        self.clear()

    def clear(self) -> None:
        self.states: dict[int, set[int]] = {}  # split -> digests of its states at the ends of its turns
        self.polling: set[int] = set()
        self.work, self.patience = 0, IMPATIENT  # instructions without an effect, and how many are borne

    def happened(self) -> None:
        """Something that others may have waited for."""
        self.moved = True
        if self.states:
            self.clear()

    def turn(self, cluster, g: int, work: int) -> None:
        """Split g had a turn of `work` instructions without an effect (0: with one, or cut short)."""
        if not work:
            self.happened()
            return
        self.work += work
        known, state = self.states.setdefault(g, set()), digest(cluster, g)
        if state in known:
            self.polling.add(g)
        else:
            known.add(state)
            self.polling.clear()

    def budget(self, g: int, most: int) -> int:
        """Instructions of the next turn where each access is checked: few at first, for cheap polls."""
        return min(most, FIRST << len(self.states.get(g, ())))

    def stuck(self, queue) -> bool:
        """Whether no split that can run will get anywhere by itself."""
        if not self.work:
            return False
        return all(g in self.polling for g in queue) or self.work > ENDLESS * max(1, len(queue))

    def impatient(self, queue) -> bool:
        """Whether splits ran for long without an effect: polls that count or read a clock never repeat."""
        return self.work > self.patience * max(1, len(queue))


def digest(cluster, g: int) -> int:
    """A number for the state of a split: where it stands, its lanes and their registers."""
    w, mask = int(cluster.split_table[g, bytecode.SP_WARP]), int(cluster.split_table[g, bytecode.SP_MASK])
    lanes = np.flatnonzero((mask >> np.arange(32)) & 1)
    state = zlib.crc32(np.ascontiguousarray(cluster.registers[w][:, lanes]))
    state = zlib.crc32(cluster.predicates[w] & mask, state)
    return hash((state, int(cluster.split_table[g, bytecode.SP_PC]), mask))


def time_out(cluster) -> bool:
    """try_wait may give up after a time limit (PTX ISA 9.7.13.15.16): let it, once per standstill."""
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


def release(cluster) -> bool:
    """Lanes that wait at a meeting point for lanes that poll go on without them; False if there are none."""
    freed = False
    for g in list(cluster.queue):
        group = int(cluster.split_table[g, bytecode.SP_GROUP])
        while group >= 0 and not cluster.group_table[group, bytecode.G_ARRIVED]:
            group = int(cluster.group_table[group, bytecode.G_PARENT])
        if group >= 0:
            freed |= _go_on(cluster, cluster.splits[g].warp, group)
    return freed


def _go_on(cluster, w: int, group: int) -> bool:
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
    cluster.progress.loose.add(w)
    return True


def gather(cluster, split):
    """Before an instruction for the whole warp, lanes that went on apart wait and become one split again.

    None: there is nothing to do. BLOCK: the split sleeps, or shall run again with more lanes.
    """
    from ptxsim.machine.split import Wait

    w, g = split.warp, split.index
    key = ("gather", w, split.row)
    others = [k for k in cluster.waiting.get(key, ()) if k != g]
    mine, alive = int(cluster.split_table[g, bytecode.SP_MASK]), cluster.alive[w]
    present = mine | sum(int(cluster.split_table[k, bytecode.SP_MASK]) for k in others)
    if mine == alive:
        cluster.progress.loose.discard(w)
        return None
    if alive & ~present:
        return cluster.wait(split, Wait("collective", key, {"members": alive, "present": present}))
    for k in others:
        if cluster.split_table[k, bytecode.SP_GROUP] != cluster.split_table[g, bytecode.SP_GROUP]:
            return None  # they belong to different branches: the instruction itself reports it
    for k in others:
        del cluster.waits[k]
        cluster.split_table[k, bytecode.SP_STATE] = bytecode.FREE
    cluster.waiting.pop(key, None)
    cluster.split_table[g, bytecode.SP_MASK] = present
    cluster.queue.append(g)
    return BLOCK


def held_back(cluster, split) -> bool:
    """Whether an instruction for the whole warp waits for lanes that are apart, or still on their way."""
    g = split.index
    if not cluster.program.whole_warp[split.row]:
        return False
    if split.warp in cluster.progress.loose:
        return gather(cluster, split) is not None
    rows = range(split.warp * 32, split.warp * 32 + 32)
    coming = any(cluster.split_table[k, bytecode.SP_STATE] == bytecode.RUNNABLE for k in rows if k != g)
    turns = cluster.unit_state.pop(("held", g), 0)
    if not coming or turns >= PATIENCE:
        return False
    cluster.unit_state["held", g] = turns + 1
    cluster.queue.append(g)
    return True
