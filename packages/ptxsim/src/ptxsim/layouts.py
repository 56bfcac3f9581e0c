"""Where elements lie: swizzled shared memory, and how the lanes of a warp see tensor memory.

Part of the public face of ptxsim: the names below stay when the rooms behind them change.
"""

from ptxsim.isa.layouts.swizzle import swizzle
from ptxsim.isa.layouts.tmem import load_layout, result_layout

__all__ = ["load_layout", "result_layout", "swizzle"]
