"""setmaxnreg: moves registers from a warp to its CTA's pool and back (PTX ISA 9.7.19.5).

inc waits until the pool has enough registers. At launch the warps hold all registers, and the pool is empty.
.maxnreg then gives the number of registers of a thread; without it, .maxntid and .minnctapersm give an upper
bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split, Wait
from ptxsim.units.registry import unit
from ptxsim.units.warp import require_aligned

SM_REGISTERS, MOST = 65536, 256  # registers of an SM; limit per thread
_SECTION = "9.7.19.5"
_DIRECTION = "dec gives registers back, inc asks for more: dec needs a smaller count, inc a larger one"


@dataclass
class Pool:
    """The register pool of one CTA."""

    at_launch: int | None  # registers of a thread at launch, at most; None: not known
    exact: bool  # at_launch is the exact number, not just a bound
    free: int = 0
    now: dict[int, int] = field(default_factory=dict)  # warp -> registers of its threads
    # warp -> (inc or dec, count, row)
    done: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)


def at_launch(launch) -> tuple[int | None, bool]:
    """(registers of a thread when the CTA starts, whether that is exact or only a bound)."""
    function = launch.program.function
    if function.registers:
        return function.registers, True
    if not function.largest_block:
        return None, False
    ctas = (function.directives.get("minnctapersm") or (1,))[0]
    return min(MOST, SM_REGISTERS // (math.prod(function.largest_block) * max(1, ctas)) // 8 * 8), False


def pool_of(cluster: Cluster, cta: int) -> Pool:
    key = ("registers", cta)
    if key not in cluster.unit_state:
        cluster.unit_state[key] = Pool(*at_launch(cluster.launch))
    return cluster.unit_state[key]


@unit(
    "setmaxnreg.inc .sync.aligned.u32 n",
    "setmaxnreg.dec .sync.aligned.u32 n",
    section=_SECTION,
    observer_only=True,
)
def setmaxnreg(instr):
    way = instr.mods[0]

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split, severity="review")  # on a chip any lane counts for its warp
        count, pool = cluster.scalar(split, args[0]), pool_of(cluster, split.cta)
        if not _allowed(cluster, split, way, count, pool):
            return None
        now = pool.now.get(split.warp, pool.at_launch)
        wanted = 32 * (count - now) if now is not None else 0
        if wanted > pool.free:
            detail = {"count": count, "now": now, "free": pool.free, "threads": cluster.threads_per_cta}
            return cluster.wait(split, Wait("registers", ("registers", split.cta), detail))
        pool.free -= wanted
        pool.now[split.warp] = count
        pool.done.setdefault(split.warp, []).append((way, count, split.row))
        cluster.wake(("registers", split.cta))
        return None

    return run


def _allowed(cluster: Cluster, split: Split, way: str, count: int, pool: Pool) -> bool:
    if count % 8 or not 24 <= count <= 256:
        message = f"setmaxnreg.{way} {count}: the count must be a multiple of 8 in 24..256"
        cluster.reporter.add("illegal", "error", message, "", split)
        return False
    known = pool.exact or split.warp in pool.now or way == "dec"  # for dec, an upper bound is enough
    now = pool.now.get(split.warp, pool.at_launch)
    if now is None or not known or (count <= now if way == "dec" else count >= now):
        return True
    message = (
        f"setmaxnreg.{way} {count} in a warp that has {'at most ' * (not pool.exact)}{now} registers a thread"
    )
    cluster.reporter.add("illegal", "error", message, _DIRECTION, split)
    return False
