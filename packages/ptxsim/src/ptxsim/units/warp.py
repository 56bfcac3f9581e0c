"""Instructions in which the lanes of a warp act together; clocks; calls of printf."""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.frontend.inline_calls import HEAP_FULL, MISALIGNED, NO_FUNCTION, TOO_DEEP
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M32
from ptxsim.isa.operands import UNSET, PredArg
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.intrinsics import column, lane_value, set_lane_value, set_mask
from ptxsim.jit.loop_batch import elected_lane as elected_of
from ptxsim.jit.loop_batch import lowest_lane, same_in_all
from ptxsim.jit.loop_memory import word
from ptxsim.machine.choices import elected_lane
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.forward_progress import become_one
from ptxsim.machine.split import BLOCK, Split, Wait, lane_list
from ptxsim.report.findings import lanes_text
from ptxsim.units import printf
from ptxsim.units.registry import FastForm, always, refuse, unit

_LANES = np.arange(32)


def require_aligned(
    cluster: Cluster, split: Split, leavers_count: bool = True, severity: str = "error"
) -> None:
    """Reports a violation of `.aligned`: all threads of the warp must execute the instruction together.

    Lanes that have left the kernel count as missing, too: in another order, they leave later and have not
    converged here. Barriers pass leavers_count=False: they count only the threads that are left (9.7.13.1).
    """
    whole = cluster.lanes_at_start(split.warp) if leavers_count else cluster.alive[split.warp]
    missing = whole & ~split.mask
    if missing:
        one = missing & (missing - 1) == 0
        lanes = f"lane {lanes_text(missing)}" if one else f"lanes {lanes_text(missing)}"
        message = f"{_called(split.instr)} is for the whole warp, but {lanes} of "
        message += f"{_warp_name(cluster, split.warp)} {'does' if one else 'do'} not take part"
        cluster.reporter.add(
            "collective",
            severity,
            message,
            CAUSES["aligned"],
            split,
            key="aligned",
            missing=(split.warp, missing, split.row),
        )


def _called(instr) -> str:
    """`bar.sync 0` for barrier 0 with all threads of the CTA, else the instruction's name."""
    whole = instr.op in ("bar", "barrier") and "sync" in instr.mods and len(instr.operands) == 1
    if whole and getattr(instr.operands[0], "bits", None) == 0:
        return "bar.sync 0"
    return f"{instr.op}.{instr.mods[0]}"


def _warp_name(cluster: Cluster, warp: int) -> str:
    """`warp 3`, or `WG1 warp 3` if the CTA has several warpgroups."""
    number, count = warp % cluster.warps_per_cta, cluster.warps_per_cta
    return f"WG{number // 4} warp {number % 4}" if count > 4 and count % 4 == 0 else f"warp {number}"


def require_set(cluster: Cluster, split: Split, slots) -> None:
    """Reports registers of a matrix operand that were not written. Checks only slots that some path from the
    kernel's entry leaves unwritten.
    """
    unset = cluster.launch.program.slots.unset
    missing = [
        s
        for s in slots
        if s in unset and (cluster.registers[split.warp, s] == UNSET & (1 << unset[s]) - 1).all()
    ]
    if missing:
        instr, registers = split.instr, cluster.launch.program.slots.registers
        name = next(n for n, s in registers.items() if s == missing[0])
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        message = f"{instr.op}.{instr.mods[0]} reads registers that were never written: {name}{more}"
        hint = (
            "write all registers of A and B; zero the accumulators, or do not add to them in the first K step"
        )
        cluster.reporter.add("uninitialized", "error", message, hint, split, key="unset")


def converge(cluster: Cluster, split: Split, members: int, payload: np.ndarray):
    """Lets the lanes of `members` meet at a .sync instruction.

    Returns (lanes present, their payload by lane), or None if the split must sleep until the others arrive.
    """
    named = members
    _require_member(cluster, split, members, split.mask)
    members &= cluster.alive[split.warp]
    if members & ~split.mask == 0:
        return split.mask & members, payload
    key = ("meet", split.warp, named, split.instr.name)
    done = cluster.unit_state.pop(("met", split.index, named), None)
    if done is not None:
        return done
    waiting = cluster.unit_state.setdefault(key, {})
    waiting[split.index] = (split.mask, payload.copy())
    present, combined = 0, np.zeros_like(payload)
    for mask, values in waiting.values():
        lanes = lane_list(mask)
        combined[..., lanes] = values[..., lanes]
        present |= mask
    if members & ~present:
        cluster.wait(split, Wait("collective", key, {"members": members, "present": present}))
        return None
    del cluster.unit_state[key]
    for other in waiting:
        if other != split.index:
            cluster.unit_state[("met", other, named)] = (present & members, combined)
    cluster.wake(key)
    return present & members, combined


