"""What ptxas would leave of PTX, as ptxsim.timing.sass_guess counts it: one rule per program."""

import pytest

import ptxsim
from ptxsim.timing.sass_guess import guess

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    .reg .f32 %f<8>;
    ld.param.u64 %rd0, [out];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
"""
TAIL = """
    ret;
}
"""


def left(body: str) -> dict[str, int]:
    """Text of each instruction of the body, as written -> instructions left of
    it; the sum for equal texts.
    """
    program = ptxsim.load(HEAD + body + TAIL).programs["k"]
    found: dict[str, int] = {}
    for instr, slots in zip(program.instrs, guess(program), strict=True):
        if instr is not None:
            text = instr.text.rstrip("; ")
            found[text] = found.get(text, 0) + slots
    return found


def of(body: str, *starts: str) -> list[int]:
    """What is left of the instructions that start with these texts."""
    found = left(body)
    return [sum(slots for text, slots in found.items() if text.startswith(start)) for start in starts]


def test_a_constant_goes_into_the_offset_of_the_access_however_it_was_added():
    body = """
        shl.b32 %r2, %r1, 4;
        add.u32 %r3, %r1, 8;
        shl.b32 %r4, %r3, 4;
        add.u32 %r5, %r4, 64;
        st.shared.b32 [%r2], %r1;
        st.shared.b32 [%r5], %r1;
    """
    assert of(body, "shl.b32 %r2", "add.u32 %r3", "shl.b32 %r4", "add.u32 %r5") == [1, 0, 0, 0]


def test_an_offset_that_does_not_fit_is_added():
    body = """
        add.u32 %r2, %r1, 0x1000000;
        st.shared.b32 [%r2], %r1;
    """
    assert of(body, "add.u32") == [1]


def test_a_value_is_computed_once_and_a_branch_keeps_what_the_other_has():
    body = """
        xor.b32 %r2, %r1, %r0;
        xor.b32 %r3, %r0, %r1;
        st.shared.b32 [%r1], %r2;
        st.shared.b32 [%r1+4], %r3;
        setp.eq.u32 %p0, %r0, 3;
        @%p0 bra OTHER;
        and.b32 %r4, %r1, %r0;
        st.shared.b32 [%r1+8], %r4;
        bra END;
    OTHER:
        and.b32 %r5, %r1, %r0;
        xor.b32 %r6, %r1, %r0;
        st.shared.b32 [%r1+8], %r5;
        st.shared.b32 [%r1+12], %r6;
    END:
    """
    starts = ("xor.b32 %r2", "xor.b32 %r3", "and.b32 %r4", "and.b32 %r5", "xor.b32 %r6")
    assert of(body, *starts) == [1, 0, 1, 1, 0]


LOOP = """
        mov.u32 %r10, 0;
    AGAIN:
        {inside}
        add.u32 %r10, %r10, 1;
        setp.lt.u32 %p0, %r10, %r0;
        @%p0 bra AGAIN;
