"""Divergence in the main loop: a split divides at a branch, its lanes meet again at JOIN rows, lanes leave.

A group is a set of lanes that will meet at row RPC; its splits go on alone until all of NEED have arrived.
"""

# ruff: noqa: F405, SIM109
import numpy as np
from numba import njit

from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403


@njit
def new_group(G, w, parent, rpc, need):
    """A group of lanes that will meet at row rpc; its index."""
    for k in range(w * 32, w * 32 + 32):
        if G[k, G_LIVE] == 0:
            G[k, G_LIVE] = 1
            G[k, G_RPC] = rpc
            G[k, G_NEED] = need
            G[k, G_ARRIVED] = 0
            G[k, G_PARENT] = parent
            return k
    return -1


@njit
def new_split(SP, CTL, w, pc, mask, group):
    for k in range(w * 32, w * 32 + 32):
        if SP[k, SP_STATE] == FREE:
            SP[k, SP_STATE] = RUNNABLE
            SP[k, SP_PC] = pc
            SP[k, SP_MASK] = mask
            SP[k, SP_GROUP] = group
            SP[k, SP_WARP] = w
            CTL[NEW_FIRST + CTL[NEW_COUNT]] = k
            CTL[NEW_COUNT] += 1
            return k
    return -1


@njit
def diverge(SP, G, CTL, g, taken, other, target, fall, rpc):
    """Splits g: `other` lanes go on in g at `fall`, `taken` lanes get a split of their own at `target`."""
    w = SP[g, SP_WARP]
    group = SP[g, SP_GROUP]
    if rpc >= 0 and (group < 0 or G[group, G_RPC] != rpc):
        group = new_group(G, w, group, rpc, taken | other)
    SP[g, SP_GROUP] = group
    SP[g, SP_MASK] = other
    SP[g, SP_PC] = fall
    new_split(SP, CTL, w, target, taken, group)


@njit
def join(SP, G, g, row):
    """Lanes of g reach a meeting point. True: go on (perhaps with more lanes); False: g is gone, its lanes
    wait.
    """
    while True:
        group = SP[g, SP_GROUP]
        if group < 0 or G[group, G_RPC] != row:
            return True
        G[group, G_ARRIVED] |= SP[g, SP_MASK]
        if G[group, G_ARRIVED] != G[group, G_NEED]:
            SP[g, SP_STATE] = FREE
            return False
        SP[g, SP_MASK] = G[group, G_NEED]
        SP[g, SP_GROUP] = G[group, G_PARENT]
        G[group, G_LIVE] = 0


@njit
def leave(SP, G, g):
    """Lanes of g exit. True: g is gone; False: g goes on as the lanes that waited only for these."""
    gone = SP[g, SP_MASK]
    group = SP[g, SP_GROUP]
    resumed = False
    while group >= 0:
        parent = G[group, G_PARENT]
        G[group, G_NEED] &= ~gone
        if not resumed:
            if G[group, G_NEED] == 0:
                G[group, G_LIVE] = 0
            elif G[group, G_NEED] == G[group, G_ARRIVED]:
                SP[g, SP_PC] = G[group, G_RPC]
                SP[g, SP_MASK] = G[group, G_NEED]
                SP[g, SP_GROUP] = parent
                G[group, G_LIVE] = 0
                resumed = True
            else:
                resumed = True
                SP[g, SP_STATE] = FREE
        group = parent
    if not resumed:
        SP[g, SP_STATE] = FREE
    return SP[g, SP_STATE] == FREE


@njit
def branch_index(c, m, w, g, pc, lists, registers, SP, G, CTL):
    """brx.idx: the lanes with the lowest pending index go on in g, every other index gets a split."""
    rest = m
    while True:
        lane = 0
        while not (rest >> lane) & 1:
            lane += 1
        index = np.int64(lane_value(registers, c[D], lane))
        if index < 0 or index >= c[B]:
            return False
        same = 0
        for l in range(32):
            if (rest >> l) & 1 and np.int64(lane_value(registers, c[D], l)) == index:
                same |= 1 << l
        target = lists[c[A] + index]
        if same == rest:
            SP[g, SP_PC] = target
            return True
        diverge(SP, G, CTL, g, same, rest & ~same, target, pc, c[RPC])
        rest &= ~same
