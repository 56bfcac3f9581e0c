"""Where elements are stored: swizzled shared memory, and tensor memory as the lanes of a warp address it.

Part of ptxsim's public interface: the names below stay when the internal modules change.
"""

from ptxsim.isa.layouts.swizzle import swizzle
from ptxsim.isa.layouts.tmem import load_layout, result_layout

__all__ = ["load_layout", "result_layout", "swizzle"]
