"""The facts that a picture of a kernel shows: agents, barriers and counts, shared memory, TMEM columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ptxsim.tracing import LOADS, STORES, TENSOR, Event, Timeline
from tirxlab.artifact import Artifact, TensorMapParam

_INIT = re.compile(r"mbarrier_init\(\(&\(\(\(uint64_t\*\)pool_buf_ptr\)\[(\d+)\]\)\), (\d+)\)")
_PART = re.compile(r"(\w[\w ]*?)(?:\[\d+\])?(?: of CTA (\d+))?$")
_MMA = re.compile(r"MMA (\d+)x(\d+) to column (\d+)")


@dataclass(frozen=True)
class Agent:
    """A column of the picture: warps with the same role, or a hardware unit of a CTA."""

    cta: int
    name: str  # "WG1 warp 3", "TMA loads"
    roles: tuple[str, ...] = ()


@dataclass
class Barrier:
    """All slots of one barrier array of one CTA, or a barrier of threads."""

    name: str  # "tma2mma"
    cta: int
    slots: int = 1
    init: int | None = None  # arrivals per phase; None for barriers of threads
    bytes: int = 0  # that TMA brings per phase
    # agent that helps to complete it -> "arrives", "bytes" or "commit"
    signals: dict[Agent, str] = field(default_factory=dict)
    waiters: list[Agent] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A named range of dynamic shared memory."""

    name: str
    offset: int  # bytes
    size: int
    parts: int  # equal parts that are drawn separately: stages, consumers
    swizzle: int  # bytes, in the tensor map that moves it; 0 if none does


@dataclass(frozen=True)
class Columns:
    """Columns of tensor memory that MMAs of one issuer write."""

    cta: int
    first: int
    count: int
    issuer: Agent


@dataclass
class Structure:
    """Everything that `draw` needs."""

    agents: list[Agent]
    barriers: list[Barrier]
    memory: list[Block]
    columns: list[Columns]
    shared_bytes: int


def structure(artifact: Artifact, timeline: Timeline) -> Structure:
    """The facts of the first cluster of a recorded run."""
    agents = agents_of(timeline)
    return Structure(
        list(dict.fromkeys(agents.values())),
        barriers_of(artifact, timeline, agents),
        memory_of(artifact, timeline),
        columns_of(timeline, agents),
        artifact.shared_bytes,
    )


def agents_of(timeline: Timeline) -> dict[tuple[int, str], Agent]:
    """(cta, lane) -> its agent, in the timeline's order; a warpgroup's write-back warps are one agent."""
    groups: dict[tuple, list] = {}
    for lane in timeline.lanes:
        unit = lane.lane in (LOADS, STORES, TENSOR)
        if unit or lane.roles:
            title = re.sub(r"^CTA \d+ ", "", lane.title).split(" (")[0]
            group = title if unit else (title.partition("warp ")[0], lane.roles)
            alone = lane.roles and set(lane.roles) != {"write-back"}
            groups.setdefault((lane.cta, title if alone else group), []).append((lane, title))
    found = {}
    for (cta, _), members in groups.items():
        titles = [title for _, title in members]
        name = titles[0] if len(titles) == 1 else merged(titles)
        for lane, _ in members:
            found[cta, lane.lane] = Agent(cta, name, lane.roles)
    return found


def merged(titles: list[str]) -> str:
    """["WG0 warp 0", .. "WG0 warp 3"] -> "WG0"; ["warp 1", "warp 3"] -> "warps 1-3"."""
    group = titles[0].partition("warp ")[0]
    numbers = [int(title.rpartition(" ")[2]) for title in titles]
    if group and len(numbers) == 4:
        return group.strip()
    return f"{group}warps {numbers[0]}-{numbers[-1]}"


def barriers_of(artifact: Artifact, timeline: Timeline, agents: dict) -> list[Barrier]:
    """Every barrier that completes a phase: who signals it, who waits for it; in order of first use."""
    inits = init_counts(artifact)
    slots = {n.name: n.size // 8 for n in artifact.names if n.dtype == "uint64"}
    found: dict[tuple[int, str], Barrier] = {}
    for phase in (e for e in timeline.events if e.kind == "phase"):
        name, cta = split(phase.name, phase.cta)
        barrier = found.setdefault((cta, name), Barrier(name, cta, slots.get(name, 1), inits.get(name)))
        before = [timeline.events[number] for number in phase.after]
        barrier.bytes = max(barrier.bytes, sum(e.amount for e in before if e.kind == "load"))
        for signal in before:
            who = agents.get((signal.cta, signal.lane))
            if who:
                barrier.signals.setdefault(who, how(signal))
    for wait in (e for e in timeline.events if e.kind in ("wait", "stuck")):
        who, one = agents.get((wait.cta, wait.lane)), awaited(timeline, wait, found)
        if one and who and who not in one.waiters:
            one.waiters.append(who)
    return [barrier for barrier in found.values() if barrier.signals]


def awaited(timeline: Timeline, wait: Event, barriers: dict[tuple[int, str], Barrier]) -> Barrier | None:
    """The barrier that an event waits for: that of the phase it waited for, else the one in its name."""
    events = [timeline.events[number] for number in wait.after]
    event = next((e for e in events if e.kind == "phase"), wait)
    name, cta = split(event.name, event.cta)
    return barriers.get((cta, name))


def split(name: str, cta: int) -> tuple[str, int]:
    """`tma2mma[1] of CTA 0` -> ("tma2mma", 0); a name without a CTA belongs to the one given."""
    match = _PART.match(name)
    return (match[1], int(match[2] or cta)) if match else (name, cta)


def how(signal: Event) -> str:
    """What an event does to the barrier that it helps to complete."""
    return {"load": "bytes", "commit": "commit"}.get(signal.kind, "arrives")


def init_counts(artifact: Artifact) -> dict[str, int]:
    """Barrier array -> the count with which the generated CUDA initialises it."""
    at = {int(word) * 8: int(count) for word, count in _INIT.findall(artifact.cuda)}
    named = [n for n in artifact.names if n.dtype == "uint64"]
    return {n.name: count for n in named for offset, count in at.items() if n.offset == offset}


def memory_of(artifact: Artifact, timeline: Timeline) -> list[Block]:
    """The named ranges, by offset, with the swizzles of the tensor maps that move them in the record."""
    swizzles = {p.buffer: p.swizzle for p in artifact.params if isinstance(p, TensorMapParam)}
    moved: dict[str, int] = {}
    for event in timeline.events:
        if event.kind in ("load", "store"):
            ends = [part.split(",")[0] for part in event.name.split(" to ")]
            for one, other in (ends, ends[::-1]):
                if one in swizzles:
                    moved[other] = swizzles[one]
    blocks = [
        Block(n.name, n.offset, n.size, n.shape[0] if len(n.shape) > 2 else 1, moved.get(n.name, 0))
        for n in artifact.names
    ]
    return sorted(blocks, key=lambda block: block.offset)


def columns_of(timeline: Timeline, agents: dict) -> list[Columns]:
    """The columns that MMAs write, with their issuers, each once."""
    found: dict[Columns, None] = {}
    for event in timeline.events:
        match = _MMA.match(event.name) if event.kind == "mma" else None
        issuers = [timeline.events[n] for n in event.after]
        issuer = next((agents.get((e.cta, e.lane)) for e in issuers if e.lane.startswith("warp")), None)
        if match and issuer:
            found[Columns(event.cta, int(match[3]), int(match[2]), issuer)] = None
    return list(found)
