"""The interface of Launch for the modules that launch.py imports; the class itself is there."""

from __future__ import annotations

from typing import Any, Protocol

from ptxsim.events import views
from ptxsim.events.views import Triple
from ptxsim.machine.global_memory import GlobalMemory
from ptxsim.machine.launch_queue import LaunchQueue
from ptxsim.machine.tensor_map import TensorMap


class Launch(views.Launch, Protocol):
    """A kernel with its geometry, its memory, and the values that are fixed before it runs."""

    module: Any  # the Module that the kernel is in
    variables: Any  # of the module
    memory: GlobalMemory
    maps: dict[int, TensorMap]  # address -> the tensor map stored there
    not_started: LaunchQueue
    elects_lowest: bool  # elect.sync takes the lowest lane in every order (grid/elections.py)

    @property
    def loop(self) -> Any: ...  # the compiled main loop

    grid: Triple  # in CTAs
    block: Triple  # in threads
    cluster: Triple  # in CTAs
    shared_bytes: int  # of dynamic shared memory
    shared_dynamic: int  # offset of the dynamic part in the window
    grid_barrier: int  # its address; 0 if there is none
    cooperative: bool  # whether all CTAs run at the same time and may wait for each other
    source: str
    max_instructions: int | None
    exit_hooks: tuple

    @property
    def talkative(self) -> bool: ...
    def shared_variables(self) -> list: ...
    def cluster_id(self, index: int) -> Triple: ...
    def fill_fixed(self, cluster) -> None: ...
    def fill_changing(self, cluster) -> None: ...
