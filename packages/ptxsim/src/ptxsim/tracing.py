"""What a run did over time: its events, their schedule, pictures of it, and files for other viewers.

Part of ptxsim's public interface: the names below stay when the internal modules change.
"""

from ptxsim.trace.bands import Band, arranged, arrows, bands, rows
from ptxsim.trace.drawing import stack, svg
from ptxsim.trace.export import MODELS, chrome
from ptxsim.trace.scale import axis_unit, marks, number, words
from ptxsim.trace.schedule import (
    COPIES,
    COST_NAMES,
    LOADS,
    STORES,
    TENSOR,
    UNITS,
    Costs,
    Event,
    Timeline,
    schedule,
    spans,
)

__all__ = [
    "Band",
    "COPIES",
    "COST_NAMES",
    "Costs",
    "Event",
    "LOADS",
    "MODELS",
    "STORES",
    "TENSOR",
    "Timeline",
    "UNITS",
    "arranged",
    "arrows",
    "axis_unit",
    "bands",
    "chrome",
    "marks",
    "number",
    "rows",
    "schedule",
    "spans",
    "stack",
    "svg",
    "words",
]
