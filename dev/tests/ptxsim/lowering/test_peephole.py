"""An addition that only makes the address behind it gives what the two instructions give one by one."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.jit import bytecode as ml

HEAD = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
.maxntid 32, 1, 1
{
.reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<4>;
.shared .align 1024 .b8 tile[4096];
ld.param.u64 %rd1, [k_param_0]; ld.param.u64 %rd2, [k_param_1];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3;
"""


def load(body: str):
    return ptxsim.load(HEAD + body + "ret;\n}\n")


def folds(module) -> int:
    return int((module.programs["k"].code[:, ml.OP] == ml.FOLD).sum())


def run(module, checks: bool):
    """Words of the output, and the result; the input counts up."""
    source, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    result = module.launch("k", grid=1, block=32, args=[source, out], checks=checks)
    return out, result


def agree(body: str, wanted: int) -> np.ndarray:
    """Output of a kernel with so many folded additions; it is the same where checks watch."""
    module = load(body)
    assert folds(module) == wanted
    (watched, first), (out, second) = (run(module, checks) for checks in (True, False))
    assert first.verdict == "clean" and not second.findings, first.findings
    assert np.array_equal(out, watched)
    assert first.stats["warp_instructions"] == second.stats["warp_instructions"]
    return out


OUT = "st.global.u32 [%rd5], %r10;\n"


def test_a_load_and_a_store():
    body = """add.s64 %rd6, %rd4, 64;
ld.global.u32 %r10, [%rd6+8];
add.s64 %rd7, %rd5, 256;
st.global.u32 [%rd7], %r10;
"""
    out = agree(body, wanted=2)
    assert np.array_equal(out[64:96], np.arange(18, 50)) and not out[:64].any()


@pytest.mark.parametrize("constant", [-64, "0xffffffffffffffc0"])
def test_a_negative_constant(constant):
    body = f"add.s64 %rd6, %rd4, 256;\nadd.u64 %rd7, %rd6, {constant};\nld.global.u32 %r10, [%rd7];\n{OUT}"
    assert np.array_equal(agree(body, wanted=1)[:32], np.arange(48, 80))


def test_addresses_of_shared_memory_wrap_at_32_bits():
    """The sum leaves 32 bits and comes back: base + 0xfffffff0 is 16 below the base."""
    body = f"""st.shared.u32 [%r4+64], %r1;
add.s32 %r6, %r4, 80;
add.u32 %r7, %r6, 0xfffffff0;
ld.shared.u32 %r10, [%r7];
{OUT}"""
    assert np.array_equal(agree(body, wanted=1)[:32], np.arange(32))


def test_a_copy_from_one_space_to_the_other():
    """Addition, load and store are one copy; the registers between them are never read."""
    body = """mul.wide.u32 %rd8, %r1, 16; add.s64 %rd9, %rd1, %rd8;
shl.b32 %r5, %r1, 4; add.s32 %r6, %r2, %r5;
add.s64 %rd10, %rd9, 512;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd10];
st.shared.v4.u32 [%r6], {%r10, %r11, %r12, %r13};
bar.sync 0;
ld.shared.u32 %r20, [%r4];
st.global.u32 [%rd5], %r20;
"""
    assert np.array_equal(agree(body, wanted=1)[:32], np.arange(128, 160))


def test_a_load_into_the_register_of_its_address():
    out = agree(f"add.s64 %rd4, %rd4, 64;\nld.global.u32 %rd4, [%rd4];\ncvt.u32.u64 %r10, %rd4;\n{OUT}", 0)
    assert np.array_equal(out[:32], np.arange(16, 48))


def test_a_load_over_the_base_of_its_address():
    """The first summand dies in the addition, so the loaded value may take its place in the register file."""
    body = """add.s64 %rd6, %rd4, 64;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd6];
add.s32 %r10, %r10, %r13;
st.global.u32 [%rd5], %r10;
"""
    body = body.replace("%rd4", "%rd9").replace(
        "add", "mul.wide.u32 %rd8, %r1, 16; add.s64 %rd9, %rd1, %rd8;\nadd", 1
    )
    assert np.array_equal(agree(body, wanted=1)[:32], 2 * (16 + 4 * np.arange(32)) + 3)


def test_a_sum_that_is_used_again_is_made():
    body = f"add.s64 %rd6, %rd4, 64;\nld.global.u32 %r10, [%rd6];\nld.global.u32 %r10, [%rd6+4];\n{OUT}"
    assert np.array_equal(agree(body, wanted=0)[:32], np.arange(17, 49))


def test_a_stored_sum_is_made():
    body = """mul.wide.u32 %rd6, %r1, 8; add.s64 %rd7, %rd2, %rd6;
add.s64 %rd7, %rd7, 64;
st.global.u64 [%rd7], %rd7;
"""
    addresses = agree(body, wanted=0).view(np.uint64)[8:40]
    assert np.array_equal(addresses - addresses[0], 8 * np.arange(32))


def test_a_sum_that_a_loop_carries_is_made():
    body = f"""mov.b32 %r30, 0;
L: add.s64 %rd4, %rd4, 4;
ld.global.u32 %r10, [%rd4];
add.s32 %r30, %r30, 1; setp.ne.s32 %p1, %r30, 5; @%p1 bra L;
{OUT}"""
    assert np.array_equal(agree(body, wanted=0)[:32], np.arange(5, 37))


def test_some_lanes():
    body = f"""setp.lt.u32 %p1, %r1, 7;
@!%p1 bra END;
add.s64 %rd6, %rd4, 64;
ld.global.u32 %r10, [%rd6];
{OUT}END:
"""
    out = agree(body, wanted=1)
    assert np.array_equal(out[:7], np.arange(16, 23)) and not out[7:].any()


def test_out_of_bounds_names_the_access():
    module = load(f"add.s64 %rd6, %rd4, 1024;\nld.global.u32 %r10, [%rd6];\n{OUT}")
    assert folds(module) == 1
    for checks in (True, False):
        _, result = run(module, checks)
        (finding,) = [f for f in result.findings if f.kind == "out-of-bounds"]
        assert "ld.global.u32" in finding.where["ptx"] and "0 B past the end" in finding.message


def test_a_constant_too_large_for_a_column():
    module = load(f"add.s64 %rd6, %rd4, 0x7ffffffffffffff0;\nld.global.u32 %r10, [%rd6+64];\n{OUT}")
    assert folds(module) == 0
    assert [f.kind for f in run(module, False)[1].findings] == ["out-of-bounds"]
