"""The state of a module between launches: its kernels, its variables, the
memory that each kernel is charged.
"""

import struct

import numpy as np
import pytest

import ptxsim

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
ADD = """.visible .entry add(.param .u64 p) {
  .reg .b64 %p; .reg .b32 %x;
  ld.param.u64 %p, [p];
  ld.global.u32 %x, [counter];
  add.u32 %x, %x, 1;
  st.global.u32 [counter], %x;
  st.global.u32 [%p], %x;
  ret;
}
"""
COUNTER = HEAD + ".visible .global .align 4 .u32 counter = 41;\n" + ADD


def word() -> np.ndarray:
    return np.zeros(1, np.uint32)


def shared_user(name: str, size: int) -> str:
    """A kernel that stores the address of its own `size` bytes of module-scope shared memory."""
    return f""".shared .align 16 .b8 of_{name}[{size}];
.visible .entry {name}(.param .u64 p) {{
  .reg .b64 %p; .reg .b32 %x;
  ld.param.u64 %p, [p];
  mov.u32 %x, of_{name};
  st.shared.u32 [%x], %x;
  st.global.u32 [%p], %x;
  ret;
}}
"""


def test_a_variable_keeps_what_launches_leave_in_it():
    module, out = ptxsim.load(COUNTER), word()
    seen = []
    for _ in range(3):
        assert module.launch("add", args=[out]).verdict == "clean"
        seen.append(int(out[0]))
    assert seen == [42, 43, 44]
    module.reset()
    assert module.variables["counter"].tolist() == [41]


def test_an_address_in_a_packed_struct_is_initialised_byte_by_byte():
    """As nvcc writes one behind a `char`: eight masked bytes; a word takes the lower half."""
    masks = ", ".join(f"0x{0xFF << 8 * n:X}(generic(counter) + 4)" for n in range(8))
    packed = f".visible .global .align 1 .b8 packed[10] = {{7, {masks}, 9}};\n"
    low = ".visible .global .align 4 .u32 low[2] = {counter, 5};\n"
    variables = ptxsim.load(HEAD + ".visible .global .align 4 .u32 counter = 41;\n" + packed + low).variables
    address = variables.addresses["counter"]
    assert variables["packed"].tobytes() == b"\7" + struct.pack("<Q", address + 4) + b"\t"
    assert variables["low"].tolist() == [address & 0xFFFF_FFFF, 5]


def test_the_parameters_of_each_kernel_are_listed():
    """Also those of one that is not modelled."""
    other = """.visible .entry other(.param .align 64 .b8 map[128], .param .f32 scale) {
  .reg .b32 %x; tex.1d.v4.s32.s32 {%x, %x, %x, %x}, [map, {%x}]; ret;
}
"""
    module = ptxsim.load(COUNTER + other)
    assert module.parameters("add") == [("p", "u64", 8)]
    assert module.parameters("other") == [("map", "b8", 128), ("scale", "f32", 4)]
    with pytest.raises(ValueError, match=r"no kernel named map .* \(kernels: add, other\)"):
        module.parameters("map")


def test_a_variable_can_be_read_and_set():
    module, out = ptxsim.load(COUNTER), word()
    module.variables["counter"] = 7
    module.launch("add", args=[out])
    assert out[0] == 8 and module.variables["counter"].dtype == np.uint32
    assert list(module.variables) == ["counter"]
    with pytest.raises(KeyError):
        module.variables["missing"]


def test_a_pointer_kept_in_a_variable_is_right_in_the_next_launch():
    text = """.global .align 8 .u64 kept; .global .align 4 .u32 other; .global .align 4 .u32 target = 5;
.visible .entry keep() { .reg .b64 %a; mov.u64 %a, target; st.global.u64 [kept], %a; ret; }
.visible .entry use(.param .u64 p) {
  .reg .b64 %p, %a; .reg .b32 %x;
  ld.param.u64 %p, [p]; ld.global.u32 %x, [other]; ld.global.u64 %a, [kept];
  ld.global.u32 %x, [%a]; st.global.u32 [%p], %x; ld.global.u32 %x, [target]; ret;
}"""
    module, out = ptxsim.load(HEAD + text), word()
    module.launch("keep")
    assert module.launch("use", args=[out]).verdict == "clean" and out[0] == 5


