"""How race reports name accesses, threads and places."""

from __future__ import annotations

from ptxsim.checks import phrases
from ptxsim.checks.phrases import load_unit, source_line
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.shadow_bytes import MEMORY, SHARED
from ptxsim.checks.race.shadow_tmem import place_of
from ptxsim.machine.tensor_map import MAP_BYTES

COPIES = ("bytes", "source", "result")
SHOWN = 8  # threads that a message names at most
UNITS = {
    "bytes": "TMA load",
    "source": "TMA store",
    "result": "TMA store",
    "mma": "tensor core (tcgen05.mma)",
    "ld": "tcgen05.ld",
    "st": "tcgen05.st",
    "wgmma": "tensor core (wgmma)",
    "cp.async": "cp.async",
}


def text_of(races, access: Access, name_issuer: bool = False) -> str:
    """`the write by TMA store of D at (0, 0) (line 12)`."""
    row, line = instr_of(races, access.row), line_text(races, access.row)
    if access.kind == "thread":
        what = row.mods[:1] if row is not None else ()
        verb = "dealloc" if what == ("dealloc",) else access.verb
        unit = "tcgen05.alloc of " if what == ("alloc",) else ""
        return f"the {verb} by {unit}{thread_of(races, access.agent)}{line}"
    if access.kind == "other":
        return f"the {access.verb} by {elsewhere(races, access.cluster - 1)}{line}"
    if access.kind == "mma" and row is not None and row.mods[0] != "mma":
        return f"the {access.verb} by {row.op}.{row.mods[0]}{line}"
    by = f", issued by {thread_of(races, access.by)}" if name_issuer and access.by is not None else ""
    unit = load_unit(row) if access.kind == "bytes" and row is not None else UNITS[access.kind]
    return f"the {access.verb} by {unit}{access.detail}{by}{line}"


def elsewhere(races, cluster: int) -> str:
    """A cluster of the grid, or its CTA (as blockIdx) if clusters have only one."""
    if races.cluster.ctas == 1:
        return f"CTA {races.launch.cluster_cta_ids(cluster)[0]}"
    return f"cluster {cluster}"


def line_text(races, row: int) -> str:
    """` (line 12)`."""
    known = instr_of(races, row) is not None
    return f" ({source_line(races.launch.program, row)})" if known else ""


def work_of(races, row: int) -> str:
    """What a tensor core does: `MMA`, or `tcgen05.cp`."""
    instr = instr_of(races, row)
    return "MMA" if instr is None or instr.mods[0] == "mma" else f"{instr.op}.{instr.mods[0]}"


def barrier_of(races, place: tuple[int, int]) -> str:
    """`full[1] of CTA 0`; the CTA only if the cluster has several."""
    name = races.reporter.shared_name(place[1])
    return f"{name} of CTA {place[0]}" if races.cluster.ctas > 1 else name


def thread_of(races, agent: int) -> str:
    cta, inside = divmod(agent, races.clocks.per_cta)
    if races.clocks.threads_per_agent > 1:
        return f"warp {inside} of CTA {cta}"
    owner = f" of CTA {cta}" if races.cluster.ctas > 1 else ""
    return f"thread {inside}{owner}"


def threads_of(races, agents: list[int]) -> str:
    """`threads 0, 32 and 64`: agents of one CTA."""
    names = [str(agent % races.clocks.per_cta) for agent in agents[:SHOWN]]
    names = [*names, f"{len(agents) - SHOWN} more"] if len(agents) > SHOWN else names
    unit = "warps" if races.clocks.threads_per_agent > 1 else "threads"
    owner = f" of CTA {agents[0] // races.clocks.per_cta}" if races.cluster.ctas > 1 else ""
    return f"{unit} {', '.join(names[:-1])} and {names[-1]}{owner}"


def side_of(races, access: Access) -> dict:
    row = instr_of(races, access.row)
    side = {"what": text_of(races, access), "kind": access.kind, "verb": access.verb}
    if row is not None:
        side |= {"line": row.src, "ptx_line": row.line, "ptx": row.text}
    return side


def instr_of(races, row: int):
    return races.launch.program.instrs[row]


def line_of(races, row: int) -> phrases.SourceLine:
    instr = instr_of(races, row)
    return phrases.line_of(races.launch.program, row) if instr is not None else ("", row)


def coordinates(races, access: Access, space: str, position: int) -> str:
    """For a copy: its box or its source, or that the place is in the tensor map that it reads."""
    if access.kind not in COPIES:
        return ""
    op = races.transfers.find(access.agent, access.epoch, access.row)
    if op is None or op.copy is None:
        return ""
    tensor, reads = op.copy.tensor, races.history.reads
    if space == MEMORY and tensor.at and 0 <= position - reads.place_of(tensor.at) < MAP_BYTES:
        return " of its tensor map"
    source = op.copy.source
    if not tensor.array.size:  # no global memory: within a cluster, or from registers
        return f" of {place_of_conflict(races, SHARED, _position(races, source))[0]}" if source else ""
    outside = f", outside of {tensor.name or 'its tensor'}" if tensor.misses(op.copy.start) else ""
    return f" of {tensor.box_text(op.copy.start)}{outside}"


def _position(races, span) -> int:
    return span.rank * races.history.window + span.first


def place_of_conflict(races, space: str, position: int) -> tuple[str, str, int]:
    """(name of the place, name of its buffer, CTA rank)."""
    if space == "tmem":
        rank, lane, column = place_of(position)
        where = f" of CTA {rank}" if races.cluster.ctas > 1 else ""
        return f"tensor memory{where}, column {column}, lane {lane}", "tensor memory", rank
    if space == SHARED:
        rank, offset = divmod(position, races.history.window)
        name = races.reporter.shared_name(offset)
        where = f" of CTA {rank}" if races.cluster.ctas > 1 else ""
        return name + where, name.split(" + ")[0], rank
    for base, end, start, _ in races.history.reads.segments.tolist():
        if start <= position < start + end - base:
            name = races.launch.memory.describe(base + position - start)
            return name, name.split(" + ")[0], 0
    return "global memory", "global memory", 0
