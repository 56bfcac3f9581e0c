"""On the first run on a computer, a second process compiles the code of the checks while this one compiles
the main loop. The second one's code goes to the cache on disk, from which this process loads it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator

import numpy as np

from ptxsim.grid.cores import cores
from ptxsim.grid.processes import can_fork
from ptxsim.isa.address_map import SHARED_BASE, SHARED_START
from ptxsim.jit.bytecode import LOG_COLUMNS, LOG_PLACE, LOG_SIZE
from ptxsim.jit.code_cache import is_cold
from ptxsim.machine.cluster import Cluster
from ptxsim.report.findings import Reporter

_FIRST = iter([True])  # yields True only for the first launch of this process


@contextlib.contextmanager
def checks_compiled_beside(launch) -> Iterator[None]:
    """Compiles the checks in a second process while the body compiles the main loop.

    launch: any launch whose memory is laid out.
    """
    if not (next(_FIRST, False) and is_cold() and cores() > 1 and can_fork()):
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=_quietly, args=(launch,), daemon=True)
    process.start()
    try:
        yield
        process.join()
    finally:
        process.kill()


def _quietly(launch) -> None:
    with contextlib.suppress(Exception):  # the launch itself then compiles the checks and reports the error
        compile_checks(launch)


def compile_checks(launch) -> None:
    """Compiles the code of the checks by passing them an access and a copy that never happened.

    The launch cannot be used afterwards.
    """
    from ptxsim.checks.all_checks import checking_bus
    from ptxsim.checks.race.across_processes import detector
    from ptxsim.checks.race.async_work import Issued
    from ptxsim.checks.race.shadow_bytes import SHARED

    vars(launch)["loop"] = None
    reporter = Reporter([], launch.memory, 0, "", launch)
    bus = checking_bus(launch, reporter)
    cluster = Cluster(launch, "program", reporter, bus)
    cluster.start(0)
    log = np.zeros((1, LOG_COLUMNS), np.int64)
    log[0, [LOG_PLACE, LOG_SIZE]] = SHARED_BASE + SHARED_START, 2 * 4
    cluster.bus.accesses(cluster, log)
    races = detector(bus)
    assert races is not None
    knows = np.zeros(races.clocks.clock.shape[1], np.int32)
    spans = np.array([[SHARED_START, SHARED_START + 4]], np.int64)
    races.history.spans(SHARED, spans, True, Issued("copy", 0, 0, knows, knows, knows, 0, 1))
