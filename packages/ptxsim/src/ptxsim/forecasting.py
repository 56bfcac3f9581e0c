"""Predicts a kernel's run time on a chip: record a sample of its clusters, replay it with the chip's costs.

Part of ptxsim's public interface: the names below stay when the internal modules change.
"""

from ptxsim.timing.assembler import assembled
from ptxsim.timing.chip import chip
from ptxsim.timing.predict import predict, sample
from ptxsim.timing.record import Unpredictable
from ptxsim.timing.timeline import timeline

__all__ = ["Unpredictable", "assembled", "chip", "predict", "sample", "timeline"]
