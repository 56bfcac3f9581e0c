"""mbarrier.init by several threads (PTX ISA 9.7.13.15.9): those that write the same value get a review."""

from __future__ import annotations

import pytest
from ptx_samples import HEAD

import ptxsim

TEXT = (
    HEAD
    + """.visible .entry k() {{ .shared .align 8 .b64 bar; .reg .b32 %b, %t, %n; .reg .pred %one;
  mov.u32 %b, bar; mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0; and.b32 %n, %t, 1; add.u32 %n, %n, 32;
  {who} mbarrier.init.shared::cta.b64 [%b], {count}; bar.sync 0;
  @%one mbarrier.inval.shared::cta.b64 [%b]; ret; }}"""
)


@pytest.mark.parametrize("who, count, threads, verdict", [
    ("@%one", "32", 64, "clean"), ("", "32", 32, "review"), ("", "%n", 32, "error"), ("", "32", 64, "review"),
    ("", "%n", 64, "error"),
])  # fmt: skip
def test_who_initialises(who, count, threads, verdict):
    result = ptxsim.load(TEXT.format(who=who, count=count)).launch("k", block=threads, args=[])
    assert result.verdict == verdict, result.findings
    assert verdict == "clean" or {f.kind for f in result.findings} == {"mbarrier"}


@pytest.mark.parametrize("use, severity", [("", "review"), ("mbarrier.arrive.shared.b64 _, [%b];", "error")])
def test_one_thread_that_initialises_a_barrier_twice(use, severity):
    """Before any use, the later count holds: CUTLASS's example 112 does so."""
    again = f"mov.u32 %n, 0; AGAIN: mbarrier.init.shared::cta.b64 [%b], 1; {use} add.u32 %n, %n, 1;"
    again += " setp.lt.u32 %one, %n, 2; @%one bra AGAIN; ret; }"
    text = TEXT.format(who="", count="1").split("  mov.u32 %b")[0] + f"mov.u32 %b, bar; {again}"
    (found,) = ptxsim.load(text).launch("k", block=1, args=[]).findings
    assert found.severity == severity and "twice without mbarrier.inval" in found.message
