"""The constants of a chip, each with its unit and source: one TOML file per chip in this folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Chip:
    """Cycles are SM cycles; rates of the chip are bytes per second. The TOML files describe each constant."""

    name: str
    arch: str
    sms: float
    clock: float  # GHz under tensor load, before power limits
    clock_sync: float  # the same under mma.sync
    clock_idle: float  # GHz of kernels without tensor work
    shared_bytes: float
    l2_bytes: float  # B; of U bytes that all SMs read repeatedly, the share l2_bytes / U hits L2
    l2_whole: float  # B; a stream of 2/3 of this hits L2 when it is read again, one of 1.14 times this misses
    l2_dirty: float  # B in L2 that are not yet in HBM after a harness has overwritten L2
    l2_dirty_share: float  # share of the lines replaced by reads after that which have to be written back
    l1_whole: float  # B, shared memory included
    l2_latency: float
    hbm_latency: float
    hbm_queue: float  # further cycles that a load waits if HBM is busy half of the time
    hbm_drain: float  # further cycles that a load waits, times the share of time in which HBM writes
    load_pace: float  # cycles between lines that a warp's loads bring into L1
    l1_latency: float
    l2_port: float  # B/cycle into one SM
    l2_rate: float  # B/s of all SMs, each reading its own lines
    l2_shared_rate: float  # B/s if many SMs read the same lines
    hbm_rate: float  # B/s of reads
    hbm_write_rate: float  # B/s of writes mixed with reads
    write_rate: float
    tma_latency: float
    tma_hbm_latency: float
    tma_issue: float
    copy_latency: float  # cycles of a cp.async that hits L2
    copy_hbm_latency: float
    copy_port: float  # B/cycle of cp.async into one SM
    copy_pass: float  # cycles of the load unit for each pass of a cp.async
    copy_line: float  # cycles of the shared-memory port for each pass of a cp.async
    copy_queue: float  # cycles of work that may queue for the load unit before a warp's next cp.async waits
    store_latency: float
    store_port: float
    mma_macs: float  # 16-bit multiply-adds of an SM per cycle, by wgmma or tcgen05.mma
    mma_least: float
    mma_latency: float  # from the end of the last MMA to the end of the wait for it
    mma_stored_latency: float  # the same if A is in tensor memory
    mma_pair_latency: float  # further cycles if two CTAs multiply together (cta_group::2)
    mma_sync_cycles: float
    mma_sync_latency: float
    tmem_port: float  # B/cycle that tcgen05.ld reads in a sub-partition
    tmem_latency: float  # cycles until registers are ready, after those of the port
    tmem_write_port: float  # the same for tcgen05.st
    tmem_write_latency: float
    shared_latency: float
    alu_latency: float
    other_instructions: tuple[
        tuple[str, int, int], ...
    ]  # (how the name starts, issue slots, cycles to the result)
    release_latency: float  # of an atomic with .release or .acq_rel at .gpu scope
    wait_cost: float
    arrive_cost: float
    arrive_hop: float
    remote_hop: float
    bar_cost: float
    bar_warp: float
    cluster_cost: float
    cluster_relaxed_cost: float
    store_line: float
    store_queue: float  # cycles of writes that may queue for HBM before a warp's next store waits
    store_ahead: float  # cycles of lines that may queue for the store unit before a warp waits
    cta_start: float
    cta_pace: float  # cycles that the chip takes to start one CTA
    launch: float  # s
    launch_floor: float
    rotated: float  # B of arrays through which the harness rotates before it reuses the first ones
    idle_power: float
    power_cap: float
    power_exponent: float
    power_clock: float
    wgmma_energy: float
    mma_sync_energy: float
    half_extra: float  # further energy of float16 over bfloat16, as a share
    l2_energy: float
    hbm_energy: float
    shared_energy: float
    issue_energy: float
    flushed: float = 0.0  # B that the harness writes between two launches, so that L2 holds only these

    def tmem_costs(self, write: bool) -> tuple[float, float]:
        """(bytes per cycle of the port, cycles of latency after that) of tcgen05.ld, or of .st if `write`."""
        if write:
            return self.tmem_write_port, self.tmem_write_latency
        return self.tmem_port, self.tmem_latency


@cache
def table(name: str) -> dict:
    """The TOML file of "b200" or "h200": constant -> value, unit, source, and `fitted` if it was fitted."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


CHIPS = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def chip(name: str, harness: str = "") -> Chip:
    """The constants of "b200" or "h200". harness: name of a timing harness in the table whose constants
    replace the usual ones; "": none. Raises ValueError for a name that is not known.
    """
    if name not in CHIPS:
        raise ValueError(f"a time is predicted for {' or '.join(CHIPS)} (got {name!r})")
    found = table(name)
    if harness and harness not in found.get("harness", ()):
        raise ValueError(f"{name} has no constants of a harness {harness!r}")
    chosen = found | (found["harness"][harness] if harness else {})
    names = [f.name for f in fields(Chip) if f.type == "float" and f.name in chosen]
    others = tuple(map(tuple, found["other_instructions"]["value"]))
    numbers = {name: float(chosen[name]["value"]) for name in names}
    return Chip(found["chip"], found["arch"], other_instructions=others, **numbers)
