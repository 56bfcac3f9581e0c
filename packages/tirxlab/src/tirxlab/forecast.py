"""The predicted time of an artifact on a chip, by ptxsim.timing, as plain data. Never a measurement.

One cluster of the grid is run on zeros and recorded; the record is replayed with the chip's costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tirxlab.artifact import Artifact

CHIPS = ("b200", "h200")


class NoForecast(ValueError):
    """No time can be predicted; the message says why in one line."""


@dataclass
class Forecast:
    """A predicted time. Fields are plain numbers, so that it passes between processes."""

    chip: str  # "NVIDIA B200"
    ms: float
    tflops: float  # 2 * M * N * K over the time; 0 without a size
    bound: str  # what takes most of the time: one of ptxsim.timing.critical.KINDS, or "launch"
    spent: dict[str, float]  # kind -> share of the critical path of one SM, the largest first
    tensor_busy: float  # share of the time in which the tensor cores multiply
    ghz: float  # SM clock that the model expects
    watts: float
    waves: int  # waves of CTAs on an SM
    sms: int  # how many SMs have work
    hbm_share: float  # used share of HBM's bandwidth
    notes: list[str] = field(default_factory=list)


def launch_of(artifact: Artifact):
    """The artifact's launch on arrays of zeros, prepared but not run."""
    import numpy as np

    from tirxlab.devices import sim

    buffers = {b.name: np.zeros(b.shape, b.dtype) for b in artifact.buffers}
    return sim.prepare(artifact, buffers)


def forecast(artifact: Artifact, chip: str = "b200", flops: float = 0.0) -> Forecast:
    """Records a cluster and replays it. `flops`: of the whole launch. NoForecast if that is not possible."""
    from ptxsim.forecasting import chip as chip_of

    found, _ = replayed(artifact, chip)
    return told(found, chip_of(chip), flops, artifact)


def timed(artifact: Artifact, chip: str = "b200", flops: float = 0.0):
    """(Forecast, Timeline of the replayed cluster in nanoseconds); arguments and NoForecast as `forecast`."""
    from ptxsim.forecasting import chip as chip_of
    from ptxsim.forecasting import timeline
    from ptxsim.observing import SHARED_START, Reporter

    found, launch = replayed(artifact, chip)
    names = [(n.name, n.dtype, n.offset, n.size) for n in artifact.names]
    known = Reporter(names, launch.memory, launch.shared_dynamic)
    made = timeline(found, lambda offset: known.shared_name(SHARED_START + offset))
    return told(found, chip_of(chip), flops, artifact), made


def replayed(artifact: Artifact, chip: str):
    """(Prediction, the launch that it is for)."""
    import ptxsim
    from ptxsim.forecasting import Unpredictable, assembled, predict, sample
    from ptxsim.forecasting import chip as chip_of

    try:
        launch, part = launch_of(artifact), chip_of(chip)
        assembly = assembled(artifact.ptx, part.arch)
        taken = sample(launch, artifact.registers, artifact.cubin, sms=int(part.sms), assembly=assembly)
        return predict(taken, part), launch
    except (Unpredictable, ptxsim.PtxError) as error:
        raise NoForecast(f"no time is predicted: {error}") from None


BUSY = 0.85  # share of the time; a tensor core that is busier than this bounds the kernel


def told(prediction, chip, flops: float, artifact: Artifact) -> Forecast:
    """A Prediction as plain data, with what bounds it."""
    running = prediction.cycles / prediction.ghz / 1e9
    bound = next(iter(prediction.spent), "instructions")
    if prediction.tensor_busy > BUSY:
        bound = "tensor core"
    if running < prediction.seconds / 2:
        bound = "launch"
    hidden = artifact.spills and not prediction.costed.execution.refills
    notes = prediction.notes + [f"{artifact.spills} B of spills per thread are not in it"] if hidden else []
    return Forecast(
        chip.name, prediction.seconds * 1e3, flops / prediction.seconds / 1e12, bound, prediction.spent,
        min(1.0, prediction.tensor_busy), prediction.ghz, prediction.watts, prediction.waves, prediction.sms,
        prediction.work.hbm_bytes / prediction.seconds / chip.hbm_rate, notes,
    )  # fmt: skip