def _require_member(cluster: Cluster, split: Split, members: int, lanes: int) -> None:
    """Reports lanes that execute an instruction with a member mask that leaves themselves out."""
    outside = lanes & ~members
    if outside:
        name = f"{split.instr.name.partition('.sync')[0]}.sync"
        one = outside & (outside - 1) == 0
        who = f"lane {lanes_text(outside)} executes" if one else f"lanes {lanes_text(outside)} execute"
        message = f"{who} {name} with mask {members:#010x}, which leaves {'it' if one else 'them'} out"
        hint = "the mask must have a bit for every lane that takes part"
        cluster.reporter.add("collective", "error", message, hint, split, key="member")


def member_mask(cluster: Cluster, split: Split, slot: int) -> int:
    return cluster.scalar(split, slot) & 0xFFFF_FFFF


def by_group(run):
    """Wraps a handler for one member mask, so that lanes with different masks, like the tiles of a warp, act
    group by group. The mask is the last operand.
    """

    def grouped(cluster: Cluster, split: Split, args):
        masks = cluster.read(split, args[-1])[split.lanes] & np.uint64(0xFFFF_FFFF)
        if len(set(masks.tolist())) == 1:
            return run(cluster, split, args)
        whole = split.mask
        groups = {int(m): sum(1 << int(k) for k in split.lanes[masks == m]) for m in np.unique(masks)}
        for members, there in groups.items():
            _require_member(cluster, split, members, there)
        if any(there & ~members for members, there in groups.items()):
            return run(cluster, split, args)  # undefined behaviour, already reported: continues with one mask
        outcome = _each(cluster, split, groups, lambda: run(cluster, split, args))
        split.mask = whole
        return outcome

    return grouped


def _each(cluster: Cluster, split: Split, groups: dict[int, int], run) -> str | None:
    """Runs each group (mask -> its lanes here) once all its lanes have arrived; sleeps while any is missing.

    All groups arrive at once, in the order of their masks: lanes that one group waits for may themselves wait
    for another group.
    """
    acted = cluster.unit_state.setdefault(("acted", split.index), set())
    missing = []
    for members in sorted(groups.keys() - acted):
        split.mask = groups[members]
        if run() is BLOCK:
            wait = cluster.waits.pop(split.index)
            cluster.waiting[wait.key].remove(split.index)
            missing.append(wait)
        else:
            acted.add(members)
    if missing:
        return cluster.wait(split, missing[0])
    del cluster.unit_state["acted", split.index]
    return None


def _own(cluster: Cluster, split: Split, args) -> np.ndarray:
    return cluster.read(split, args[1])


def together(act, payload=_own):
    """A handler that waits until all lanes of the mask, the last operand, have arrived with their payload;
    act(cluster, split, args, lanes present, payload by lane) then does the work of the split.
    """

    @by_group
    def run(cluster: Cluster, split: Split, args):
        met = converge(cluster, split, member_mask(cluster, split, args[-1]), payload(cluster, split, args))
        if met is None:
            return BLOCK
        act(cluster, split, args, *met)
        return None

    return run


@inner
def elect_members(c, m, registers, predicates, rank, control):
    """elect.sync whose member mask is exactly the lanes that execute it (PTX ISA 9.7.13.14)."""
    leader = lowest_lane(m)
    members = np.int64(lane_value(registers, c[bytecode.SRC0], leader)) & bytecode.FULL
    if members != m or not same_in_all(registers, c[bytecode.SRC0], m):
        return False
    chosen = elected_of(m, word(control, bytecode.ELECTED))
    if c[bytecode.DST0] >= 0:
        for l in range(32):
            if (m >> l) & 1:
                set_lane_value(registers, c[bytecode.DST0], l, np.uint64(chosen))
    set_mask(predicates, c[bytecode.SRC1], m, 1 << chosen)
    return True


def _fast_elect(instr, args: tuple) -> dict | None:  # type: ignore[return]  # None for other operands
    match args:
        case ((int(target), PredArg(code)), int(members)):
            return {"dst0": target, "src0": members, "src1": code >> 1}


@unit(
    "elect.sync d|p, mask",
    writes=(0,),
    section="9.7.13.14",
    fast=FastForm(_fast_elect, each="elect_members", unheard=True),
)
@always
@together
def elect(cluster: Cluster, split: Split, args, present: int, _) -> None:
    target, chosen = args[0]
    lane = elected_lane(present, cluster.choices.elected) if present else -1
    cluster.write(split, target, np.uint64(max(lane, 0)))
    cluster.set_predicate(split, chosen.code, 1 << lane if lane >= 0 else 0)


