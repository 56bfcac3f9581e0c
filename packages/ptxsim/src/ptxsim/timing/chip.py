"""The constants of a chip, each with its unit and source: one TOML file per chip beside this one."""

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
    """Cycles are those of an SM; rates of the whole chip are bytes a second. The tables say what each is."""

    name: str
    arch: str
    sms: float
    clock: float  # GHz under tensor load, before power limits
    clock_sync: float  # the same under mma.sync
    clock_idle: float  # GHz of kernels without tensor work
    shared_bytes: float
    l2_bytes: float  # of U that all SMs read in turn, so many / U are found in L2
    l2_whole: float  # B; a stream of two thirds of it finds itself there the next time, one of 1.14 does not
    l2_dirty: float  # B that are still to be written to HBM when a harness has overwritten L2
    l2_dirty_share: float  # of what makes room for what is read then
    l1_whole: float  # B, with shared memory
    l2_latency: float
    hbm_latency: float
    hbm_queue: float  # cycles that a load waits longer when HBM is busy half of the time
    hbm_drain: float  # cycles that it waits longer, times the share of the time in which HBM writes
    load_pace: float  # cycles between lines that a warp's loads bring into L1
    l1_latency: float
    l2_port: float  # B/cycle into one SM
    l2_rate: float  # B/s, all SMs, each its own lines
    l2_shared_rate: float  # B/s, where many SMs read the same lines
    hbm_rate: float  # B/s of reads
    hbm_write_rate: float  # B/s of writes among reads
    write_rate: float
    tma_latency: float
    tma_hbm_latency: float
    tma_issue: float
    copy_latency: float  # of a cp.async that hits L2
    copy_hbm_latency: float
    copy_port: float  # B/cycle of cp.async into one SM
    copy_pass: float  # cycles of the load unit for each pass of a cp.async
    copy_line: float  # cycles of the port of shared memory for the same
    copy_queue: (
        float  # cycles of work that may stand before the load unit, until a warp's next cp.async waits
    )
    store_latency: float
    store_port: float
    mma_macs: float  # 16-bit multiply-adds of an SM in a cycle, by wgmma or tcgen05.mma
    mma_least: float
    mma_latency: float  # from the last product to the end of the wait for it
    mma_stored_latency: float  # the same where A lies in tensor memory
    mma_pair_latency: float  # how much longer it takes where two CTAs multiply together
    mma_sync_cycles: float
    mma_sync_latency: float
    tmem_port: float  # B/cycle of a sub-partition that tcgen05.ld reads
    tmem_latency: float  # cycles until registers are there, beyond those of the port
    tmem_write_port: float  # the same of tcgen05.st
    tmem_write_latency: float
    shared_latency: float
    alu_latency: float
    other_instructions: tuple[
        tuple[str, int, int], ...
    ]  # (start of a name, issue slots, cycles to the result)
    release_latency: float  # of an atomic that orders what the GPU sees before and after it
    wait_cost: float
    arrive_cost: float
    arrive_hop: float
    remote_hop: float
    bar_cost: float
    bar_warp: float
    cluster_cost: float
    cluster_relaxed_cost: float
    store_line: float
    store_queue: float  # cycles of writes that may stand before HBM, until a warp's next store waits
    store_ahead: float  # cycles of lines that may stand before the store unit, until a warp waits
    cta_start: float
    cta_pace: float  # cycles of the whole chip for each CTA that it starts
    launch: float  # s
    launch_floor: float
    rotated: float  # B of arrays that the harness goes through before it comes to the same ones again
    idle_power: float
    power_cap: float
    power_exponent: float
    power_clock: float
    wgmma_energy: float
    mma_sync_energy: float
    half_extra: float  # what float16 takes more than bfloat16, as a share
    l2_energy: float
    hbm_energy: float
    shared_energy: float
    issue_energy: float
    flushed: float = 0.0  # B that the harness writes between two launches, so that L2 holds these

    def tmem_costs(self, write: bool) -> tuple[float, float]:
        """Of tcgen05.ld, or st: (bytes a cycle of the port, cycles until it is done beyond these)."""
        if write:
            return self.tmem_write_port, self.tmem_write_latency
        return self.tmem_port, self.tmem_latency


@cache
def table(name: str) -> dict:
    """The whole table of "b200" or "h200": constant -> value, unit, source, perhaps fitted."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


CHIPS = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def chip(name: str, harness: str = "") -> Chip:
    """The constants of "b200" or "h200"; with those of a way to time launches that the table names."""
    found = table(name)
    chosen = found | (found["harness"][harness] if harness else {})
    names = [f.name for f in fields(Chip) if f.type == "float" and f.name in chosen]
    others = tuple(map(tuple, found["other_instructions"]["value"]))
    numbers = {name: float(chosen[name]["value"]) for name in names}
    return Chip(found["chip"], found["arch"], other_instructions=others, **numbers)
