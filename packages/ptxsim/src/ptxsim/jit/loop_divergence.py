"""Divergence in the main loop: a split divides at a branch, its lanes meet again at JOIN rows, lanes exit.

A group is a set of lanes that will meet at row G_REJOIN; its splits run separately until all lanes of G_NEED
have arrived.
"""

# ruff: noqa: F405, SIM109
# pyright: reportUndefinedVariable=false
# ruff and pyright cannot see the names that bytecode._publish defines; numba refuses names that do not exist
import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403


@inner
def new_group(groups, w, parent, rejoin, need):
    """Creates a group of lanes that will meet at row `rejoin`; returns its index."""
    for k in range(w * 32, w * 32 + 32):
        if groups[k, G_LIVE] == 0:
            groups[k, G_LIVE] = 1
            groups[k, G_REJOIN] = rejoin
            groups[k, G_NEED] = need
            groups[k, G_ARRIVED] = 0
            groups[k, G_PARENT] = parent
            return k
    return -1


@inner
def new_split(splits, words, w, pc, mask, group):
    for k in range(w * 32, w * 32 + 32):
        if splits[k, SP_STATE] == FREE:
            splits[k, SP_STATE] = RUNNABLE
            splits[k, SP_PC] = pc
            splits[k, SP_MASK] = mask
            splits[k, SP_GROUP] = group
            splits[k, SP_WARP] = w
            words[NEW_FIRST + words[NEW_COUNT]] = k
            words[NEW_COUNT] += 1
            return k
    return -1


@inner
def meeting(splits, groups, g, mask, rejoin):
    """The group in which the lanes of g will meet at row `rejoin`: a new one unless g is in it already. If
    `rejoin` is -1, the group that g is in.
    """
    group = splits[g, SP_GROUP]
    if rejoin >= 0 and (group < 0 or groups[group, G_REJOIN] != rejoin):
        group = new_group(groups, splits[g, SP_WARP], group, rejoin, mask)
    return group


@inner
def diverge(splits, groups, words, g, taken, other, target, fall, rejoin):
    """Divides split g: lanes `other` continue in g at `fall`, lanes `taken` get a new split at `target`."""
    group = meeting(splits, groups, g, taken | other, rejoin)
    splits[g, SP_GROUP] = group
    splits[g, SP_MASK] = other
    splits[g, SP_PC] = fall
    new_split(splits, words, splits[g, SP_WARP], target, taken, group)


@inner
def arrive_early(splits, groups, g, mask, lanes, row):
    """Some `lanes` of g, whose lanes are `mask`, jump to the row where all meet again, so they need no split.

    The branch and their arrival count as two instructions, just as if they had a split.
    """
    group = meeting(splits, groups, g, mask, row)
    splits[g, SP_GROUP] = group
    groups[group, G_ARRIVED] |= lanes


@inner
def join(splits, groups, g, row):
    """The lanes of g reach a meeting point. Returns True if g continues (perhaps with more lanes), False if g
    no longer exists because its lanes wait for others.
    """
    while True:
        group = splits[g, SP_GROUP]
        if group < 0 or groups[group, G_REJOIN] != row:
            return True
        groups[group, G_ARRIVED] |= splits[g, SP_MASK]
        if groups[group, G_ARRIVED] != groups[group, G_NEED]:
            splits[g, SP_STATE] = FREE
            return False
        splits[g, SP_MASK] = groups[group, G_NEED]
        splits[g, SP_GROUP] = groups[group, G_PARENT]
        groups[group, G_LIVE] = 0


@inner
def follow(words, budget, before):
    """After a split has ended: sets words[SPLIT] to the newest split created by its branches that has not run
    yet, with the rest of `budget`; returns False if there is none. before: instructions executed at its
    start.
    """
    left, parts = budget - (words[EXECUTED] - before), words[PARTS]
    if words[FOLLOWS] == 0 or words[NEW_COUNT] == 0 or left <= 0 or parts == MOST_PARTS:
        return False
    if words[LOG_USED] > (words[PARTS_FIRST + parts - 1] if parts else 0):
        words[PARTS_FIRST + parts] = words[LOG_USED]
        words[PARTS] = parts + 1
    words[NEW_COUNT] -= 1
    words[SPLIT] = words[NEW_FIRST + words[NEW_COUNT]]
    words[BUDGET] = left
    words[FOLLOWED] += 1
    return True


@inner
def leave(splits, groups, g):
    """The lanes of g exit. Returns True if g no longer exists, False if g continues with the lanes that
    waited only for these.
    """
    gone = splits[g, SP_MASK]
    group = splits[g, SP_GROUP]
    resumed = False
    while group >= 0:
        parent = groups[group, G_PARENT]
        groups[group, G_NEED] &= ~gone
        if not resumed:
            if groups[group, G_NEED] == 0:
                groups[group, G_LIVE] = 0
            elif groups[group, G_NEED] == groups[group, G_ARRIVED]:
                splits[g, SP_PC] = groups[group, G_REJOIN]
                splits[g, SP_MASK] = groups[group, G_NEED]
                splits[g, SP_GROUP] = parent
                groups[group, G_LIVE] = 0
                resumed = True
            else:
                resumed = True
                splits[g, SP_STATE] = FREE
        group = parent
    if not resumed:
        splits[g, SP_STATE] = FREE
    return splits[g, SP_STATE] == FREE


@inner
def branch_index(c, m, w, g, pc, lists, registers, splits, groups, words):
    """brx.idx: each distinct index gets a split of its own, except the last, whose lanes continue in g.
    Returns False for an index out of range.
    """
    rest = m
    while True:
        lane = 0
        while not (rest >> lane) & 1:
            lane += 1
        index = np.int64(lane_value(registers, c[BRX_INDEX], lane))
        if index < 0 or index >= c[BRX_TARGETS]:
            return False
        same = 0
        for l in range(32):
            if (rest >> l) & 1 and np.int64(lane_value(registers, c[BRX_INDEX], l)) == index:
                same |= 1 << l
        target = lists[c[BRX_TABLE] + index]
        if same == rest:
            splits[g, SP_PC] = target
            return True
        diverge(splits, groups, words, g, same, rest & ~same, target, pc, c[REJOIN])
        rest &= ~same