def test_a_kernel_is_charged_its_own_shared_memory():
    text = HEAD + shared_user("one", 200_000) + shared_user("two", 100_000)
    module = ptxsim.load(text)
    for name in ("one", "two"):
        assert module.launch(name, shared_bytes=20_000, args=[word()]).verdict == "clean"
    with pytest.raises(ValueError, match="260000 B of shared memory"):
        module.launch("one", shared_bytes=60_000, args=[word()])


def test_a_thread_has_no_more_local_memory_than_on_a_chip():
    text = HEAD + ".visible .entry k() { .reg .b32 %r; .local .b8 f[{n}]; st.local.b8 [f], 1; ret; }"
    assert ptxsim.load(text.replace("{n}", "524288")).launch("k").verdict == "clean"
    with pytest.raises(ValueError, match="1099511627776 B of local memory; a thread has at most 524288"):
        ptxsim.load(text.replace("{n}", "1099511627776")).launch("k")


def test_an_unmodelled_instruction_refuses_its_kernel_only():
    bad = ".visible .entry bad() { suld.b.1d.b32.trap {%r1}, [surface, {%r2}]; ret; }"
    bad = bad.replace("suld", ".reg .b32 %r<3>;\nsuld").replace("surface", "counter")
    module, out = ptxsim.load(COUNTER + bad), word()
    assert list(module.programs) == ["add", "bad"]
    assert module.launch("add", args=[out]).verdict == "clean" and out[0] == 42
    with pytest.raises(ptxsim.PtxError, match="suld"):
        module.launch("bad")
    with pytest.raises(ptxsim.PtxError, match="suld"):
        ptxsim.load(HEAD + ".global .u32 counter;\n" + bad)  # alone: there is nothing to run


@pytest.mark.parametrize("end", [b"", b"\0", b"\0\0rubbish"])
def test_bytes_are_read_up_to_the_first_nul(end):
    out = word()
    ptxsim.load(COUNTER.encode() + end).launch("add", args=[out])
    ptxsim.load(COUNTER + end.decode())
    assert out[0] == 42


def copier() -> str:
    return (
        HEAD
        + """.visible .entry k(.param .align 8 .b8 s[24]) {
  .reg .b64 %p, %q; .reg .b32 %x, %n;
  ld.param.u64 %p, [s]; ld.param.u64 %q, [s+16]; ld.param.u32 %n, [s+8];
  ld.global.u32 %x, [%p]; add.u32 %x, %x, %n; st.global.u32 [%q], %x; ret;
}"""
    )


def test_arguments_as_the_bytes_of_the_whole_block_with_memory_at_given_addresses():
    source, target, at = np.array([30], np.uint32), word(), 0x7200_0000_1000
    block = struct.pack("<QIxxxxQ", at, 12, at + 0x100_0000)
    memory = {at: source, at + 0x100_0000: target}
    result = ptxsim.load(copier()).launch("k", args=block, memory=memory)
    assert result.verdict == "clean" and target[0] == 42
    with pytest.raises(ValueError, match="takes 24 bytes"):
        ptxsim.load(copier()).launch("k", args=block[:20], memory=memory)
    with pytest.raises(ValueError, match="overlap"):
        ptxsim.load(copier()).launch("k", args=block, memory={at: source, at + 2: word()})


def test_an_address_outside_of_the_given_memory_is_out_of_bounds():
    at = 0x7200_0000_1000
    block = struct.pack("<QIxxxxQ", at, 12, at + 64)
    result = ptxsim.load(copier()).launch("k", args=block, memory={at: word()})
    assert {f.kind for f in result.findings} == {"out-of-bounds"}


