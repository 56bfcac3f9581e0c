"""The interface of Cluster that the modules of machine/ use which cluster.py itself imports."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

import numpy as np

from ptxsim.events import views
from ptxsim.machine.choices import Choices
from ptxsim.machine.launch_view import Launch
from ptxsim.machine.map_table import MapTable
from ptxsim.machine.mbarrier_table import MBarriers
from ptxsim.machine.split import Lanes, Split, Splits, Wait


class Cluster(views.Cluster, Protocol):
    """A cluster of CTAs with the state of its scheduler; cluster.py documents each part."""

    launch: Launch
    choices: Choices
    watchdog: Any  # Watchdog
    control: np.ndarray
    words: int
    split_table: np.ndarray
    group_table: np.ndarray
    cta_table: np.ndarray
    tmem_table: np.ndarray  # host addresses of the tensor memories
    maps: MapTable
    tensor_operations: int
    tma_bytes: int
    access_log: np.ndarray
    local: np.ndarray
    local_written: np.ndarray  # a flag for each byte of `local`, set only if there are observers
    living: np.ndarray
    loop: Any
    tmem: list
    queue: deque[int]
    splits: Splits
    waits: dict[int, Wait]
    waiting: dict[tuple, list[int]]
    apart: set[int]
    effects: int
    published: int
    told: int
    timeouts: int
    explain: Any

    @property
    def mbarriers(self) -> MBarriers: ...
    @property
    def order(self) -> str | int: ...
    @property
    def late(self) -> Any: ...  # LateOperations
    def executed(self) -> int: ...
    def predicate(self, split: Lanes, code: int) -> int: ...
    def wake(self, key: tuple) -> None: ...
    def wait(self, split: Split, wait: Wait, park: bool = False) -> str: ...
    def unit(self, split: Split, row: int, mask: int) -> bool: ...
    def serve(self, reason: int, split: Split) -> bool: ...
    def settle(self, split: Split) -> None: ...
    def tell_log(self, end: int) -> None: ...
