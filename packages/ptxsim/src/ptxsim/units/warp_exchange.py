"""shfl and vote: the lanes of a warp exchange values (PTX ISA 9.7.9.6, 9.7.13.8)."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M32
from ptxsim.isa.operands import UNSET, PredArg
from ptxsim.jit import bytecode
from ptxsim.jit.intrinsics import lane_value, mask_of, room_for_lanes, set_lane_value, set_mask
from ptxsim.jit.loop_batch import same_in_all
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.registry import FastForm, unit
from ptxsim.units.warp import together

_LANES = np.arange(32)
UP, DOWN, BFLY, IDX = range(4)
_SHUFFLES = {"up": UP, "down": DOWN, "bfly": BFLY, "idx": IDX}
ALL, ANY, UNI, BALLOT = range(4)
_VOTES = {"all": ALL, "any": ANY, "uni": UNI, "ballot": BALLOT}


@inner
def whole_warp(c, m, registers):
    """Whether all lanes execute the instruction and are in its member mask (column SRC3)."""
    members = lane_value(registers, c[bytecode.SRC3], 0)
    return m == bytecode.FULL and members & M32 == M32 and same_in_all(registers, c[bytecode.SRC3], m)


@inner
def source_lane(mode, l, b, limits):
    """(lane whose value lane l gets, whether it is in range) for shfl (PTX ISA 9.7.9.6)."""
    steps, segment = b & 0x1F, (limits >> 8) & 0x1F
    end = (l & segment) | (limits & ~segment & 0x1F)
    if mode == UP:
        lane = l - steps
    elif mode == DOWN:
        lane = l + steps
    elif mode == BFLY:
        lane = l ^ steps
    else:
        lane = (l & segment) | (steps & ~segment & 0x1F)
    good = lane >= end if mode == UP else lane <= end
    return (lane if good else l), good


@inner
def shuffle_warp(c, m, registers, predicates, rank, control):
    """shfl.sync of a whole warp."""
    if not whole_warp(c, m, registers):
        return False
    mode, values, inside = c[bytecode.IMM], room_for_lanes(), np.int64(0)
    for l in range(32):
        set_lane_value(values, 0, l, lane_value(registers, c[bytecode.SRC0], l) & M32)
    for l in range(32):
        b = np.int64(lane_value(registers, c[bytecode.SRC1], l))
        limits = np.int64(lane_value(registers, c[bytecode.SRC2], l))
        lane, good = source_lane(mode, l, b, limits)
        inside |= np.int64(good) << l
        if c[bytecode.DST0] >= 0:
            set_lane_value(registers, c[bytecode.DST0], l, lane_value(values, 0, lane))
    if c[bytecode.SRC4] >= 0:
        set_mask(predicates, c[bytecode.SRC4], m, inside)
    return True


def _fast_shfl(instr, args: tuple) -> dict | None:  # type: ignore[return]  # None for other operands
    target, chosen = args[0] if isinstance(args[0], tuple) else (args[0], None)
    match (target, *args[1:]):
        case (int(), int(source), int(b), int(limits), int(members)):
            slots = {"dst0": target, "src0": source, "src1": b, "src2": limits, "src3": members}
            predicate = chosen.code >> 1 if isinstance(chosen, PredArg) else -1
            return slots | {"src4": predicate, "imm": _SHUFFLES[instr.mods[1]]}


@unit(
    "shfl.sync .mode.b32 d|p, a, b, c, mask",
    mode="up down bfly idx",
    writes=(0,),
    section="9.7.9.6",
    fast=FastForm(_fast_shfl, each="shuffle_warp", unheard=True),
)
def shfl(instr):
    mode = _SHUFFLES[instr.mods[1]]

    def act(cluster: Cluster, split: Split, args, present: int, values: np.ndarray) -> None:
        if cluster.choices.absent:
            values = np.where(present >> _LANES & 1, values, np.uint64(UNSET))
        target, chosen = args[0] if isinstance(args[0], tuple) else (args[0], None)
        b, limits = (cluster.read(split, slot).tolist() for slot in args[2:4])
        sources = [source_lane.py_func(mode, l, b[l], limits[l]) for l in range(32)]
        taken = values[[lane for lane, _ in sources]]
        cluster.write(split, target, (taken & np.uint64(0xFFFF_FFFF))[split.lanes])
        if chosen is not None and chosen != -1:
            cluster.set_predicate(split, chosen.code, sum(good << l for l, (_, good) in enumerate(sources)))

    return together(act)


@inner
def voted(mode, yes, present):
    """The result of vote.sync.all, any or uni (PTX ISA 9.7.13.8). yes: mask of true lanes among `present`."""
    all_or_uni = mode != ANY and yes == present
    return all_or_uni or (mode == ANY and yes != 0) or (mode == UNI and yes == 0)


@inner
def vote_of_warp(c, m, registers, predicates, rank, control):
    """vote.sync of a whole warp."""
    if not whole_warp(c, m, registers):
        return False
    mode, yes = c[bytecode.IMM], mask_of(predicates, c[bytecode.SRC0]) & bytecode.FULL
    if mode == BALLOT:
        for l in range(32):
            set_lane_value(registers, c[bytecode.DST0], l, np.uint64(yes))
        return True
    set_mask(predicates, c[bytecode.DST0], m, bytecode.FULL if voted(mode, yes, bytecode.FULL) else 0)
    return True


def _fast_vote(instr, args: tuple) -> dict | None:  # type: ignore[return]  # None for other operands
    match args:
        case (PredArg(target), PredArg(source), int(members)):
            target >>= 1
        case (int(target), PredArg(source), int(members)) if target >= 0:
            pass
        case _:
            return None
    return {"dst0": target, "src0": source, "src3": members, "imm": _VOTES[instr.mods[1]]}


@unit(
    "vote.sync .mode.pred p, a, mask",
    "vote.sync .ballot.b32 d, a, mask",
    mode="all any uni",
    writes=(0,),
    section="9.7.13.8",
    fast=FastForm(_fast_vote, each="vote_of_warp", unheard=True),
)
def vote(instr):
    mode = _VOTES[instr.mods[1]]

    def true(cluster: Cluster, split: Split, args) -> np.ndarray:
        return ((cluster.predicate(split, args[1].code) >> _LANES) & 1).astype(np.uint64)

    def act(cluster: Cluster, split: Split, args, present: int, values: np.ndarray) -> None:
        yes = int((values << _LANES.astype(np.uint64)).sum()) & present
        if mode == BALLOT:
            cluster.write(split, args[0], np.uint64(yes))
            return
        outcome = voted.py_func(mode, yes, present)
        cluster.set_predicate(split, args[0].code, 0xFFFF_FFFF if outcome else 0)

    return together(act, true)
