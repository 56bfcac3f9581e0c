"""ptxsim: a functional simulator of compiled PTX. `load(text)` gives a module, `module.launch(...)` runs a
kernel.
"""

from __future__ import annotations

from ptxsim.frontend.parser import PtxError, parse
from ptxsim.launch import LoadedModule, Result
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.report.findings import Finding
from ptxsim.trace.schedule import Costs, Timeline

__all__ = ["Costs", "Finding", "LoadedModule", "PtxError", "Result", "TensorMap", "Timeline", "load"]


def load(ptx_text: str) -> LoadedModule:
    """Parses and lowers a PTX module.

    Raises PtxError, naming line and text, for text that is not PTX and for instructions that are not
    modelled.
    """
    import ptxsim.units.all_units  # noqa: F401  (registers the unit instructions)

    return LoadedModule(parse(ptx_text))
