"""The clock that a chip sustains: its tensor clock, or less if that would exceed the power cap of the board.

At a lower clock the voltage is lower too. The power of the cores is proportional to clock ** power_exponent,
that of HBM to its traffic. Energies are those of random normal data; zeros take far less.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.timing.chip import Chip


@dataclass(frozen=True)
class PowerUse:
    """The work of a whole launch, by what it takes energy for."""

    unit_flops: float  # by wgmma or tcgen05.mma
    product_flops: float  # by mma.sync
    l2_bytes: float
    hbm_bytes: float
    shared_bytes: float
    instructions: float  # of warps
    half: float = 0.0  # share of the tensor work in float16


def start_clock(work: PowerUse, chip: Chip) -> float:
    """The clock in GHz before power limits apply."""
    if work.unit_flops:
        return chip.clock
    return chip.clock_sync if work.product_flops else chip.clock_idle


def watts(work: PowerUse, seconds: float, ghz: float, chip: Chip) -> tuple[float, float]:
    """(power of the cores, power of HBM) in watts above idle at this clock."""
    joules = (
        (work.unit_flops * chip.wgmma_energy + work.product_flops * chip.mma_sync_energy)
        * (1.0 + work.half * chip.half_extra)
        + work.l2_bytes * chip.l2_energy
        + work.shared_bytes * chip.shared_energy
        + work.instructions * chip.issue_energy
    )
    volts = (ghz / chip.power_clock) ** (chip.power_exponent - 1)
    return joules * volts / seconds, work.hbm_bytes * chip.hbm_energy / seconds


def settled_clock(work: PowerUse, seconds: float, ghz: float, chip: Chip) -> float:
    """The clock in GHz at which a launch that takes `seconds` at `ghz` reaches the power cap; at most `ghz`.

    A board takes tens of milliseconds to slow down (H200: 25 to 50). Therefore the cap applies to the mean
    over many launches and the harness's work between them, during which it writes memory and the tensor cores
    idle.
    """
    cores, memory = watts(work, seconds, ghz, chip)
    memory += chip.flushed * chip.hbm_energy / seconds
    rest = chip.flushed / chip.hbm_write_rate / seconds

    def over(x: float) -> bool:
        mean = (cores * x ** (chip.power_exponent - 1.0) + memory) / (1.0 / x + rest)
        return chip.idle_power + mean > chip.power_cap

    if not over(1.0):
        return ghz
    low, high = 0.3, 1.0
    for _ in range(40):
        x = (low + high) / 2
        low, high = (low, x) if over(x) else (x, high)
    return ghz * low
