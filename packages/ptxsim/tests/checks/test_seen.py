"""The first finding lists what was seen of its barriers, if its cause has rivals."""

from __future__ import annotations

import ptxsim

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
ROUNDS = """.extern .shared .align 8 .b8 bars[];
.visible .entry k() { .reg .pred %p, %q, %more; .reg .b32 %a, %t, %i; .reg .b64 %s;
  mov.u32 %a, bars; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; mov.u32 %i, 0;
  @%p mbarrier.init.shared.b64 [%a], 1;
  @%p mbarrier.init.shared.b64 [%a+8], 1;
  bar.sync 0;
  setp.eq.u32 %p, %t, 32;
  .loc 1 7 1
  @%p mbarrier.arrive.shared.b64 %s, [%a];
  @%p mbarrier.arrive.shared.b64 %s, [%a+SECOND];
first:
  .loc 1 8 1
  mbarrier.try_wait.parity.shared.b64 %q, [%a], 0;
  @!%q bra first;
second:
  mbarrier.try_wait.parity.shared.b64 %q, [%a+8], 0;
  @!%q bra second;
  ret; }
"""
SLOTS = [("bars", "uint64", 0, 16)]


def run(second: str):
    text = HEAD + ROUNDS.replace("SECOND", second) + '.file 1 "kernel.cu"\n'
    return ptxsim.load(text).launch("k", block=64, shared_bytes=16, names=SLOTS)


def test_a_slot_that_is_signalled_twice_shows_in_the_numbers():
    assert run("8").verdict == "clean"
    first, *others = run("0").findings
    assert first.evidence["seen"] == [
        "seen of bars, init(1):",
        "  warp 1 lane 0 arrives (line 7): 2 times on [0], 0 on [1]",
        "is each of these intended, by these threads and this often?",
    ]
    assert first.message.endswith("and this often?")
    assert not any("seen" in other.evidence for other in others)


def test_of_a_cause_without_rivals_nothing_more_is_said():
    text = HEAD + ROUNDS.replace("SECOND", "4") + '.file 1 "kernel.cu"\n'
    (first, *_) = ptxsim.load(text).launch("k", block=64, shared_bytes=16, names=SLOTS).findings
    assert first.evidence["cause"] == "uninitialised" and "seen" not in first.evidence


def test_how_often_it_happened_stands_behind_the_first_sentence():
    told = str(ptxsim.Finding("race", "error", "two writes\n  seen of bars:", count=3))
    assert told.splitlines() == ["error: race: two writes (3 accesses)", "  seen of bars:"]
