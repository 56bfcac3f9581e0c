"""The word of memory that threads poll: its name, what it holds, who wrote it, and which CTAs never did."""

from __future__ import annotations

from typing import NamedTuple

from ptxsim.checks.phrases import some_of
from ptxsim.checks.race.across_processes import detector
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.shadow_bytes import PAGE, PAGE_BITS, TAGS, WRITE, bits_of
from ptxsim.checks.race.shadow_order import AGENT_SHIFT, ROW_MASK
from ptxsim.checks.race.shadow_own import TAG_MASK
from ptxsim.checks.race.wording import elsewhere, line_text, thread_of
from ptxsim.events.views import Cluster
from ptxsim.frontend.ast import Mem
from ptxsim.isa.address_map import SHARED_BASE, is_shared, shared_place
from ptxsim.isa.memory_access import LOOKS, ordering
from ptxsim.isa.operands import type_bits
from ptxsim.machine.endless import loop_around
from ptxsim.report.findings import Reporter

_OWN = {"local", "param", "const"}


class Polled(NamedTuple):
    name: str
    state: str  # "it holds 3, which thread 0 wrote last (line 12)"
    row: int  # that reads it
    writers: set[int]  # rows outside of the loop that may write it
    by: int  # the warp that wrote it last; -1: not known, or of another cluster
    lock: bool  # whether it is asked by compare-and-swap or exchange: who holds it should write it


def polled(cluster: Cluster, reporter: Reporter, warp: int, lane: int, at: int) -> Polled | None:
    """What the loop around row `at` asks for, if that is a word of global or shared memory."""
    instrs, slots = cluster.program.instrs, cluster.program.slots
    loop = range(*loop_around(cluster.program, at, at))
    asks = [row for row in loop if _asks(instrs[row])]
    if not asks:
        return None
    row = max(asks, key=lambda r: instrs[r].op == "atom" or bool(LOOKS & set(instrs[r].mods)))
    instr, size = instrs[row], type_bits(instrs[row].mods[-1]) // 8
    slot, offset = slots.address(instr.operands[1])
    address = (int(cluster.registers[warp, slot, lane]) + offset) & (1 << 64) - 1
    if near := any(mod.startswith("shared") for mod in instr.mods) or bool(is_shared(address)):
        rank, offset = shared_place(address)
        name = reporter.shared_name(offset) + f" of CTA {rank}" * (cluster.ctas > 1)
        held = cluster.shared[rank, offset:] if rank < cluster.ctas else None
        address |= SHARED_BASE
    else:
        memory = cluster.launch.memory
        name, held = memory.describe(address), memory.view(address, size)
    if held is None:
        return None
    told, last, by = _written(detector(cluster.bus), address)
    value = int.from_bytes(held[:size].tobytes(), "little")
    rows = {r for r, i in enumerate(instrs) if r not in loop and _writes(i, near)}
    strong = {r for r in rows if ordering(instrs[r]).strong}
    lock = instr.op == "atom" and bool({"cas", "exch"} & set(instr.mods))
    if lock and last == {row}:  # perhaps by an exchange that failed
        told, last = "", set()
    return Polled(name, f"it holds {value}{told}", row, (strong or rows) | last, by, lock)


def _asks(instr) -> bool:
    if instr is None or instr.op not in ("ld", "atom") or not isinstance(instr.operands[1], Mem):
        return False
    return not _OWN & {mod.partition("::")[0] for mod in instr.mods}


def _writes(instr, near: bool) -> bool:
    """Whether an instruction may write to shared memory (near) or to global memory."""
    other = ("global" if near else "shared", "local")
    return ordering(instr).writes and not any(mod.startswith(other) for mod in instr.mods)


def _written(races: RaceDetector | None, address: int) -> tuple[str, set[int], int]:
    """(`, which thread 0 wrote last (line 12)`, its row, `Polled.by`), as far as it is known."""
    if races is None:
        return "", set(), -1
    history, near = races.history, is_shared(address)
    rank, offset = shared_place(address)
    shadow = history.shared if near else history.memory
    position = rank * history.window + offset if near else history.reads.place_of(address)
    page = position >> PAGE_BITS
    bits = bits_of.py_func(int(shadow.level[page]))
    slot = shadow.start[page] + (position % PAGE >> bits)
    last, tags = shadow.records[shadow.region[slot], [WRITE, TAGS]].tolist() if slot >= 0 else (0, 0)
    if not last:
        return "; nobody has written it", set(), -1
    agent, row, tag = last >> AGENT_SHIFT, last & ROW_MASK, tags & TAG_MASK
    who, by = ("a copy", -1) if agent >= races.clocks.threads else (thread_of(races, agent), agent)
    if not near and tag != history.now:
        who, by = elsewhere(races, tag - 1), -1
    told = f", which {who} wrote last{line_text(races, row)}{_absent(races, address)}"
    return told, {row}, by if by < 0 else races.clocks.warp_of(by)


def _absent(races: RaceDetector, address: int) -> str:
    """The clusters that have never written a word (by atomics or strong stores), or else those that have
    ended, if they are few.
    """
    wrote = races.history.others.flags.get(address, {})
    tags = range(1, len(races.history.others.latest) - 1)
    absent = [elsewhere(races, tag - 1) for tag in tags if tag not in wrote]
    beside = [history.races.cluster for history in races.history.together]
    ended = [elsewhere(races, one.index) for one in beside if not any(one.alive)]
    for some, verb in (absent, "never written it"), (ended, "ended"):
        if 0 < len(some) <= len(tags) // 2:
            return f"; {some_of(some)} {'has' if len(some) == 1 else 'have'} {verb}"
    return ""
