"""shfl and vote: what the lanes of a warp hold goes to all of them (PTX ISA 9.7.9.6, 9.7.13.8)."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M32
from ptxsim.isa.operands import PredArg
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
    """Whether all lanes are here, and named in the mask of members, which stands in SRC3."""
    members = lane_value(registers, c[bytecode.SRC3], 0)
    return m == bytecode.FULL and members & M32 == M32 and same_in_all(registers, c[bytecode.SRC3], m)


@inner
def shuffle_warp(c, m, registers, predicates, rank, control):
    """shfl.sync by a whole warp."""
    if not whole_warp(c, m, registers):
        return False
    mode, values, inside = c[bytecode.IMM], room_for_lanes(), np.int64(0)
    for l in range(32):
        set_lane_value(values, 0, l, lane_value(registers, c[bytecode.SRC0], l) & M32)
    for l in range(32):
        b = np.int64(lane_value(registers, c[bytecode.SRC1], l)) & 0x1F
        limits = np.int64(lane_value(registers, c[bytecode.SRC2], l))
        segment = (limits >> 8) & 0x1F
        end = (l & segment) | (limits & ~segment & 0x1F)
        if mode == UP:
            lane = l - b
        elif mode == DOWN:
            lane = l + b
        elif mode == BFLY:
            lane = l ^ b
        else:
            lane = (l & segment) | (b & ~segment & 0x1F)
        good = lane >= end if mode == UP else lane <= end
        inside |= np.int64(good) << l
        if c[bytecode.DST0] >= 0:
            set_lane_value(registers, c[bytecode.DST0], l, lane_value(values, 0, lane if good else l))
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


def _source_lane(mode: str, b: np.ndarray, c: np.ndarray):
    """(source lane, in range?) of shfl for each lane (PTX ISA 9.7.9.6)."""
    bval, cval, segment = b & 0x1F, c & 0x1F, (c >> 8) & 0x1F
    max_lane = (_LANES & segment) | (cval & ~segment & 0x1F)
    min_lane = _LANES & segment
    if mode == "up":
        lane = _LANES - bval
        good = lane >= max_lane
    elif mode == "down":
        lane = _LANES + bval
        good = lane <= max_lane
    elif mode == "bfly":
        lane = _LANES ^ bval
        good = lane <= max_lane
    else:
        lane = min_lane | (bval & ~segment & 0x1F)
        good = lane <= max_lane
    return np.where(good, lane, _LANES), good


@unit(
    "shfl.sync .mode.b32 d|p, a, b, c, mask",
    mode="up down bfly idx",
    writes=(0,),
    section="9.7.9.6",
    fast=FastForm(_fast_shfl, each="shuffle_warp", unheard=True),
)
def shfl(instr):
    mode = instr.mods[1]

    def act(cluster: Cluster, split: Split, args, _, values: np.ndarray) -> None:
        target, chosen = args[0] if isinstance(args[0], tuple) else (args[0], None)
        b, c = (cluster.read(split, slot).astype(np.int64) for slot in args[2:4])
        lane, good = _source_lane(mode, b, c)
        cluster.write(split, target, (values[lane] & np.uint64(0xFFFF_FFFF))[split.lanes])
        if chosen is not None and chosen != -1:
            cluster.set_predicate(split, chosen.code, int((good.astype(np.int64) << _LANES).sum()))

    return together(act)


@inner
def vote_of_warp(c, m, registers, predicates, rank, control):
    """vote.sync by a whole warp."""
    if not whole_warp(c, m, registers):
        return False
    mode, yes = c[bytecode.IMM], mask_of(predicates, c[bytecode.SRC0]) & bytecode.FULL
    if mode == BALLOT:
        for l in range(32):
            set_lane_value(registers, c[bytecode.DST0], l, np.uint64(yes))
        return True
    outcome = (
        (mode != ANY and yes == bytecode.FULL) or (mode == ANY and yes != 0) or (mode == UNI and yes == 0)
    )
    set_mask(predicates, c[bytecode.DST0], m, bytecode.FULL if outcome else 0)
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
    mode = instr.mods[1]

    def true(cluster: Cluster, split: Split, args) -> np.ndarray:
        return ((cluster.predicate(split, args[1].code) >> _LANES) & 1).astype(np.uint64)

    def act(cluster: Cluster, split: Split, args, present: int, values: np.ndarray) -> None:
        yes = int((values << _LANES.astype(np.uint64)).sum()) & present
        if mode == "ballot":
            cluster.write(split, args[0], np.uint64(yes))
            return
        outcome = {"all": yes == present, "any": yes != 0, "uni": yes in (0, present)}[mode]
        cluster.set_predicate(split, args[0].code, 0xFFFF_FFFF if outcome else 0)

    return together(act, true)
