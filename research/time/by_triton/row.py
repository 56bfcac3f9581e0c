"""A kernel at one size, as the rounds list them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

TYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
TYPES |= {"int8": "i8", "float8_e4m3fn": "fp8e4nv", "int32": "i32"}
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "int8": 1, "float8_e4m3fn": 1, "int32": 4}
SMS = 132


@dataclass
class Row:
    """One kernel at one size. `args` in the kernel's order: (name, dtype, shape, role) or (name, value)."""

    name: str
    kernel: object
    args: list
    constants: dict
    grid: int | tuple[int, int]
    warps: int
    flops: float
    maps: dict = field(default_factory=dict)  # name of a described array -> its block
    half: str = "calibration"

    @property
    def moved(self) -> int:
        """Bytes of all arrays: what a launch must at least read or write."""
        total = 0
        for argument in self.args:
            if len(argument) == 4:
                total += BYTES[argument[1]] * math.prod(argument[2])
        return total


def name_of(kind: str, size, tile, stages: int, warps: int, dtype: str) -> str:
    shapes = "_".join("x".join(map(str, part)) for part in (size, tile))
    return f"{kind}_{shapes}_s{stages}_w{warps}_{dtype}"
