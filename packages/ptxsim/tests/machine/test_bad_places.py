"""What findings say of an address: null, an array of a thread, dynamic shared memory, memory of the host."""

import os

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.driver.arena import Arena
from ptxsim.driver.strange_places import name_place
from ptxsim.report.findings import Finding

DYNAMIC = ".extern .shared .align 4 .b8 dyn[];"
IN_FRAME = ".local .b8 frame[8]; mov.u32 %r, frame; st.local.u32 [%r+4096], %r;"


@pytest.mark.parametrize(
    "text, place, hint",
    [
        ("st.global.u32 [0], %r;", "null", "this pointer is null"),
        (IN_FRAME, "+ 4096 B, of which each thread has", "array of a thread"),
        ("mov.u32 %r, dyn; st.shared.u32 [%r+64], %r;", "dyn: the launch asks for 64 B", "in bytes"),
        ("mov.u32 %r, dyn; st.shared.u32 [%r+60], %r;", "", ""),
    ],
)
def test_what_lies_at_a_bad_address(text, place, hint):
    ptx = f"{HEAD}{DYNAMIC} .visible .entry k() {{ .reg .b32 %r; mov.u32 %r, 0; {text} ret; }}"
    findings = ptxsim.load(ptx).launch("k", shared_bytes=64).findings
    found = [(f.kind, place in f.message, hint in f.hint) for f in findings]
    assert found == [("out-of-bounds", True, True)] * bool(place)


@pytest.mark.parametrize(
    "where, told", [("freed", "is freed"), ("host", "in the host memory"), ("none", "no buffer")]
)
def test_memory_that_only_the_program_explains(where, told):
    arena, own = Arena(1 << 24), np.zeros(4)
    address = arena.allocate(1000)
    arena.release(address)
    address = {"freed": address + 8, "host": own.ctypes.data, "none": 1 << 60}[where]
    finding = Finding("out-of-bounds", "error", f"load: address {address:#x}, which no buffer holds")
    finding.evidence["address"] = address
    name_place(finding, arena, os.getpid())
    assert told in finding.message


def test_device_memory_that_nobody_has_allocated_is_not_the_hosts(monkeypatch):
    """The program maps all of the arena, so every address in it is one of the process."""
    monkeypatch.setattr("ptxsim.driver.strange_places._in_process", lambda *_: True)
    arena = Arena(1 << 24)
    address = arena.allocate(1000) + (1 << 23)
    message = f"load: address {address:#x}, which no buffer holds"
    finding = Finding("out-of-bounds", "error", message)
    finding.evidence["address"] = address
    name_place(finding, arena, os.getpid())
    assert finding.message == message


@pytest.mark.parametrize("cooperative, verdict", [(None, "clean"), (True, "clean"), (False, "error")])
def test_only_a_cooperative_launch_has_the_barrier_of_a_grid(cooperative, verdict):
    """cooperative_groups traps where %envreg1:%envreg2 are null (cooperative_groups.h)."""
    text = "mov.u32 %h, %envreg1; mov.u32 %l, %envreg2; or.b32 %l, %l, %h; setp.eq.u32 %q, %l, 0; @%q trap;"
    ptx = f"{HEAD}.visible .entry k() {{ .reg .b32 %l, %h; .reg .pred %q; {text} ret; }}"
    result = ptxsim.load(ptx).launch("k", cooperative=cooperative)
    assert result.verdict == verdict
    assert all("only in a cooperative launch" in finding.message for finding in result.findings)