@unit(
    "match.any.sync .type d, a, mask",
    "match.all.sync .type d|p, a, mask",
    type="b32 b64",
    writes=(0,),
    section="9.7.13.10",
)
def match(instr):
    every, bits = instr.mods[0] == "all", instr.mods[-1]

    def act(cluster: Cluster, split: Split, args, present: int, values: np.ndarray) -> None:
        target = args[0]
        values = values & np.uint64(0xFFFF_FFFF) if bits == "b32" else values
        lanes: list[int] = lane_list(present).tolist()
        groups = {v: sum(1 << k for k in lanes if values[k] == v) for v in {values[k] for k in lanes}}
        if every:
            slot, chosen = target if isinstance(target, tuple) else (target, None)
            same = len(groups) == 1
            cluster.write(split, slot, np.uint64(present if same else 0))
            if chosen:
                cluster.set_predicate(split, chosen.code, 0xFFFF_FFFF if same else 0)
            return
        cluster.write(split, target, np.array([groups[values[k]] for k in split.lanes], np.uint64))

    return together(act)


@unit("activemask .b32 d", writes=(0,), section="9.7.13.11")
@always
def activemask(cluster: Cluster, split: Split, args):
    cluster.write(split, args[0], np.uint64(split.mask))


@called
def nothing_to_do(row, m, warp, registers, predicates, control):
    """A whole warp meets, or waits for work that is done: work completes at once, and nothing is pending."""
    mask = column(row, bytecode.CALLED_BLOCK)
    if m != bytecode.FULL or not word(control, bytecode.EAGER) or word(control, bytecode.MARKED):
        return 0
    slot = word(mask, 0)
    return int(slot < 0 or _all_members(registers, slot))


@inner
def _all_members(registers, slot):
    return lane_value(registers, slot, 0) & M32 == M32 and same_in_all(registers, slot, bytecode.FULL)


WHOLE_WARP_DONE = FastForm(lambda instr, args, unset: ParameterBlock(-1), called=nothing_to_do)
_WHOLE_WARP_MEETS = FastForm(lambda instr, args, unset: ParameterBlock(args[0]), called=nothing_to_do)


@unit("bar.warp.sync mask", section="9.7.13.2", fast=_WHOLE_WARP_MEETS)
@always
@by_group
def warp_sync(cluster: Cluster, split: Split, args):
    members = member_mask(cluster, split, args[0])
    if split.mask == split.full_mask and become_one(
        cluster, split, ("meet", split.warp, members, split.instr.name)
    ):
        return BLOCK
    met = converge(cluster, split, members, np.zeros(32, np.uint64))
    if met is None:
        return BLOCK
    if members:
        cluster.bus.warp_sync(cluster, split, members)
    return None


@unit("mov .type d, c", name="clock", type="u32 u64 b32 b64 s32 s64", writes=(0,), section="10.22 - 10.29")
def clock(instr):
    """`mov` from a clock. The simulator has no time: clocks count the instructions of the cluster, and never
    decrease.
    """
    high = instr.operands[1].name.endswith("_hi")

    def run(cluster: Cluster, split: Split, args):
        cluster.write(split, args[0], np.uint64(cluster.executed() >> 32 if high else cluster.executed()))

    return run


@unit("call {.uni} ..", section="9.7.12.5")
def call(instr):
    names = [o.name for o in instr.operands if hasattr(o, "name")]
    if "vprintf" in names:
        return _vprintf
    if "__assertfail" in names:
        return _assert_fail
    if names and names[0] in _ENDS:
        return functools.partial(_end, _ENDS[names[0]], "".join(names[1:]))
    raise refuse(instr, f"call of {names[0] if names else 'an address'} is not modelled")


def _vprintf(cluster: Cluster, split: Split, args):
    format_arg, values_arg = args[-1]
    for lane in split.lanes:
        if len(cluster.reporter.printed) < printf.MOST_LINES:
            cluster.reporter.printed.append(printf.render(cluster, split, int(lane), format_arg, values_arg))
    if isinstance(args[0], tuple):
        printf.give_back(cluster, split, format_arg, *args[0])


_ENDS = {  # of threads that cannot go on: kind, severity, message, hint
    NO_FUNCTION: (
        "illegal", "error",
        "a call through a register that holds the address of no function with this prototype",
        "is the pointer set, and by device code? On the host, a function has another address",
    ),
    TOO_DEEP: ("unsupported", "incomplete", "deeper recursion is not modelled: ", ""),
    HEAP_FULL: (
        "unsupported", "incomplete", "the heap is used up; to use freed memory again is not modelled", "",
    ),
    MISALIGNED: (
        "misaligned", "error", "a store of 32 bytes to an address that is not a multiple of 32", "",
    ),
}  # fmt: skip


def _end(what: tuple[str, str, str, str], name: str, cluster: Cluster, split: Split, args):
    kind, severity, message, hint = what
    cluster.reporter.add(kind, severity, message + name, hint, split, kills=True)
    return cluster.wait(split, Wait("trap", ("trap", split.index)))


def _assert_fail(cluster: Cluster, split: Split, args):
    cluster.reporter.add("illegal", "error", "an assertion of the kernel failed", split=split)
