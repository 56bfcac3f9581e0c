"""What the rooms below launch.py take from a launch; the class is there, as it also binds arguments."""

from __future__ import annotations

from typing import Any, Protocol

from ptxsim.machine.global_memory import GlobalMemory
from ptxsim.machine.launch_queue import LaunchQueue
from ptxsim.machine.tensor_map import TensorMap

Triple = tuple[int, int, int]


class Launch(Protocol):
    """A kernel with its geometry, its memory, and the values that are fixed before it runs."""

    program: Any  # Program of lowering/, which stands above
    module: Any  # the Module that the kernel is in
    memory: GlobalMemory
    maps: dict[int, TensorMap]  # address of a tensor map -> it
    not_started: LaunchQueue

    @property
    def loop(self) -> Any: ...  # the compiled main loop

    grid: Triple  # in CTAs
    block: Triple  # in threads
    cluster: Triple  # in CTAs
    clusters: Triple  # of the grid
    threads: int  # of a CTA
    ctas_per_cluster: int
    shared_bytes: int  # of dynamic shared memory
    shared_dynamic: int  # where it begins in the window
    shared_end: int  # of all shared memory
    shared_offsets: dict[str, int]  # of static variables in the window
    uses_tmem: bool
    grid_barrier: int  # its address; 0 where there is none
    source: str
    max_instructions: int | None
    exit_hooks: tuple

    @property
    def talkative(self) -> bool: ...
    @property
    def early_uses(self) -> dict[int, int]: ...
    @property
    def unset_stores(self) -> dict[int, tuple[list[str], int]]: ...
    def shared_variables(self) -> list: ...
    def cluster_cta_ids(self, index: int) -> list[Triple]: ...
    def cluster_id(self, index: int) -> Triple: ...
    def fill_fixed(self, cluster) -> None: ...
    def fill_changing(self, cluster) -> None: ...
