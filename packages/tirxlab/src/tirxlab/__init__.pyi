# For editors: the names that `from tirxlab import ...` loads at run time from the dialect, on first use.
from tirxlab.dialect import (
    ClusterPersistentScheduler2D as ClusterPersistentScheduler2D,
)
from tirxlab.dialect import (
    KernelError as KernelError,
)
from tirxlab.dialect import (
    MBarrier as MBarrier,
)
from tirxlab.dialect import (
    PipelineState as PipelineState,
)
from tirxlab.dialect import (
    S as S,
)
from tirxlab.dialect import (
    SwizzleMode as SwizzleMode,
)
from tirxlab.dialect import (
    TCGen05Bar as TCGen05Bar,
)
from tirxlab.dialect import (
    TCol as TCol,
)
from tirxlab.dialect import (
    TileLayout as TileLayout,
)
from tirxlab.dialect import (
    TLane as TLane,
)
from tirxlab.dialect import (
    TMABar as TMABar,
)
from tirxlab.dialect import (
    Tx as Tx,
)
from tirxlab.dialect import (
    axis_tid_in_wg as axis_tid_in_wg,
)
from tirxlab.dialect import (
    tma_shared_layout as tma_shared_layout,
)

DIALECT_NAMES: tuple[str, ...]
