"""Unit instructions that the main loop executes in compiled code if nobody listens: for random operands the
same bits as their handlers give, and no handler is called.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_cp_async import SETUP
from test_ldmatrix import FILL, REVERSED
from test_mma import FORMS as MMA_FORMS
from test_mma import mma_kernel
from test_wgmma import COMMIT, DEPTH, DESC, FENCE, MMA, PREPARE, SHARED, ZERO
from test_wgmma import FILL as FILL_GROUP
from test_wgmma import TYPES as WGMMA_TYPES
from warp_kernels import register_kernel, vector
from wmma_kernels import FORMS as WMMA_FORMS
from wmma_kernels import kernel, mma, random_matrices

import ptxsim
from ptxsim.lowering.emit import Program
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.tensor_memory import POISON


@pytest.fixture
def both(monkeypatch):
    """`both(ptx, arrays, name)`: a launch leaves the same in the arrays with compiled code and without, and
    with it calls no handler of an instruction of that name.
    """
    asked = []

    def unit(self, split, row, mask, plain=Cluster.unit):
        asked.append(self.program.instrs[row].name)
        return plain(self, split, row, mask)

    def outcome(ptx: str, arrays: list[np.ndarray], **more) -> list[bytes]:
        asked.clear()
        copies = [array.copy() for array in arrays]
        ptxsim.load(ptx).launch("k", **{"block": 32, "args": copies, "checks": False} | more)
        return [array.tobytes() for array in copies]

    def compare(ptx: str, arrays: list[np.ndarray], name: str, **more) -> None:
        monkeypatch.setattr(Cluster, "unit", unit)
        quick = outcome(ptx, arrays, **more)
        assert not [one for one in asked if one.startswith(name)]
        with monkeypatch.context() as patch:
            patch.setattr(Program, "link", lambda self: None)
            assert outcome(ptx, arrays, **more) == quick
        assert [one for one in asked if one.startswith(name)]

    return compare


def bits(rng, count: int, width: int = 32) -> np.ndarray:
    """(count, 32) random patterns, including NaNs and infinities of all types."""
    some = rng.integers(0, 2**width, (count, 32), np.uint64)
    special = rng.choice(np.array([0, 0x7C007C00, 0xFC01FC00, 0x7F800000, 0x7FC00001], np.uint64), some.shape)
    return np.where(rng.random(some.shape) < 0.05, special, some).astype(f"u{width // 8}")


@pytest.mark.parametrize("form", MMA_FORMS[::5])
def test_mma(both, form):
    ptx, counts = mma_kernel(form)
    width = 64 if "f64" in form else 32
    given = bits(np.random.default_rng(7), sum(counts[1:]), width)
    both(ptx, [given, np.zeros((counts[0], 32), given.dtype)], "mma")


@pytest.mark.parametrize("form, count", [
    *((f"m8n8.x{n}{what}.b16", n) for n in (1, 2, 4) for what in (".shared", ".trans")),
    *((f"m16n16.x{n}.trans.shared.b8", 2 * n) for n in (1, 2)),
])  # fmt: skip
def test_ldmatrix(both, form, count):
    address = "%x2" if "shared" in form else "%y0"
    generic = "cvt.u64.u32 %y0, %x2; cvta.shared.u64 %y0, %y0;"
    load = f"ldmatrix.sync.aligned.{form} {vector('o', 0, count)}, [{address}];"
    ptx = register_kernel(f"{FILL} {REVERSED} {generic} {load}", 4, count, shared=512, target="sm_100a")
    both(ptx, [bits(np.random.default_rng(1), 4), np.zeros((count, 32), np.uint32)], "ldmatrix")


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("form", ["m8n8.x{}.shared.b16", "m8n8.x{}.trans.shared.b16", "m16n8.x{}.trans.b8"])
def test_stmatrix(both, form, count):
    store = f"stmatrix.sync.aligned.{form.format(count)} [%y0], {vector('r', 0, count)}; bar.sync 0;"
    store = store if "shared" not in form else store.replace("%y0", "%x2")
    generic = "cvt.u64.u32 %y0, %x2; cvta.shared.u64 %y0, %y0;"
    read = "shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%x1];"
    ptx = register_kernel(f"{REVERSED} {generic} {store} {read}", 4, 4, shared=512, target="sm_100a")
    both(ptx, [bits(np.random.default_rng(2), 4), np.zeros((4, 32), np.uint32)], "stmatrix")


@pytest.mark.parametrize("shape, kind, d, c", WMMA_FORMS)
def test_wmma(both, shape, kind, d, c):
    rng = np.random.default_rng([3, *map(ord, shape + kind + d + c)])
    matrices = random_matrices(rng, shape, kind, d, c)
    both(kernel(shape, matrices, mma(shape, matrices)), [one.array for one in matrices.values()], "wmma")


@pytest.mark.parametrize("copy", [
    *(f"cp.async.ca.shared.global [%x1], [%y0], {size};" for size in (4, 8, 16)),
    "cp.async.cg.shared.global.L2::128B [%x1], [%y0], 16;",
    "rem.u32 %x3, %t, 17; cp.async.cg.shared.global [%x1], [%y0], 16, %x3;",
    "setp.lt.u32 %p, %t, 9; cp.async.ca.shared.global [%x1], [%y0], 8, %p;",
    "setp.lt.u32 %p, %t, 9; @%p cp.async.ca.shared.global [%x1], [%y0], 8;",
])  # fmt: skip
def test_cp_async(both, copy):
    read = "ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%x1];"
    text = f"{SETUP} {copy} cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; {read}"
    ptx = register_kernel(text, 0, 4, shared=512)
    both(ptx, [bits(np.random.default_rng(4), 4), np.zeros((4, 32), np.uint32)], "cp.async")


@pytest.mark.parametrize("scale", ["%p", "%q", "1"])
@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("kinds", WGMMA_TYPES)
def test_wgmma(both, kinds, registers, scale):
    """Chains on the same accumulators, of random bits in all layouts, with every combination of options."""
    rng = np.random.default_rng([5, registers, *map(ord, "".join(kinds))])
    ptx, data, count = wgmma_chain(rng, kinds, registers, scale)
    both(ptx, [data, np.zeros((count, 128), np.uint32)], "wgmma", block=128)


REDUCTIONS = [
    *(f"{op}.{kind}" for op in ("add", "min", "max") for kind in ("u32", "s32")),
    *(f"{op}.b32" for op in ("and", "or", "xor")),
    *(
        f"{op}{absolute}{nan}.f32"
        for op in ("min", "max")
        for absolute in ("", ".abs")
        for nan in ("", ".NaN")
    ),
]


@pytest.mark.parametrize("form", REDUCTIONS)
def test_redux(both, form):
    """The last two consist of NaNs only, and of zeros of both signs."""
    given = bits(np.random.default_rng(6), 8)
    given[6:] = np.full(32, 0x7F80_0001), np.where(np.arange(32) % 5, 0x8000_0000, 0)
    text = "".join(f"redux.sync.{form} %o{i}, %r{i}, -1;" for i in range(8))
    both(register_kernel(text, 8, 8, target="sm_100a"), [given, np.zeros((8, 32), np.uint32)], "redux")


def test_a_whole_warp_that_meets(both):
    text = "bar.warp.sync -1; mov.b32 %o0, %r0;"
    arrays = [bits(np.random.default_rng(8), 1), np.zeros((1, 32), np.uint32)]
    both(register_kernel(text, 1, 1), arrays, "bar.warp")


def wgmma_chain(rng, kinds: tuple[str, ...], registers: bool, scale: str):
    """(PTX, input, outputs) of two wgmma on random register bits and random bits in shared memory."""
    n, (d, a, b) = int(rng.choice([8, 24, 64, 96, 256])), kinds
    k, count, halves = DEPTH[a], n // (4 if d == "f16" else 2), a in ("f16", "bf16")
    fields = rng.integers(0, 64, 6).tolist()  # strides of up to a kilobyte: some rows lie in the same place
    a_at, b_at = ((1024 + 16 * int(rng.integers(0, 64))) >> 4 for _ in range(2))
    layout = f"{int(rng.integers(4)) << 62 | int(rng.integers(8)) << 49 | fields[0] << 32 | fields[1] << 16}"
    signs = "" if d == "s32" else ", {}, {}".format(*rng.choice([-1, 1], 2))
    major = "".join(f", {bit}" for bit in rng.integers(0, 2, 1 if registers else 2)) if halves else ""
    given = "{%x4, %x5, %x6, %x7}" if registers else "%y2"
    one = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b} {vector('o', 0, count)}, {given}, %y3, "
    fill = "".join(f"mov.b32 %o{i}, %r{i};" for i in range(count))
    text = f"""{FILL_GROUP} bar.sync 0; {fill} mov.b64 %y2, {layout}; mov.b64 %y3, {layout};
    or.b64 %y2, %y2, {a_at}; or.b64 %y3, %y3, {b_at}; setp.ne.u32 %q, %t, %t;
    {FENCE} {one}{scale}{signs}{major}; {one}%p{signs}{major}; {COMMIT} wgmma.wait_group.sync.aligned 0;"""
    ptx = register_kernel(text, count, count, shared=SHARED).replace(
        "ld.global.b32 %r0", f"add.u64 %in, %in, {SHARED}; ld.global.b32 %r0"
    )
    data = bits(rng, 4 * (SHARED // 512 + count)).reshape(-1, 128)
    return ptx, data, count


@pytest.mark.parametrize("lanes", ["lt.u32 %q, %t, 1", "ge.u32 %q, %t, 1", "eq.u32 %q, %t, 33"])
def test_a_warp_that_has_parted_and_met_again_joins_its_group(both, lanes):
    """The warp continues in another split than the one it started with."""
    rng = np.random.default_rng(9)
    ptx, data, count = wgmma_chain(rng, ("f32", "f16", "f16"), False, "%p")
    part = f"setp.{lanes}; @%q bra ONE; add.u32 %x9, %t, 1; bra BOTH; ONE: mov.u32 %x9, 7; BOTH:"
    both(ptx.replace("setp.eq.u32 %p, %t, %t;", f"setp.eq.u32 %p, %t, %t; {part}", 1),
         [data, np.zeros((count, 128), np.uint32)], "wgmma", block=128)  # fmt: skip


def test_a_warp_that_stays_away_leaves_wgmma_to_the_handler():
    """The handler says what the three others wait for, and a copy of pending accumulators gets its value."""
    skip = "setp.lt.u32 %q, %t, 96; @!%q bra END;"
    text = f"{PREPARE} {DESC} {ZERO} {FENCE} {skip} {MMA} {COMMIT} wgmma.wait_group.sync.aligned 0; END:"
    args = [np.zeros(4, np.uint32), np.zeros((4, 128), np.uint32)]
    ptx = register_kernel(text, 0, 4, shared=16384)
    result = ptxsim.load(ptx).launch("k", block=128, args=args, checks=False)
    assert "wgmma that warp 3 never issues" in result.findings[0].message


def test_a_copy_under_way_is_for_its_handler():
    """In the order `adverse` a copy arrives as late as possible: not before its thread waits."""
    text = f"{SETUP} cp.async.ca.shared.global [%x1], [%y0], 4; ld.shared.b32 %o0, [%x1]; cp.async.wait_all;"
    ptx, out = register_kernel(text, 0, 1, shared=512), np.zeros((1, 32), np.uint32)
    args = [np.ones((32, 4), np.uint32), out]
    ptxsim.load(ptx).launch("k", block=32, args=args, checks=False, order="adverse")
    assert (out == 0xFFFF_FFFF).all()


def test_a_part_of_a_warp_is_for_the_handler_which_says_so():
    text = "setp.lt.u32 %p, %t, 9; @%p ldmatrix.sync.aligned.m8n8.x1.shared.b16 %o0, [%sm];"
    ptx = register_kernel(text, 0, 1, shared=512)
    args = [np.zeros(1, np.uint32), np.zeros((1, 32), np.uint32)]
    result = ptxsim.load(ptx).launch("k", block=32, args=args, checks=False)
    assert [f.kind for f in result.findings] == ["collective"]


def test_what_is_counted_of_compiled_products():
    ptx, counts = mma_kernel("m16n8k16.row.col.f32.f16.f16.f32")
    args = [np.zeros((sum(counts[1:]), 32), np.uint32), np.zeros((counts[0], 32), np.uint32)]
    for checks in (False, True):
        result = ptxsim.load(ptx).launch("k", block=32, args=args, checks=checks)
        assert result.stats["tensor_operations"] == 1


FRESH = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
  .shared .align 16 .b8 window[4096]; .reg .b64 %p; .reg .b32 %x, %y, %z; .reg .pred %q;
  ld.param.u64 %p, [p]; mov.u32 %x, window; mov.u32 %z, 7;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%x], 32; ld.shared.b32 %y, [%x];
  tcgen05.ld.sync.aligned.32x32b.x1.b32 %z, [%y]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%p], %z;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%y], %x; tcgen05.wait::st.sync.aligned;
  ld.shared.b32 %z, [%x+64]; st.global.b32 [%p+4], %z; st.shared.b32 [%x+64], %x;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %y, 32; ret;
}
"""


def test_memory_that_another_launch_has_used_is_as_it_was_at_first():
    module = ptxsim.load(FRESH)
    for _ in range(3):
        out = np.zeros(2, np.uint32)
        assert not module.launch("k", block=32, args=[out], checks=False).findings
        assert out.tolist() == [POISON, 0xFFFF_FFFF]


SPIN = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %p; .reg .b32 %x; .reg .pred %q; ld.param.u64 %p, [p];
AGAIN: atom.global.cas.b32 %x, [%p], 1, 2; setp.ne.u32 %q, %x, 1; @%q bra AGAIN; ret;
}
"""


def test_an_atomic_that_changes_nothing_is_a_poll():
    """The deadlock is found after a few iterations, not after many million instructions."""
    result = ptxsim.load(SPIN).launch("k", block=64, args=[np.zeros(1, np.uint32)], checks=False)
    assert [f.kind for f in result.findings] == ["deadlock"]
    assert result.stats["warp_instructions"] < 10_000