def test_a_launch_that_changes_no_array_says_so():
    module = ptxsim.load(copier())
    source = np.array([30], np.uint32)
    for target, notes in ((word(), []), (np.array([42], np.uint32), ["the launch changed no array"])):
        args = [[(0, source), (8, np.uint32(12)), (16, target)]]
        result = module.launch("k", args=args)
        assert result.verdict == "clean" and result.notes == notes


TMA = (
    HEAD
    + """.visible .entry k(.param .align 64 .b8 s[192], .param .u64 out) {
  .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
  .reg .b32 %t, %b, %x; .reg .b64 %m, %o; .reg .pred %p;
  mov.u32 %t, tile; mov.u32 %b, bar; mov.b64 %m, s; add.u64 %m, %m, 64; cvta.param.u64 %m, %m;
  ld.param.u64 %o, [out];
  mbarrier.init.shared::cta.b64 [%b], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 64;
  cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%t], [%m, {0, 0, 0}], [%b];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;
  @!%p bra WAIT;
  ld.shared.u32 %x, [%t+4]; st.global.u32 [%o], %x; ret;
}"""
)


def test_a_tensor_map_inside_a_struct_with_a_stride_of_zero():
    """A batch of one may have any stride, and CUTLASS passes 0 (cuTensorMapEncodeTiled accepts it)."""
    data, out = np.arange(16, dtype=np.uint32).reshape(4, 4), word()
    tensor = ptxsim.TensorMap(data, box=(4, 4, 1), dims=(4, 4, 1), strides=(16, 0))
    result = ptxsim.load(TMA).launch("k", args=[[(64, tensor)], out])
    assert result.verdict == "clean", result.findings
    assert out[0] == 1


def test_an_illegal_map_is_one_finding_and_no_deadlock():
    data = np.arange(16, dtype=np.uint32).reshape(4, 4)
    good = ptxsim.TensorMap(data, box=(4, 4, 1), dims=(4, 4, 1), strides=(16, 64))
    from ptxsim.units.tensormap import RECORD, encoded

    record = bytearray(encoded(good, 0x7200_0000_0000))
    at = RECORD.fields["global_stride"][1]
    record[at : at + 8] = struct.pack("<Q", 20)  # a byte stride that is not a multiple of 16
    memory = {0x7200_0000_0000: data}
    result = ptxsim.load(TMA).launch("k", args=[[(64, bytes(record))], word()], memory=memory)
    assert len(result.findings) == 1, result.findings
    (finding,) = result.findings
    assert finding.kind == "descriptor" and "not multiples of 16 B" in finding.message
    assert "cuTensorMapEncode" in finding.hint


def test_a_trap_ends_the_launch():
    text = (
        HEAD
        + """.visible .entry k(.param .u64 p) { .reg .b64 %p; .reg .b32 %x; .reg .pred %q;
  ld.param.u64 %p, [p]; mov.u32 %x, %ctaid.x; setp.eq.u32 %q, %x, 0; @%q trap;
  mov.u32 %x, 1; st.global.u32 [%p], %x; ret; }"""
    )
    out = word()
    result = ptxsim.load(text).launch("k", grid=4, args=[out])
    assert [f.kind for f in result.findings] == ["illegal"] and out[0] == 0


def test_the_barrier_of_a_grid_lies_where_cooperative_groups_look():
    """%envreg1:%envreg2 point to {bytes, counter} in global memory (CUDA's
    cooperative_groups, driver_abi.h).
    """
    text = (
        HEAD
        + """.visible .entry k(.param .u64 p) { .reg .b64 %p, %w; .reg .b32 %x, %l, %h;
  ld.param.u64 %p, [p]; mov.u32 %h, %envreg1; mov.u32 %l, %envreg2; mov.b64 %w, {%l, %h};
  atom.add.release.gpu.u32 %x, [%w+4], 5; ld.acquire.gpu.u32 %x, [%w+4]; st.global.u32 [%p], %x; ret; }"""
    )
    out = word()
    for _ in range(2):  # each launch has its own
        assert ptxsim.load(text).launch("k", args=[out]).verdict == "clean" and out[0] == 5
