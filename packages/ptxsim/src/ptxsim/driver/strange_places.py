"""Addresses of a faulty access that only the program explains: of memory that it has freed, or of its own."""

from __future__ import annotations

from ptxsim.driver.arena import Arena
from ptxsim.report.findings import Finding


def name_place(finding: Finding, arena: Arena, process: int) -> None:
    """Says in an access's finding that its address is of freed memory, or of the host's."""
    address = finding.evidence.get("address")
    if address is None:
        return
    text, _, place = finding.message.rpartition(": ")
    freed = arena.was_at(address)
    if freed is not None:
        place = f"{freed.name} + {address - freed.address} B, which is freed"
        hint = "free it after its last use"
    elif (
        place.endswith("which no buffer holds")
        and not arena.covers(address)
        and _in_process(address, process)
    ):
        place = f"address 0x{address:x}, in the host memory of the program"
        hint = "pointers for kernels, also inside structs, come from cudaMalloc and the like"
    else:
        return
    finding.message, finding.hint = f"{text}: {place}", hint
    finding.evidence.pop("cause", None)


def _in_process(address: int, process: int) -> bool:
    """Whether a process has memory at an address."""
    try:
        with open(f"/proc/{process}/maps", encoding="ascii", errors="replace") as maps:
            ranges = [line.split(" ", 1)[0].split("-") for line in maps]
    except OSError:
        return False
    return any(int(first, 16) <= address < int(end, 16) for first, end in ranges)
