"""Loads and launches the kernels of a session, and reports the outcome."""

from __future__ import annotations

from collections.abc import Mapping

import ptxsim
from ptxsim.driver.device import Record, printed_text
from ptxsim.launch import LoadedModule
from ptxsim.plugins.session import Session
from ptxsim.report.findings import Finding

Extent = tuple[int, int, int]


def load(session: Session, ptx: bytes, name: str) -> LoadedModule:
    """The module with the kernel `name`. If the kernel uses something that is not modelled, keeps a record
    and raises RuntimeError.
    """
    module = ptxsim.load(ptx, refuse=False)
    try:
        module.programs[name]
    except ptxsim.PtxError as error:
        raise RuntimeError(refused(session, name, str(error))) from None
    return module


def refused(session: Session, name: str, why: str) -> str:
    """Keeps a record of a kernel that cannot run, and returns its message."""
    record = Record.refused(len(session.launches) + 1, name, why)
    session.told(record)
    return record.findings[0].message


def launch(
    session: Session,
    module: LoadedModule,
    name: str,
    shape: tuple[Extent, Extent, Extent],
    shared: int,
    args: bytes,
    memory: Mapping,
) -> list[Finding]:
    """Runs a kernel, reports the outcome and returns the findings. `shape`: grid, block, cluster."""
    grid, block, cluster = shape
    result = module.launch(
        name, grid=grid, block=block, cluster=cluster, shared_bytes=shared,
        args=args, memory=memory, checks=session.checks, order=session.order,
    )  # fmt: skip
    told = (result.verdict, result.findings, result.notes, result.stats)
    session.told(Record(len(session.launches) + 1, name, grid, block, cluster, *told))
    print(end=printed_text(result))
    return result.findings
