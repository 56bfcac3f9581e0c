"""Findings on arbitrary code: file, line, function and inlining of the source; its wording; one per line."""

import numpy as np
import pytest

import ptxsim

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
BODY = """.visible .entry _Z4racyPKfPf(.param .u64 a, .param .u64 b) {
  .reg .b64 %a, %b, %o; .reg .b32 %t, %s, %u; .reg .f32 %x;
  .shared .align 4 .b8 _ZZ4racyPKfPfE4tile[256];
  .loc 1 4 3
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %a, %a, %o; add.u64 %b, %b, %o;
  mov.u32 %s, _ZZ4racyPKfPfE4tile; mad.lo.u32 %u, %t, 4, %s; xor.b32 %s, %u, 128;
  ld.global.f32 %x, [%a];
  .loc 1 5 3
  st.shared.f32 [%u], %x;
  BARRIER
  .loc 2 1 73, function_name $L__info_string0, inlined_at 1 8 5
  ld.shared.f32 %x, [%s];
  .loc 1 8 5
  st.global.f32 [%b], %x;
  .loc 2 1 73, function_name $L__info_string0, inlined_at 1 8 5
  ld.shared.f32 %x, [%s];
  .loc 1 8 5
  st.global.f32 [%b], %x;
  ret;
}
"""
FILES = """.file 1 "/home/someone/main.cu"
.file 2 "/home/someone/inner.cuh"
.section .debug_str
{
$L__info_string0:
.b8 95,90,53,105,110,110,101,114,80,75,102,105,0
}
"""


def run(text: str):
    data = np.arange(64, dtype=np.float32)
    return ptxsim.load(HEAD + text).launch("_Z4racyPKfPf", block=64, args=[data, data * 0])


@pytest.mark.parametrize("barrier, verdict", [("bar.sync 0;", "clean"), ("", "error")])
def test_places_of_a_race(barrier, verdict):
    result = run(BODY.replace("BARRIER", barrier) + FILES)
    assert result.verdict == verdict, result.findings
    if verdict == "clean":
        return
    assert len(result.findings) == 2  # write then read, read then write; two loads of one line are one
    told, finding = str(result.findings[0]), result.findings[0]
    inlined = "main.cu:8, in inner(float const*, int) at inner.cuh:1"
    assert inlined in told or "main.cu:5" in told
    assert "in racy(float const*, float*), CTA (0, 0, 0), warp " in told and "PTX line " in told
    assert "tile + " in finding.message and "line 5" in finding.message and finding.count > 1
    assert finding.where["source_file"].startswith("/home/someone/")


def test_without_files_findings_name_lines_of_the_ptx():
    (first, *_) = run(BODY.replace("BARRIER", "").replace(".loc", "// .loc")).findings
    assert "source" not in first.where and "PTX line" in first.message


def test_markers_go_before_locations():
    text = BODY.replace("BARRIER", "").replace("  st.shared.f32", "  // @src 77\n  st.shared.f32") + FILES
    lines = {side["line"] for f in run(text).findings for side in (f.evidence["first"], f.evidence["second"])}
    assert lines == {77}


DIVERGED = """.visible .entry k() { .reg .b32 %t; .reg .pred %p;
  .loc 1 3 1
  mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 5;
  .loc 1 4 1
  @%p bar.sync 0, 64;
  ret; }
"""


@pytest.mark.parametrize("file, words", [("kernel.cu", "__syncthreads()"), (None, "bar.sync 0")])
def test_the_words_are_those_of_the_source(file, words):
    text = HEAD + DIVERGED.replace(", 64", "") + (f'.file 1 "{file}"\n' if file else "")
    (finding, *_) = ptxsim.load(text).launch("k", block=64).findings
    assert words in finding.message and ("bar.sync 0" in finding.message) == (file is None)


def test_a_front_end_hands_in_its_own_words():
    """A table of hints by cause, and words for messages; an id without a cause is refused."""
    hints = ptxsim.Hints({"aligned": "nobody may skip sync_all()"}, {"bar.sync 0": "sync_all()"})
    text = HEAD + DIVERGED.replace(", 64", "")
    (told, *_) = ptxsim.load(text).launch("k", block=64, hints=hints).findings
    (plain, *_) = ptxsim.load(text).launch("k", block=64).findings
    assert told.evidence["cause"] == plain.evidence["cause"] == "aligned"
    assert told.hint == "nobody may skip sync_all()" and "sync_all()" in told.message
    assert plain.hint == ptxsim.CAUSES["aligned"].hint
    with pytest.raises(ValueError, match="no cause has the id sinc"):
        ptxsim.Hints({"sinc": ""})


