"""Accesses to a variable that no thread can change are not reported to
listeners: a table, a text to print.
"""

from __future__ import annotations

import pytest

import ptxsim
from ptxsim.checks.only_read import only_read

MODULE = """.version 9.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 list);
.global .align 4 .b32 table[4] = {10, 20, 30, 40};
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.global .align 8 .u64 pointer = generic(table);
.func show (.param .b64 where)
{
.reg .b64 %a; .reg .b32 %v;
ld.param.b64 %a, [where];
mov.b32 %v, 7;
EFFECT
ret;
}
.visible .entry k(.param .u64 pout) {
.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p;
ld.param.u64 %d1, [pout]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
setp.lt.u32 %p, %r1, 99;
mov.u32 %r2, 5;
BODY
st.global.u32 [%d1], %r2; ret;
}
"""
AT = "mov.u64 %d3, table; add.u64 %d4, %d3, 4;"
CALL = "{ .param .b64 a; cvta.global.u64 %d4, %d4; st.param.b64 [a], %d4; call.uni show, (a); }"
PRINT = """mov.u64 %d5, text; cvta.global.u64 %d5, %d5; @%p bra ON;
{ .param .b64 a; .param .b64 b; .param .b32 r;
st.param.b64 [a], %d5; st.param.b64 [b], 0; call.uni (r), vprintf, (a, b); ld.param.b32 %r3, [r]; } ON:"""
CASES = {  # body, what the function does with its argument, whether the variables cannot change
    "reads a table": (AT + "ld.global.u32 %r2, [%d4];", "", True),
    "may print a text": (PRINT, "", True),
    "writes to it": (AT + "st.global.u32 [%d4], %r1;", "", False),
    "may write to it": (AT + "@!%p st.global.u32 [%d4], %r1;", "", False),
    "adds to it": (AT + "red.global.add.u32 [%d3], 1;", "", False),
    "gives its address away": (AT + "@!%p st.global.u64 [%d1], %d4;", "", False),
    "gives it to a function that reads": (AT + CALL, "ld.u32 %v, [%a];", True),
    "gives it to a function that writes": (AT + CALL, "st.u32 [%a], %v;", False),
    "takes its address from memory": (
        "ld.global.u64 %d6, [pointer]; @!%p st.u32 [%d6], %r1; ld.u32 %r2, [%d6];",
        "",
        False,
    ),
}


@pytest.mark.parametrize(("body", "effect", "alone"), CASES.values(), ids=CASES)
def test_which_variables_are_only_read(body, effect, alone):
    module = ptxsim.load(MODULE.replace("EFFECT", effect).replace("BODY", body))
    program = module.programs["k"]
    names = set(module.variables.used_by(program.slots.named))
    assert (only_read(module.module, program, names) == names) == alone
