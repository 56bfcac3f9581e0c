"""Runs the clusters of a launch: one after another, or the rest of a long grid in forked processes.

Each process takes every n-th cluster, unless clusters communicate (grid/co_resident.py). Global arrays are
moved to shared mappings before the fork; findings and counts come back through a pipe.

Whether it pays to fork depends on the computer; what a launch says must not. So findings are merged in the
order of clusters, and everything that depends on what ran before (a race between clusters, the end of a
launch by a deadlock, lines that the kernel prints) discards the work of the processes: one process runs the
remaining clusters again.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import itertools
import mmap
import multiprocessing
import sys
import threading
import time
from dataclasses import dataclass, field

import numpy as np

from ptxsim.checks.barrier_arrays import barrier_arrays
from ptxsim.events.bus import Bus, Silent
from ptxsim.grid import late_checks
from ptxsim.grid.co_resident import fit, run_together
from ptxsim.grid.repeats.runner import Doubtful, Runner, comparable
from ptxsim.grid.useless_grid import UselessGrid
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.late_operations import base_of
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import Reporter
from ptxsim.report.merging import absorb

WORTHWHILE = 0.8  # seconds of remaining work below which forking does not pay (it costs about 0.1)
WORTH_COMPARING = 3  # clusters of a launch from which on they are compared with each other
_COUNTS = ("warp_instructions", "tma_bytes", "tensor_operations", "clusters")


@dataclass
class Part:
    """The results of a set of clusters."""

    reporter: Reporter
    stats: dict
    touched: dict = field(default_factory=dict)  # global memory accessed, to compare with other processes
    ordered: bool = False  # whether the result depends on which clusters ran before


def run_clusters(launch: Launch, chosen: range, checks: bool, order, names: list, jobs: int, extra) -> Part:
    """Runs the `chosen` clusters of the grid. A deadlock ends the launch, as it would on a chip.

    extra: observers besides the checks. The first cluster runs in this process, so they see all of it.
    """
    jobs = 1 if launch.talkative else min(jobs, len(chosen))

    def run(compare: bool, jobs: int) -> Part:
        launch.not_started.offer(chosen, base_of(order), fit(launch))
        reporter = reporter_for(launch, names)
        bus = late_checks.bus_for(launch, reporter, checks, extra)
        recordings = late_checks.recordings(bus) if compare and isinstance(bus, Bus) else None
        runner = Runner(functools.partial(_cluster, launch, order, reporter, bus), recordings)
        part = _run(runner, chosen, jobs, reporter)
        if not bus.heard and not reporter.by_identity:
            launch.program.kept_cluster.give_back(runner.cluster)
        return part

    many = len(chosen) >= WORTH_COMPARING and order in ("program", "adverse")
    if not (checks and many and not extra and comparable(launch)):
        return run(compare=False, jobs=jobs)
    before = launch.memory.copies()
    try:
        return run(compare=True, jobs=jobs)
    except Doubtful as doubt:
        launch.memory.restore(before)
        return run(compare=False, jobs=1 if isinstance(doubt, Conflict) else jobs)


def reporter_for(launch: Launch, names: list) -> Reporter:
    """A reporter of one run."""
    arrays = barrier_arrays(launch)
    return Reporter(names, launch.memory, launch.shared_dynamic, launch.source, launch, arrays)


class Conflict(Doubtful):
    """Clusters of different processes may conflict in memory."""


def _cluster(launch: Launch, order, reporter: Reporter, bus: Bus | Silent) -> Cluster:
    """A Cluster for the launch: without observers, one kept from an earlier launch, if there is one."""
    kept = None if bus.heard else launch.program.kept_cluster.take(launch)
    if kept is None:
        return Cluster(launch, order, reporter, bus, late_checks.explain)
    kept.belong_to(launch, order, reporter, bus, late_checks.explain)
    return kept


def _run(runner: Runner, chosen: range, jobs: int, reporter: Reporter) -> Part:
    talkative, start, count = runner.cluster.launch.talkative, time.perf_counter(), len(chosen)
    done = busiest = 0
    useless = UselessGrid(runner, count)
    while done < count:
        before = runner.cluster.tensor_operations
        ran, over = runner.run_some(chosen[done:], alone=not talkative or count == 1)
        if not over:
            used, ended = run_together(runner.cluster, chosen[done + ran :])
            together = Part(reporter, _stats(used[0], done + ran - 1 + ended))
            return _merge(together, [_extra(c) for c in used[1:]])
        done, busiest = done + ran, max(busiest, runner.cluster.tensor_operations - before)
        if useless.give_up(done) or _stuck(reporter):
            break
        spent = time.perf_counter() - start
        if jobs > 1 and count - done > 1 and spent / done * (count - done) > WORTHWHILE and can_fork():
            parts = _fork(runner, chosen[done:], jobs)
            if parts:
                return _merge(Part(reporter, _stats(runner.cluster, done, busiest)), parts)
            jobs = 1
    return Part(reporter, _stats(runner.cluster, done, busiest))


COLLECT_EVERY = 512  # runs
SELDOM = 50_000  # new objects between searches for cycles during a run: its many records form no cycles
_RUNS = itertools.count(1)
_ONE = threading.Lock()  # held by the one run that has adjusted the garbage collector
_not_before = 0.0  # time.process_time() of the next full collection


@contextlib.contextmanager
def only_new_garbage():
    """Restricts garbage collection to objects made during the run, excluding those of all imported modules.

    The run's own garbage is collected before the older objects are unfrozen. Later, only a full collection
    could find it, which takes a hundred times as long as a short run. A full collection ends one run in
    COLLECT_EVERY, or fewer, if these would take more than a hundredth of the time. If several threads run
    launches, only one of them at a time does all this: a nested collection would be a full one.
    """
    if not _ONE.acquire(blocking=False):
        yield
        return
    gc.freeze()
    often = gc.get_threshold()
    gc.set_threshold(SELDOM if often[0] else 0, *often[1:])
    try:
        yield
    finally:
        gc.set_threshold(*often)
        gc.collect()
        gc.unfreeze()
        if next(_RUNS) % COLLECT_EVERY == 0:
            _collect_all()
        _ONE.release()


def _collect_all() -> None:
    global _not_before
    start = time.process_time()
    if start >= _not_before:
        gc.collect()
        end = time.process_time()
        _not_before = end + 100 * (end - start)


def can_fork() -> bool:
    """Whether this process may fork: only on Linux and from the main thread, and not in a daemonic worker,
    which may not have children.
    """
    daemon = multiprocessing.current_process().daemon
    return sys.platform == "linux" and threading.current_thread() is threading.main_thread() and not daemon


def _stuck(reporter: Reporter) -> bool:
    return reporter.killed() or any(f.kind == "deadlock" for f in reporter.by_identity.values())


def _stats(cluster: Cluster, done: int, busiest: int | None = None) -> dict:
    """The counts of a Cluster. busiest: tensor operations of the cluster with the most; default: all."""
    counts = cluster.executed(), cluster.tma_bytes, cluster.tensor_operations, done
    busiest = cluster.tensor_operations if busiest is None else busiest
    return dict(zip(_COUNTS, counts, strict=True)) | {"busiest": busiest}


def _extra(cluster: Cluster) -> Part:
    """A Part with just the counts of another Cluster of the same launch."""
    return Part(Reporter.of({}), _stats(cluster, 0))


def _fork(runner: Runner, rest: range, jobs: int) -> list[Part]:
    """Runs the remaining clusters in `jobs` processes; returns their Parts.

    If the clusters must run in one process, discards what they wrote and returns an empty list. Raises
    Conflict if, besides, clusters must not be compared.
    """
    cluster, launch = runner.cluster, runner.cluster.launch
    originals = _share(launch.memory)
    cluster.map_memory()
    context = multiprocessing.get_context("fork")
    workers = []
    for number in range(jobs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(runner, rest[number::jobs], sender))
        process.start()
        sender.close()
        workers.append((process, receiver))
    discard = True
    try:
        parts = _received([receiver for _, receiver in workers])
        conflict = late_checks.conflict(cluster.bus, [part.touched for part in parts])
        discard = conflict or any(part.ordered for part in parts)
    finally:
        for process, _ in workers:
            process.kill()
            process.join()
        _unshare(launch.memory, originals, keep=not discard)
        cluster.map_memory()
    if conflict and runner.recordings:
        raise Conflict
    return [] if discard else parts


def _received(receivers: list) -> list[Part]:
    """The Parts of the processes; raises the first exception that one of them sent."""
    parts = []
    for receiver in receivers:
        try:
            parts.append(receiver.recv())
        except EOFError:
            raise RuntimeError("a simulator process died; run again with PTXSIM_JOBS=1") from None
        if isinstance(parts[-1], BaseException):
            raise parts[-1]
    return parts


def _share(memory) -> list[np.ndarray]:
    """Moves every global array into memory that forked processes share; returns the originals."""
    originals = list(memory.arrays)
    for i, array in enumerate(originals):
        mapping = np.frombuffer(mmap.mmap(-1, max(array.nbytes, 1)), np.uint8, array.nbytes)
        mapping[:] = array
        memory.replace(i, mapping)
    return originals


def _unshare(memory, originals: list[np.ndarray], keep: bool) -> None:
    """Moves the global arrays back to the originals. keep: copy what the processes have written into them."""
    for i, original in enumerate(originals):
        if keep and original.flags.writeable:
            original[:] = memory.arrays[i]
        memory.replace(i, original)


def _die_with_parent() -> None:
    """Makes this process end when its parent is killed (prctl PR_SET_PDEATHSIG, SIGKILL)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, 9)


def _work(runner: Runner, mine, sender) -> None:
    _die_with_parent()
    try:
        runner.cluster.forget_counts()
        runner.cluster.launch.not_started.narrow(mine)
        done = busiest = 0
        ended, useless = False, UselessGrid(runner, len(mine))
        while done < len(mine) and not ended:
            before = runner.cluster.tensor_operations
            ran, _ = runner.run_some(mine[done:])
            done, busiest = done + ran, max(busiest, runner.cluster.tensor_operations - before)
            ended = useless.give_up(done) or _stuck(runner.cluster.reporter)
        cluster, reporter = runner.cluster, runner.cluster.reporter
        touched = late_checks.summary(cluster.bus, mine[:done])
        found = Reporter.of(reporter.by_identity, reporter.appeared)
        sender.send(Part(found, _stats(cluster, done, busiest), touched, ended or bool(reporter.printed)))
    except BaseException as error:
        sender.send(error)
    finally:
        sender.close()


def _merge(first: Part, parts: list[Part]) -> Part:
    absorb(first.reporter, *(part.reporter for part in parts))
    for part in parts:
        for name in _COUNTS:
            first.stats[name] += part.stats[name]
        first.stats["busiest"] = max(first.stats["busiest"], part.stats["busiest"])
    return first
