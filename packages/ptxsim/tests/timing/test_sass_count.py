"""ptxas's instructions, counted in its machine code: those of a loop that it unrolled four times.

`assembled/loop.cubin.xz` is the output of `assembled(loop.ptx, "sm_90a")`, ptxas of CUDA 13.0, and
`roles.cubin.xz` that of `assembled(roles.ptx, "sm_100a")`: jobs by a table, a branch by a uniform condition.
"""

import lzma
from pathlib import Path

import pytest

import ptxsim
from ptxsim.timing import assembler
from ptxsim.timing.assembler import assembled, located
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.execution import Execution, MemoryAccess
from ptxsim.timing.machine_code import EXIT, TABLE, UNIFORM, code
from ptxsim.timing.predict import COUNTED, GUESSED, predict, sample
from ptxsim.timing.sass_count import Counted

FOLDER = Path(__file__).parent / "assembled"
PTX = (FOLDER / "loop.ptx").read_text()
CUBIN = lzma.decompress((FOLDER / "loop.cubin.xz").read_bytes())
ROLES = code(lzma.decompress((FOLDER / "roles.cubin.xz").read_bytes()))
H200 = chip("h200")
PROGRAM = ptxsim.load(PTX).programs["sum"]


def of(start: str) -> float:
    found = Counted(PROGRAM, code(CUBIN)).counts
    rows = zip(PROGRAM.instrs, found, strict=True)
    return sum(count for instr, count in rows if instr is not None and instr.text.startswith(start))


@pytest.mark.parametrize(
    ("start", "count"),
    [
        ("ld.global", 1.0),  # four in the loop of the machine code, for four iterations
        ("add.f32", 1.0),
        ("add.s64 %rd6", 1.0),  # IMAD.WIDE, of this and the product before it
        ("mul.wide.u32 %rd5", 0.0),
        ("add.u32", 1.25),  # four sums, and the comparison of the loop
        ("@%p1 bra", 0.25),  # one branch for four iterations
        ("st.global", 1.0),
    ],
)
def test_an_iteration_has_its_share_of_an_unrolled_loop(start, count):
    assert of(start) == count


@pytest.mark.parametrize(("start", "cycles"), [("add.f32", (4 + 4 + 4 + 1) / 4), ("ld.global", 9 / 4)])
def test_the_machine_code_says_how_long_a_warp_waits_behind_each_row(start, cycles):
    """Four dependent sums: the warp stalls for the four cycles of each but the last."""
    found = Counted(PROGRAM, code(CUBIN)).stalls
    (row,) = (r for r, i in enumerate(PROGRAM.instrs) if i is not None and i.text.startswith(start))
    assert found[row] == cycles


def test_the_branch_of_the_unrolled_loop_goes_back_to_its_first_instruction():
    found = code(CUBIN)
    ((header, body),) = found.flow.loops.items()
    assert body == {header} and found.flow.blocks[header].end - found.flow.blocks[header].start == 18


def test_all_that_a_table_or_a_uniform_condition_leads_to_is_reached():
    blocks = [ROLES.flow.blocks[number] for number in ROLES.flow.order]
    reached = {place for block in blocks for place in range(block.start, block.end)}
    ends = max(place for place, opcode in enumerate(ROLES.opcodes) if opcode == EXIT)
    assert {TABLE, UNIFORM} <= {*ROLES.opcodes} and reached == {*range(ends + 1)}


def test_each_job_of_a_table_has_its_instructions():
    program = ptxsim.load((FOLDER / "roles.ptx").read_text()).programs["roles"]
    rows = zip(program.instrs, Counted(program, ROLES).counts, strict=True)
    stores = [count for instr, count in rows if instr is not None and instr.text.startswith("st.")]
    assert len(stores) == 4 and min(stores) >= 1


@pytest.mark.parametrize("cubin", [b"", b"\x7fELF and no more", CUBIN[:200]])
def test_what_is_no_machine_code_is_not_counted(cubin):
    assert code(cubin) is None


def test_machine_code_before_sm_90_is_not_read():
    """Its branches are encoded differently. The flags of the file say which encoding it has."""
    older = bytearray(CUBIN)
    older[49] = 80
    assert CUBIN[49] == 90 and code(bytes(older)) is None


def test_a_prediction_says_whether_its_instructions_were_counted():
    launch = lambda: ptxsim.load(PTX).prepare("sum", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, [0, 0, 0])  # noqa: E731
    assert predict(sample(launch(), sms=132), H200).notes == [GUESSED]
    assert predict(sample(launch(), sms=132, assembly=CUBIN), H200).notes == [COUNTED]


def test_each_instruction_that_begins_on_a_line_is_told_its_number():
    text = '.file 1 "a.cu"\n.entry k()\n{\n.reg .b32 %r<3>;\n.loc 1 7 2\n'
    text += "mov.b32 %r1,\n  1; // one\nL:\nret;\n}\n"
    told = ".section .debug_str\n{\n.b8 1\n}\n"
    expected = (
        ".entry k()\n{\n.reg .b32 %r<3>;\n.loc 1 6 0\nmov.b32 %r1,\n  1; // one\nL:\n.loc 1 9 0\nret;\n}\n"
    )
    assert located(text + told) == expected + '.file 1 "kernel.ptx"\n'


def test_of_two_directives_that_ptxas_does_not_take_together_one_is_left():
    text = ".entry k()\n.reqntid 64, 1, 1\n.maxntid 64\n{\nret;\n}\n.entry l()\n.maxntid 32\n{\nret;\n}\n"
    assert located(text).splitlines()[1:5] == [".reqntid 64, 1, 1", "", "{", ".loc 1 5 0"]
    assert located(text).count(".maxntid") == 1


def test_without_ptxas_nothing_is_assembled(monkeypatch):
    monkeypatch.setattr(assembler, "ptxas", lambda: None)
    assert assembled(PTX, "sm_90a") == b""


def test_what_was_assembled_is_not_assembled_again(monkeypatch, tmp_path):
    tool, marks = tmp_path / "ptxas", tmp_path / "marks"
    tool.write_text(f'#!/bin/sh\necho once >> {marks}\nfor last; do :; done\nprintf code > "$last"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PTXSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(assembler, "ptxas", lambda: tool)
    assert [assembled(PTX, arch) for arch in ("sm_90a", "sm_90a", "sm_100a")] == [b"code"] * 3
    assert marks.read_text() == "once\n" * 2


def test_what_ptxas_refuses_is_not_counted(monkeypatch, tmp_path):
    tool = tmp_path / "ptxas"
    tool.write_text("#!/bin/sh\nexit 255\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PTXSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(assembler, "ptxas", lambda: tool)
    assert assembled(PTX, "sm_90a") == b"" and not list(tmp_path.glob("cache/sass/*"))


@pytest.mark.parametrize(("start", "more"), [("ld.global", 2.0), ("st.global", 2.0)])
def test_what_ptxas_puts_before_an_access_takes_its_slots(start, more):
    row = next(r for r, i in enumerate(PROGRAM.instrs) if i is not None and i.text.startswith(start))
    step = MemoryAccess(row, False, start.startswith("st"), 128, 4, 0, lines=1)
    plain, counted = (
        [1.0] * len(PROGRAM.instrs),
        [1.0 + more * (r == row) for r in range(len(PROGRAM.instrs))],
    )
    slots = [
        with_costs(Execution(PROGRAM.instrs, 1, 1, [[step]], sass_counts=k), H200).slots
        for k in (plain, counted)
    ]
    assert slots[1] - slots[0] == more
