"""The line by which messages name an inlined instruction: the call that a reader looks for."""

import pytest

from ptxsim.frontend.ast import Instr
from ptxsim.frontend.parser import parse

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { .reg .b64 %x; .reg .b32 %r;\n"
FILES = '}\n.file 1 "/a/kernel.cu"\n.file 2 "/b/barrier.h"\n.file 3 "/a/role.cuh"\n'
ARRIVE = "mbarrier.arrive.shared.b64 %x, [8];\n"


def inlined(place: str, function: str, *calls: str) -> str:
    """The .loc of a line that stands in the place of a call, itself perhaps in the place of a call."""
    if len(calls) > 1:
        before = inlined(calls[0], "$L__around", *calls[1:])
    else:
        before = f".loc {calls[0]} 1\n"
    return f"{before}.loc {place} 1, function_name {function}, inlined_at {calls[0]} 1\n"


def told(body: str, files: str = FILES) -> list[tuple[str | None, int | None]]:
    function = parse(HEAD + body + "ret;\n" + files).functions["k"]
    return [(i.at.file, i.src) for i in function.body if isinstance(i, Instr) and i.op == "mbarrier"]


def test_a_line_of_the_kernel_is_its_own_name():
    assert told(f".loc 1 7 1\n{ARRIVE}") == [("kernel.cu", 7)]


def test_a_call_of_a_function_that_does_one_thing_names_what_it_does():
    assert told(inlined("2 49", "$L__arrive", "1 7") + ARRIVE) == [("kernel.cu", 7)]


def test_two_calls_of_one_line_have_two_names():
    twice = [inlined("2 49", "$L__arrive", at) + ARRIVE for at in ("1 7", "1 9")]
    assert told("".join(twice)) == [("kernel.cu", 7), ("kernel.cu", 9)]


def test_a_part_of_the_kernel_has_lines_of_its_own():
    """A function that is called once and does two things is not named by its call."""
    role = [inlined(at, "$L__role", "1 7") + ARRIVE for at in ("3 20", "3 21")]
    assert told("".join(role)) == [("role.cuh", 20), ("role.cuh", 21)]


def test_a_part_of_the_kernel_that_is_called_twice_is_named_by_its_calls():
    roles = [inlined(at, "$L__role", call) + ARRIVE for call in ("1 7", "1 8") for at in ("3 20", "3 21")]
    assert told("".join(roles)) == [("kernel.cu", 7)] * 2 + [("kernel.cu", 8)] * 2


def test_arithmetic_does_not_make_a_part_of_the_kernel():
    address = inlined("2 48", "$L__arrive", "1 7") + "add.u32 %r, %r, 8;\n"
    assert told(address + inlined("2 49", "$L__arrive", "1 7") + ARRIVE) == [("kernel.cu", 7)]


def test_calls_within_calls():
    """The wait of a library, called by a part of the kernel: the line of that part."""
    parts = [inlined("2 49", "$L__arrive", at, "1 7") + ARRIVE for at in ("3 20", "3 21")]
    named = [text.replace("$L__around", "$L__role") for text in parts]
    assert told("".join(named)) == [("role.cuh", 20), ("role.cuh", 21)]


SETUP = [".loc 1 7 1", ".loc 3 60 1, function_name $L__setup, inlined_at 1 7 1"]
INITS = [
    ".loc 2 30 1, function_name $L__pair, inlined_at 3 60 1",
    ".loc 2 40 1, function_name $L__wrap, inlined_at 2 30 1",
    ".loc 2 49 1, function_name $L__init, inlined_at 2 40 1",
]
WAIT = ".loc 3 70 1, function_name $L__setup, inlined_at 1 7 1\nmbarrier.arrive.shared.b64 %x, [64];\n"


def unrolled(copies: int) -> str:
    """A loop that calls one function in lines 30 and 31: only the first call of each line is told apart."""
    first, second = ("\n".join([*INITS, ARRIVE]).replace("2 30 1", at) for at in ("2 30 1", "2 31 1"))
    return "\n".join(SETUP) + "\n" + first + second + f"{INITS[-1]}\n{ARRIVE}" * 2 * (copies - 1) + WAIT


def test_copies_that_the_text_does_not_tell_apart_have_the_call_that_holds_them_all():
    assert told(unrolled(3)) == [("barrier.h", 30), ("barrier.h", 31)] + [("role.cuh", 60)] * 4 + [
        ("role.cuh", 70)
    ]


@pytest.mark.parametrize("copies, unsure", [(1, 0), (2, 2), (3, 4)])
def test_of_such_copies_it_is_known_that_they_may_be_another_call(copies, unsure):
    function = parse(HEAD + unrolled(copies) + "ret;\n" + FILES).functions["k"]
    assert sum(i.at.unsure for i in function.body if isinstance(i, Instr) and i.op == "mbarrier") == unsure


def test_the_branch_of_a_loop_tells_which_call_its_test_belongs_to():
    """Two waits in a loop that is unrolled: of the copies, only the branch has the place of its call."""
    test, at = (
        ".loc 2 49 1, function_name $L__test, inlined_at 2 61 1\n",
        ".loc 2 61 1, function_name $L__wait, ",
    )
    calls = [f"inlined_at 1 {line} 1\n" for line in (8, 9)]
    first = "".join(
        f".loc 1 {line} 1\n{at}{call}{test}{ARRIVE}" for line, call in zip((8, 9), calls, strict=True)
    )
    later = "".join(f"L{n}: {test}{ARRIVE}{at}{call}@%p bra L{n};\n" for n, call in enumerate(calls * 2))
    assert [line for _, line in told(f".reg .pred %p;\n{first}{later}")] == [8, 9] * 3


@pytest.mark.parametrize("files, file", [("}", None), (FILES, "kernel.cu")])
def test_a_text_that_names_no_files_still_gives_lines(files, file):
    assert told(f".loc 1 7 1\n{ARRIVE}", files) == [(file, 7)]


def test_what_the_compiler_made_has_no_line():
    assert told(f".loc 1 0 0\n{ARRIVE}") == [(None, None)]
