"""The clock that a chip keeps: its tensor clock, or less where that would take more than the board may.

At a lower clock the voltage is lower too. Power of the cores goes as clock ** power_exponent, that of HBM
with the traffic. Energies are those of random normal data; zeros take far less.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.timing.chip import Chip


@dataclass(frozen=True)
class PowerUse:
    """What a launch does, in all."""

    unit_flops: float  # by wgmma or tcgen05.mma
    product_flops: float  # by mma.sync
    l2_bytes: float
    hbm_bytes: float
    shared_bytes: float
    instructions: float  # of warps
    half: float = 0.0  # share of the tensor work in float16


def start_clock(work: PowerUse, chip: Chip) -> float:
    """GHz before power limits."""
    if work.unit_flops:
        return chip.clock
    return chip.clock_sync if work.product_flops else chip.clock_idle


def watts(work: PowerUse, seconds: float, ghz: float, chip: Chip) -> tuple[float, float]:
    """(power of the cores, of HBM) at this clock, above idle."""
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
    """GHz at which the power is that of the cap, for a launch that takes `seconds` at `ghz`; at most
    `ghz`.

    A board takes tens of milliseconds to slow down (H200: 25 to 50), so what it is held to is the mean over
    many launches and what the harness does between them: it writes memory, and the tensor cores rest.
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
