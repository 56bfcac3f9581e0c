"""ptxsim.parser: every fault is a PtxError that names its line; garbage never hangs; speed."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_samples import HEAD, kernel, sample_ptx

from ptxsim.frontend import ast as p
from ptxsim.frontend.parser import parse

BAD = {
    "": "starts with .version",
    ".version 9.0\nfoo": "module scope",
    HEAD + ".bogus 3": "unknown directive",
    HEAD + ".global .u32 x": "text ends here",
    HEAD + ".global .u32 x; .global .u32 x;": "declared twice",
    HEAD + ".global .foo x;": "does not belong",
    HEAD + ".global x;": "no type",
    HEAD + ".global .align 3 .u32 x;": "power of two",
    HEAD + ".global .u32 x[2] = {1,2,3};": "more than 2",
    HEAD + ".global .u32 x[0x7fffffffffff] = {1};": "does not fit",
    HEAD + ".global .u32 x = 1/0;": "no value",
    HEAD + ".global .u32 x = 99999999999999999999;": "64 bits",
    HEAD + ".global .u32 x = 09;": "octal",
    HEAD + ".global .u64 x = nowhere;": "undeclared 'nowhere'",
    HEAD + ".global .u8 x = 1.5;": "floating-point initialiser",
    HEAD + ".entry k() .bogus { }": "unknown function directive",
    HEAD + ".entry k() { add.u32 %r1, %r2, 3; }": "undeclared register '%r1'",
    HEAD + ".entry k() { bra NOWHERE; }": "undeclared name 'NOWHERE'",
    HEAD + ".entry k() { { L: ret; } bra L; }": "undeclared name 'L'",
    HEAD + ".entry k() { L: L: ret; }": "declared twice",
    HEAD + ".entry k() { .reg .b32 a; .reg .b32 a; }": "declared twice",
    HEAD + ".entry k() { .reg .b32 %r<999999999>; }": "at most",
    HEAD + ".entry k() { .reg .b32 a; mov.u32 a, -a; }": "cannot be negated",
    HEAD + ".entry k() { .reg .b32 a; mov.u32 a, [a+a]; }": "expected a constant",
    HEAD + ".entry k() { .reg .b32 a; mov.u32 a, 3 }": "expected ';'",
    HEAD + ".entry k() { ret; ": "no matching '}'",
    HEAD + ".entry k() { 5; }": "expected a statement",
    HEAD + ".entry k() { %r1; }": "is not an instruction",
    HEAD + ".entry k() { # }": "unexpected character",
    HEAD + ".entry k() { ret; } .entry k() { ret; }": "defined twice",
    HEAD + ".entry k() { " + "{" * 500 + "}" * 500 + " }": "nested too deep",
    HEAD + ".entry k() { foo " + "{" * 500 + ": ; }": "nested too deep",
    HEAD + ".entry k() { foo " + "(" * 5000 + "; }": "nested too deep",
    HEAD + ".entry k() { foo " + "-" * 5000 + "1; }": "nested too deep",
    HEAD + ".entry k() { foo " + "1?2:" * 5000 + "1; }": "nested too deep",
    HEAD + ".entry k() { foo " + "1" * 5000 + "; }": "too long",
    HEAD + ".entry k() { foo 1 << 99999999999 >> -1 / 0; }": "no value",
}


@pytest.mark.parametrize("text", BAD)
def test_errors_name_the_problem(text):
    with pytest.raises(p.PtxError, match=re.escape(BAD[text])) as caught:
        parse(text)
    assert str(caught.value) == f"line {caught.value.line}: {caught.value.what}: `{caught.value.text}`"


def test_error_names_line_and_text():
    with pytest.raises(p.PtxError) as caught:
        kernel("mov.u32 %r1, 0;\n  mov.u32 %r1, %r99;")
    assert caught.value.line == 9 and caught.value.text == "mov.u32 %r1, %r99;"


def calls_to_parse(lines: int) -> int:
    """Number of Python function calls, including C functions, that parsing a
    kernel of so many lines takes.
    """
    pair = "\tmad.lo.s32 \t%r{}, %r{}, {}, %r3;\n\tst.shared.v2.b32 [%rd1+{}], {{%r1, %r2}};"
    body = "\n".join(pair.format(n % 900, n % 77, n, n) for n in range(lines // 2))
    text = HEAD + ".entry k() {\n.reg .b32 %r<10000>;\n.reg .b64 %rd<10000>;\n" + body + "\n}\n"
    count = 0

    def counted(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        module = parse(text)
    finally:
        sys.setprofile(None)
    assert len(module.functions["k"].body) == lines
    return count


def test_work_grows_with_the_text_and_no_faster():
    short, long = calls_to_parse(500), calls_to_parse(2000)
    assert long < 4.1 * short


# --- garbage: PtxError or a Module, nothing else ---


def parse_or_error(text: str) -> None:
    try:
        assert isinstance(parse(text), p.Module)
    except p.PtxError as error:
        assert 1 <= error.line <= text.count("\n") + 1


VOCABULARY = """.entry .func k ( ) { } [ ] ; , : @ ! | - + * / % < > << ? = == ~ 0 1 7U 0x1F 1.5 0f3F800000
0dZ 09 9e9 _ %r1 %r2 %tid.x v.x ld.global.u32 call.uni mov .reg .b32 .v4 .f32 .align .global .shared .param
.u64 .pred p L .loc .pragma "s" " // /* @src .branchtargets .callprototype .extern .visible .version .target
.section generic WARP_SZ .file .alias"""
WORDS = [*VOCABULARY.split(), "\n", "é", "\0", "٣", "// @src 5\n"]


@settings(max_examples=300, deadline=2000)
@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_random_tokens(words):
    parse_or_error(HEAD + " ".join(words))
    parse_or_error(HEAD + ".entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .v4 .f32 v; " + " ".join(words))


@settings(max_examples=200, deadline=2000)
@given(st.text(max_size=200))
def test_random_text(text):
    parse_or_error(text)
    parse_or_error(HEAD + text)


@settings(max_examples=150, deadline=5000)
@given(st.data())
def test_truncated_and_damaged_files(data):
    text = sample_ptx(data.draw(st.sampled_from(["ampere-sm_80", "hopper-sm_90a", "switch-sm_80"])))
    cut = data.draw(st.integers(0, len(text)))
    parse_or_error(text[:cut])
    skip = data.draw(st.integers(1, 40))
    parse_or_error(text[:cut] + text[cut + skip :])
    parse_or_error(text[:cut] + data.draw(st.sampled_from(WORDS)) + text[cut:])