UNROLLED = """.visible .entry k() { .reg .b32 %s;
  .shared .align 8 .b8 bars[64];
  mov.u32 %s, bars;
  .loc 1 7 1
  mbarrier.init.shared.b64 [%s+4], 1;
  mbarrier.init.shared.b64 [%s+12], 1;
  .loc 1 8 1
  mbarrier.init.shared.b64 [%s+20], 1;
  ret; }
"""


def test_what_differs_in_a_number_is_one_finding_for_a_line():
    """An unrolled loop gives the same finding for each of its copies."""
    findings = ptxsim.load(HEAD + UNROLLED + '.file 1 "kernel.cu"\n').launch("k", block=1).findings
    told = [(f.where["source_line"], f.count) for f in findings if "not 8-byte aligned" in f.message]
    assert told == [(7, 2), (8, 1)]


NESTED = """.visible .entry k() { .reg .b32 %t, %s;
  .shared .align 8 .b8 bars[64];
  mov.u32 %s, bars;
  .loc 1 5 1
  .loc 2 130 5, function_name $L__info_string0, inlined_at 1 5 1
  .loc 3 49 1, function_name $L__info_string0, inlined_at 2 130 5
  mbarrier.init.shared.b64 [%s+4], 1;
  .loc 1 9 1
  .loc 2 130 5, function_name $L__info_string0, inlined_at 1 9 1
  .loc 3 49 1, function_name $L__info_string0, inlined_at 2 130 5
  mbarrier.init.shared.b64 [%s+12], 1;
  .loc 2 130 5, function_name $L__info_string0, inlined_at 1 9 1
  mbarrier.init.shared.b64 [%s+20], 1;
  ret; }
.file 1 "kernel.cu"
.file 2 "barrier.h"
.file 3 "arrive.h"
"""


def test_a_line_that_is_inlined_twice_has_the_call_before_it():
    """PTX names the place of a call anew for each copy of what is inlined there (PTX ISA 11.5.3)."""
    findings = ptxsim.load(HEAD + NESTED).launch("k", block=1).findings
    told = [[line for _, line, _ in f.where["source"]] for f in findings if "not 8-byte" in f.message]
    assert told == [[49, 130, 5], [49, 130, 9], [130, 9]]


def test_a_function_inlined_in_itself_is_named_once_for_each_level():
    again = ".loc 1 5 1, function_name $L__info_string0, inlined_at 1 5 1\n"
    text = HEAD + NESTED.replace("  .loc 3 49 1", again * 30 + ".loc 3 49 1").replace("2 130 5", "1 5 1")
    (first, *_) = ptxsim.load(text).launch("k", block=1).findings
    assert len(first.where["source"]) < 5


TWO_ROLES = """.visible .entry k() { .reg .b32 %t, %s; .reg .b64 %x; .reg .pred %p;
  .shared .align 8 .b8 full[8]; .shared .align 8 .b8 empty[8];
  .loc 1 5 1
  mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0;
  .loc 2 30 5, function_name $L__init, inlined_at 1 6 1
  mbarrier.init.shared.b64 [full], 1;
  .loc 2 30 5, function_name $L__init, inlined_at 1 7 1
  mbarrier.init.shared.b64 [empty], 1;
  .loc 1 8 1
  bar.sync 0;
  @%p bra consumer;
  .loc 1 10 1
  .loc 3 40 5, function_name $L__produce, inlined_at 1 10 1
  .loc 2 49 5, function_name $L__arrive, inlined_at 3 40 5
  mbarrier.arrive.shared.b64 %x, [full];
  .loc 3 41 5, function_name $L__produce, inlined_at 1 10 1
  .loc 2 57 5, function_name $L__wait, inlined_at 3 41 5
w0: mbarrier.try_wait.parity.shared.b64 %p, [empty], 0;
  @!%p bra w0;
  ret;
consumer:
  .loc 2 57 5, function_name $L__wait, inlined_at 1 12 1
w1: mbarrier.try_wait.parity.shared.b64 %p, [full], 0;
  @!%p bra w1;
  ret; }
.file 1 "kernel.cu"
.file 2 "barrier.h"
.file 3 "producer.cuh"
"""


def test_messages_name_the_calls_in_the_kernel():
    """Not the line of a header that all waits have in common, nor the call of a whole role."""
    found = ptxsim.load(HEAD + TWO_ROLES).launch("k", block=2).findings
    finding = next(f for f in found if f.kind == "deadlock")
    assert finding.where["source_file"] == "producer.cuh" and finding.where["source_line"] == 41
    assert "warp 0 lane 0, producer.cuh:41: waiting for empty" in finding.message
    assert "at producer.cuh:41, in " in str(finding)