"""


def test_what_stays_the_same_in_a_loop_leaves_it_and_what_changes_stays():
    body = LOOP.format(
        inside="""
        and.b32 %r2, %r1, %r0;
        xor.b32 %r3, %r2, %r10;
        st.shared.b32 [%r1], %r3;
    """
    )
    starts = ("and.b32", "xor.b32", "add.u32 %r10", "setp", "@%p0 bra")
    assert of(body, *starts) == [0, 1, 1, 1, 1]


def test_a_register_that_another_way_overwrites_has_a_new_value_where_they_meet():
    body = """
        xor.b32 %r2, %r1, %r0;
        mov.u32 %r3, %r1;
        setp.eq.u32 %p0, %r0, 3;
        @%p0 bra MEET;
        mov.u32 %r3, %r0;
    MEET:
        xor.b32 %r4, %r3, %r0;
        st.shared.b32 [%r1], %r2;
        st.shared.b32 [%r1+4], %r4;
    """
    assert of(body, "xor.b32 %r2", "xor.b32 %r4") == [1, 1]


def test_what_nobody_reads_goes_and_takes_along_what_it_read():
    body = """
        xor.b32 %r2, %r1, %r0;
        and.b32 %r3, %r2, 7;
        st.shared.b32 [%r1], %r0;
    """
    assert of(body, "xor", "and", "st") == [0, 0, 1]


@pytest.mark.parametrize(
    "inner, outer",
    [
        ("mul.lo.s32 %r2, %r1, %r0", "add.s32 %r3, %r2, %r0"),
        ("shl.b32 %r2, %r1, 3", "add.s32 %r3, %r2, %r0"),
        ("add.s32 %r2, %r1, %r0", "add.s32 %r3, %r2, %r1"),
        ("xor.b32 %r2, %r1, %r0", "and.b32 %r3, %r2, 48"),
    ],
)
def test_two_become_one_unless_the_first_is_read_by_others_too(inner, outer):
    body = f"{inner};\n{outer};\nst.shared.b32 [%r1], %r3;\n"
    assert sum(of(body, inner, outer)) == 1
    assert sum(of(body + "st.shared.b32 [%r1+4], %r2;\n", inner, outer)) == 2


def test_64_bits_are_two_and_a_widening_product_with_its_sum_one():
    body = "cvt.u64.u32 %rd1, %r1;\nadd.s64 %rd2, %rd0, %rd1;\nst.global.b32 [%rd2], %r0;\n"
    assert of(body, "cvt.u64", "add.s64") == [0, 2]
    body = "mul.wide.u32 %rd1, %r1, 12;\nadd.s64 %rd2, %rd0, %rd1;\nst.global.b32 [%rd2+8], %r0;\n"
    assert of(body, "mul.wide", "add.s64") == [0, 1]


def test_of_a_sum_that_is_cut_to_32_bits_only_those_are_computed():
    body = """
        mul.wide.u32 %rd1, %r1, 4;
        add.s64 %rd2, %rd0, %rd1;
        cvt.u32.u64 %r2, %rd2;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];
        st.shared.b32 [%r1], %r3;
    """
    assert sum(of(body, "mul.wide", "add.s64", "cvt.u32.u64")) == 1


def test_a_guarded_instruction_stays_if_its_result_is_read():
    body = "setp.eq.u32 %p0, %r0, 3;\n@%p0 mov.u32 %r1, 5;\nst.shared.b32 [%r0], %r1;\n"
    assert of(body, "@%p0 mov.u32 %r1, 5", "setp") == [1, 1]
    assert of(body.replace("[%r0], %r1", "[%r0], %r0"), "@%p0 mov.u32 %r1, 5", "setp") == [0, 0]


def test_a_second_division_by_the_same_number_is_cheaper():
    body = """
        mov.f32 %f1, 0f3F000000;
        cvt.rn.f32.u32 %f2, %r1;
        cvt.rn.f32.u32 %f3, %r0;
        div.full.f32 %f4, %f1, %f2;
        div.full.f32 %f5, %f3, %f2;
        st.shared.f32 [%r1], %f4;
        st.shared.f32 [%r1+4], %f5;
    """
    assert of(body, "div.full.f32 %f4", "div.full.f32 %f5") == [9, 3]


def test_counts_of_saved_kernels_are_near_those_of_ptxas():
    """Saved kernels of straight-line code, where SASS can be compared with PTX: within 15 %."""
    from research.time.run import SETS, load

    counted = {  # by research/time/sass_counts.py, CUDA 13.0
        "pyptx_pipelined_5120x5120x1024": 2930,
        "softmax_16384x2048": 168,
        "softmax_4096x8192": 492,
    }
    saved = {s.name: s.artifact for s in [*load(SETS[0]), *load(SETS[1])]}
    for name, count in counted.items():
        (program,) = ptxsim.load(saved[name].ptx).programs.values()
        assert sum(guess(program)) == pytest.approx(count, rel=0.15), name


def test_a_jump_table_leads_to_all_its_targets():
    jump = "T: .branchtargets L0, L1; brx.idx %r1, T;"
    arms = "L0: add.u32 %r2, %r0, 1; bra L2; L1: add.u32 %r2, %r0, 2; L2:"
    slots = left(f"{jump} {arms} st.global.u32 [%rd0], %r2;")
    assert slots["add.u32 %r2, %r0, 1"] and slots["add.u32 %r2, %r0, 2"]


def test_whole_numbers_are_divided_by_the_same_number_with_one_reciprocal():
    body = """
        div.s32 %r2, %r1, %r0;
        rem.s32 %r3, %r2, %r0;
        div.s32 %r4, %r3, %r0;
        rem.u32 %r5, %r4, %r1;
        st.global.b32 [%rd0], %r5;
    """
    assert of(body, "div.s32 %r2", "rem.s32 %r3", "div.s32 %r4", "rem.u32 %r5") == [23, 11, 13, 14]


def test_a_product_of_32_bits_is_no_part_of_a_sum_of_64():
    body = """
        mul.lo.u32 %r2, %r1, %r0;
        cvt.u64.u32 %rd2, %r2;
        add.u64 %rd3, %rd2, %rd0;
        st.global.b64 [%rd0], %rd3;
    """
    assert of(body, "mul.lo.u32", "add.u64") == [1, 2]


def test_a_half_that_is_read_twice_is_not_copied_before():
    body = """
        ld.global.b16 %h1, [%rd0];
        ld.global.b16 %h2, [%rd0+2];
        mov.b32 %r2, {%h1, %h1};
        mov.b32 %r3, {%h1, %h2};
        fma.rn.f16x2 %r4, %r2, %r3, %r1;
        st.global.b32 [%rd0], %r4;
    """
    assert of(body, "mov.b32 %r2", "mov.b32 %r3") == [0, 1]


def test_functions_of_floats_scale_what_is_very_small():
    body = """
        ld.global.f32 %f1, [%rd0];
        ex2.approx.f32 %f2, %f1;
        lg2.approx.ftz.f32 %f3, %f2;
        st.global.f32 [%rd0], %f3;
    """
    assert of(body, "ex2", "lg2") == [4, 1]


def test_a_constant_that_a_branch_chooses_is_an_instruction():
    body = """
        mov.b32 %r2, 7;
        mov.b32 %r3, 0;
        mov.b32 %r4, 5;
        setp.lt.s32 %p1, %r1, %r0;
        @%p1 bra $chosen;
        mov.b32 %r2, 9;
        mov.b32 %r3, %r1;
    $chosen:
        add.s32 %r5, %r1, %r4;
        st.global.b32 [%rd0], %r2;
        st.global.b32 [%rd0+4], %r3;
        st.global.b32 [%rd0+8], %r5;
    """
    found = of(body, "mov.b32 %r2, 7", "mov.b32 %r2, 9", "mov.b32 %r3, 0", "mov.b32 %r4", "mov.b32 %r3, %r1")
    assert found == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("pair", ["f16x2.e4m3x2 %r2, %s1", "bf16x2.ue8m0x2 %r2, %s1"])
def test_a_pair_of_narrow_floats_is_widened_by_an_instruction(pair):
    body = f".reg .b16 %s1; cvt.u16.u32 %s1, %r1;\ncvt.rn.{pair};\nst.shared.b32 [%r1], %r2;\n"
    assert of(body, f"cvt.rn.{pair}") == [1]
