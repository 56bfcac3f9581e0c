"""tcgen05.ld.red (PTX ISA 9.7.16.8.1, sm_101a and sm_103a): a load that also yields the minimum or maximum of
the values that each thread loads.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.number_formats import canonical_nans
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.registry import unit
from ptxsim.units.tcgen05_ld_st import COUNTS, cells, load_later, shape_of, vector
from ptxsim.units.warp import require_aligned

_TYPES = {"f32": np.float32, "u32": np.uint32, "s32": np.int32}
_NUMBERS = " ".join(n for n in COUNTS if n != "x1")
_BOX = "tcgen05.ld.red .sync.aligned"


@unit(
    f"{_BOX}.32x32b.num.op{{.abs}}{{.NaN}}.f32 r, v, [a]",
    f"{_BOX}.32x32b.num.op.word r, v, [a]",
    f"{_BOX}.16x32bx2.num.op{{.abs}}{{.NaN}}.f32 r, v, [a], column",
    f"{_BOX}.16x32bx2.num.op.word r, v, [a], column",
    num=_NUMBERS,
    op="min max",
    word="u32 s32",
    writes=(0, 1),
    async_destination=True,
    section="9.7.16.8.1",
    prepare=lambda args: (*vector(args[0]), *args[1:]),
)
def load_reduced(instr):
    form = cells, *shape_of(instr)

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        targets, slots, value, *operands = args

        def fill(values: np.ndarray) -> None:
            cluster.registers[split.warp, slots] = values
            cluster.registers[split.warp, value] = reduced(values, instr.mods)

        load_later(cluster, split, form, operands, (*targets, value), fill)

    return run


def reduced(values: np.ndarray, modifiers) -> np.ndarray:
    """uint32 (32,): minimum or maximum over the registers (first axis) of each thread. A NaN counts only with
    .NaN.
    """
    numbers = values.view(next(_TYPES[m] for m in modifiers if m in _TYPES))
    numbers = np.abs(numbers) if "abs" in modifiers else numbers
    if numbers.dtype != np.float32:
        return (np.min if "min" in modifiers else np.max)(numbers, axis=0).view(np.uint32)
    function = {
        (True, True): np.minimum,
        (True, False): np.fmin,
        (False, True): np.maximum,
        (False, False): np.fmax,
    }["min" in modifiers, "NaN" in modifiers]
    return canonical_nans(function.reduce(numbers, axis=0)).view(np.uint32)
