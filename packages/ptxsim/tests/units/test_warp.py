"""shfl, vote, match, redux, elect, activemask, bar.warp.sync: whole warps, partial masks, diverged lanes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warp_kernels import register_kernel, run_registers

import ptxsim
from ptxsim.machine.cluster import Cluster

LANES = np.arange(32)


def run(
    text: str, data: np.ndarray, outputs: int, width: int = 32, expect="clean", order="program", trace=False
) -> np.ndarray:
    kernel = register_kernel(text, len(data), outputs, width, target="sm_100a")
    return run_registers(kernel, data, outputs, order, expect, trace)


def data(rows: int = 2, seed: int = 0, top: int = 2**32) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, top, (rows, 32), dtype=np.uint32)


# ---- shfl ----


def shuffled(mode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pseudo code of PTX ISA 9.7.9.6, lane by lane."""
    values, valid = a.copy(), np.zeros(32, bool)
    for lane in range(32):
        bval, cval, mask = int(b[lane]) & 31, int(c[lane]) & 31, (int(c[lane]) >> 8) & 31
        top, bottom = (lane & mask) | (cval & ~mask & 31), lane & mask
        j = {
            "up": lane - bval,
            "down": lane + bval,
            "bfly": lane ^ bval,
            "idx": bottom | (bval & ~mask & 31),
        }[mode]
        valid[lane] = j >= top if mode == "up" else j <= top
        values[lane] = a[j] if valid[lane] else a[lane]
    return values, valid


@settings(max_examples=25)
@given(st.sampled_from(["up", "down", "bfly", "idx"]), st.integers(0, 2**32 - 1), st.booleans())
def test_shfl(mode, seed, trace):
    rng = np.random.default_rng(seed)
    width = 2 ** int(rng.integers(0, 6))
    clamp = 0 if mode == "up" else 31
    c = np.full(32, (32 - width) << 8 | clamp) if rng.random() < 0.5 else rng.integers(0, 2**13, 32)
    b = rng.integers(0, 32, 32)
    x = np.stack([rng.integers(0, 2**32, 32), b, c]).astype(np.uint32)
    text = f"mov.u32 %o1, 0; shfl.sync.{mode}.b32 %o0|%p, %r0, %r1, %r2, 0xffffffff; selp.u32 %o1, 1, 0, %p;"
    out = run(text, x, 2, trace=trace)
    values, valid = shuffled(mode, x[0], b, c)
    assert np.array_equal(out[0], values) and np.array_equal(out[1], valid)


def test_shfl_of_two_halves_with_their_own_masks():
    text = """
    setp.lt.u32 %p, %t, 16;
    @%p bra LOW;
    shfl.sync.bfly.b32 %o0, %r0, 1, 31, 0xffff0000; bra OUT;
    LOW: shfl.sync.bfly.b32 %o0, %r0, 3, 31, 0x0000ffff;
    OUT: add.u32 %o0, %o0, 1;
    """
    x = data()
    out = run(text, x, 1)
    assert np.array_equal(out[0], x[0][np.where(LANES < 16, LANES ^ 3, LANES ^ 1)] + np.uint32(1))


def test_lanes_of_two_branches_meet_in_one_shuffle():
    """The same shuffle on both sides of a branch: all 32 lanes take part (sm_70 and later)."""
    text = """
    and.b32 %x0, %t, 1; setp.eq.u32 %p, %x0, 0; mov.u32 %x1, 5;
    @%p bra EVEN;
    add.u32 %x1, %r0, 100; shfl.sync.idx.b32 %o0, %x1, 6, 31, 0xffffffff; bra OUT;
    EVEN: add.u32 %x1, %r0, 200; shfl.sync.idx.b32 %o0, %x1, 7, 31, 0xffffffff;
    OUT: add.u32 %o1, %o0, 1;
    """
    x = data(1, top=1000)
    out = run(text, x, 2)
    assert np.array_equal(out[0], np.where(LANES % 2, x[0][6] + 200, x[0][7] + 100))


# ---- vote, activemask, match ----


def test_a_whole_warp_stays_in_the_main_loop_under_the_checks(monkeypatch):
    """Except where a listener, such as a trace, wants every instruction at its own time."""
    text = """elect.sync %x0|%p, 0xffffffff; vote.sync.any.pred %q, %p, 0xffffffff;
    vote.sync.ballot.b32 %o0, %q, 0xffffffff; shfl.sync.bfly.b32 %o0, %o0, 1, 31, 0xffffffff;"""
    handled: list[str] = []
    unit = Cluster.unit

    def noted(cluster, split, row, mask):
        handled.append(cluster.program.instrs[row].op)
        return unit(cluster, split, row, mask)

    monkeypatch.setattr(Cluster, "unit", noted)
    for trace, ops in ((False, []), (True, ["elect", "vote", "vote", "shfl"])):
        handled.clear()
        assert (run(text, data(1), 1, trace=trace) == 0xFFFF_FFFF).all() and handled == ops


def test_shfl_may_write_what_it_reads_or_nothing():
    x = data(1)
    text = """mov.b32 %o0, %r0; shfl.sync.bfly.b32 %o0|_, %o0, 5, 31, 0xffffffff;
    mov.u32 %o1, 0; shfl.sync.down.b32 _|%p, %r0, 3, 31, 0xffffffff; selp.u32 %o1, 1, 0, %p;"""
    out = run(text, x, 2)
    assert np.array_equal(out[0], x[0][LANES ^ 5]) and np.array_equal(out[1], LANES < 29)


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("members", [0xFFFF_FFFF, 0x0000_FF0F, 0x8000_0001])
def test_vote(members, trace):
    text = f"""
    setp.gt.u32 %p, %r0, 500; mov.u32 %x0, 1; shl.b32 %x0, %x0, %t; and.b32 %x0, %x0, {members};
    setp.eq.u32 %q, %x0, 0;
    mov.u32 %o0, 77; mov.u32 %o1, 77; mov.u32 %o2, 77; mov.u32 %o3, 77; mov.u32 %o4, 77;
    @%q bra OUT;
    vote.sync.ballot.b32 %o0, %p, {members};
    vote.sync.ballot.b32 %o4, !%p, {members};
    vote.sync.any.pred %q, %p, {members}; selp.u32 %o1, 1, 0, %q;
    vote.sync.all.pred %q, %p, {members}; selp.u32 %o2, 1, 0, %q;
    vote.sync.uni.pred %q, !%p, {members}; selp.u32 %o3, 1, 0, %q;
    OUT:
    """
    for seed, top in ((0, 1000), (1, 400), (2, 2**32)):
        x = data(1, seed, top)
        out = run(text, x, 5, trace=trace)
        inside = (members >> LANES) & 1 == 1
        votes = (x[0] > 500) & inside
        ballot = int((votes.astype(np.uint64) << LANES.astype(np.uint64)).sum())
        assert (out[:, ~inside] == 77).all()
        same = votes[inside].all() or not votes[inside].any()
        expected = [ballot, votes.any(), votes[inside].all(), same, members & ~ballot]
        assert all((out[i, inside] == e).all() for i, e in enumerate(expected))


def test_activemask_is_what_stands_together():
    text = """activemask.b32 %o0; setp.lt.u32 %p, %t, 11; mov.u32 %o1, 0; mov.u32 %o2, 0;
    @%p activemask.b32 %o1;
    @!%p bra OUT;
    activemask.b32 %o2;
    OUT:"""
    out = run(text, np.zeros((1, 32), np.uint32), 3)
    first = np.where(LANES < 11, (1 << 11) - 1, 0)
    assert (out[0] == 0xFFFF_FFFF).all() and np.array_equal(out[1], first) and np.array_equal(out[2], first)


@pytest.mark.parametrize("width", [32, 64])
def test_match(width):
    text = f"""match.any.sync.b{width} %x0, %r0, 0xffffffff; match.all.sync.b{width} %x1|%p, %r1, 0xffffffff;
    selp.u32 %x2, 1, 0, %p;
    cvt.u{width}.u32 %o0, %x0; cvt.u{width}.u32 %o1, %x1; cvt.u{width}.u32 %o2, %x2;"""
    for same in (True, False):
        x = np.random.default_rng(4).integers(0, 4, (2, 32)).astype(f"u{width // 8}") << np.uint8(width - 3)
        x[1] = 9 if same else x[1]
        out = run(text.replace(f"cvt.u{width}.u32", "mov.b32") if width == 32 else text, x, 3, width)
        expected = [sum(1 << k for k in range(32) if x[0, k] == x[0, lane]) for lane in range(32)]
        assert out[0].tolist() == expected
        assert (out[1] == (0xFFFF_FFFF if same else 0)).all() and (out[2] == same).all()


# ---- redux ----

REDUCTIONS = {"add": sum, "min": min, "max": max}


@pytest.mark.parametrize("members", [0xFFFF_FFFF, 0x00F0_0F01])
@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("operation", REDUCTIONS)
def test_redux_integers(operation, kind, members):
    text = f"""mov.u32 %o0, 0; mov.u32 %x0, 1; shl.b32 %x0, %x0, %t; and.b32 %x0, %x0, {members};
    setp.ne.u32 %p, %x0, 0; @%p redux.sync.{operation}.{kind} %o0, %r0, {members};"""
    x = data(1, 7)
    inside = (members >> LANES) & 1 == 1
    typed = x[0].view(np.int32) if kind == "s32" else x[0]
    expected = REDUCTIONS[operation](typed[inside].tolist()) & 0xFFFF_FFFF
    assert np.array_equal(run(text, x, 1)[0], np.where(inside, expected, 0))


@pytest.mark.parametrize(
    "operation, fold", [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)]
)
def test_redux_bits(operation, fold):
    x = data(1, 7)
    assert (run(f"redux.sync.{operation}.b32 %o0, %r0, 0xffffffff;", x, 1)[0] == fold.reduce(x[0])).all()


@pytest.mark.parametrize("modifiers, expected", [
    ("min", -7.5), ("max", 3.25), ("min.abs", 0.5), ("max.abs", 7.5),
    ("max.NaN", np.nan), ("min.abs.NaN", np.nan),
])  # fmt: skip
def test_redux_floats(modifiers, expected):
    x = np.array([[3.25, -7.5, 0.5, np.nan] * 8], np.float32)
    out = run(f"redux.sync.{modifiers}.f32 %o0, %r0, 0xffffffff;", x.view(np.uint32), 1).view(np.float32)
    assert np.array_equal(out[0], np.full(32, expected, np.float32), equal_nan=True)


# ---- elect, bar.warp.sync ----


@pytest.mark.parametrize("members", [0xFFFF_FFFF, 0xFFFF_FF00, 0x4000_0020])
def test_elect_chooses_one_member(members):
    text = f"""
    mov.u32 %o0, 99; mov.u32 %o1, 99; mov.u32 %x0, 1; shl.b32 %x0, %x0, %t; and.b32 %x0, %x0, {members};
    setp.ne.u32 %q, %x0, 0; @!%q bra OUT;
    elect.sync %o0|%p, {members}; selp.u32 %o1, 1, 0, %p;
    OUT:"""
    out = run(text, np.zeros((1, 32), np.uint32), 2)
    inside = (members >> LANES) & 1 == 1
    (winner,) = np.flatnonzero(out[1] == 1)
    assert inside[winner] and (out[0, inside] == winner).all() and (out[:, ~inside] == 99).all()


def test_elect_drops_the_lane_number():
    out = run("elect.sync _|%p, 0xffffffff; selp.u32 %o0, 1, 0, %p;", np.zeros((1, 32), np.uint32), 1)
    assert out[0].sum() == 1


def test_warp_sync_orders_lanes_that_stand_apart():
    text = """
    setp.lt.u32 %p, %t, 8; shl.b32 %x0, %t, 2; add.u32 %x0, %x0, %sm;
    @%p bra LOW;
    st.shared.u32 [%x0], %r0; bar.warp.sync 0xffffffff; mov.u32 %o0, 1; bra OUT;
    LOW: bar.warp.sync 0xffffffff; ld.shared.u32 %o0, [%x0+64];
    OUT:
    """
    x = data(1)
    out = run_registers(register_kernel(text, 1, 1, shared=128), x, 1)
    assert np.array_equal(out[0], np.where(LANES < 8, x[0][(LANES + 16) % 32], 1))


def test_members_that_exited_are_not_waited_for():
    text = """setp.ge.u32 %p, %t, 20; setp.eq.u32 %q, %t, %t; @%p exit; bar.warp.sync 0xffffffff;
    vote.sync.ballot.b32 %o0, %q, 0xffffffff; shfl.sync.down.b32 %o1, %r0, 1, 31, 0xffffffff;"""
    x = data(1)
    out = run(text, x, 2)
    assert (out[0, :20] == (1 << 20) - 1).all() and np.array_equal(out[1, :19], x[0, 1:20])


# ---- misuse ----

MISSING = """setp.lt.u32 %p, %t, 4; mov.u32 %o0, 0; @%p bra OUT;
{op}
OUT: mov.u32 %o1, 1; bar.sync 0;"""


@pytest.mark.parametrize("op, kind", [
    ("shfl.sync.idx.b32 %o0, %r0, 0, 31, 0xffffffff;", "deadlock"),
    ("bar.warp.sync 0xffffffff;", "deadlock"),
    ("bar.sync 1, 64;", "collective"),
    ("barrier.cluster.arrive.aligned;", "collective"),
])  # fmt: skip
def test_lanes_that_never_come(op, kind):
    """Lanes 0-3 branch around it; they wait where the branches reconverge."""
    result = ptxsim.load(register_kernel(MISSING.format(op=op), 1, 2)).launch(
        "k", block=32, args=[np.zeros((1, 32), np.uint32), np.zeros((2, 32), np.uint32)]
    )
    assert kind in [f.kind for f in result.findings]


LOWER_LANES = """{ .reg .pred %p; .reg .b32 %m; setp.ne.u32 %p, %r0, 0; mov.u32 %m, %lanemask_lt;
vote.sync.ballot.b32 %o0, %p, %m; }"""  # each lane's mask leaves itself out: an H200 refuses


@pytest.mark.parametrize("text, named", [
    ("shfl.sync.idx.b32 %o0, %r0, 0, 31, 0x0000ffff;", "lanes 16-31 execute shfl.sync with"),
    ("bar.warp.sync 0; mov.u32 %o0, 0;", "lanes all execute bar.warp.sync with"),
    (LOWER_LANES, "lane 0 executes vote.sync with mask 0x00000000, which leaves it out"),
])  # fmt: skip
def test_a_lane_outside_its_own_mask(text, named):
    result = ptxsim.load(register_kernel(text, 1, 1)).launch(
        "k", block=32, args=[np.zeros((1, 32), np.uint32), np.zeros((1, 32), np.uint32)]
    )
    assert [(f.kind, f.severity) for f in result.findings] == [("collective", "error")]
    assert named in result.findings[0].message


@pytest.mark.parametrize("text", [
    "shfl.up.b32 %o0, %r0, 1, 0;", "vote.ballot.b32 %o0, %p;", "redux.sync.mul.u32 %o0, %r0, 1;",
    "match.some.sync.b32 %o0, %r0, 1;", "elect.async %o0|%p, 1;", "shfl.sync.idx.b64 %o0, %r0, 0, 31, 1;",
])  # fmt: skip
def test_unknown_forms_are_refused(text):
    with pytest.raises(ptxsim.PtxError, match="not modelled|needs|no form"):
        ptxsim.load(register_kernel(text, 1, 1))


LEFT = """setp.lt.u32 %p, %t, {first}; {leave}
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
OUT: mov.u32 %o0, 0;"""


@pytest.mark.parametrize("leave", ["@!%p exit;", "@!%p bra OUT;"])
@pytest.mark.parametrize("first, found", [(1, True), (32, False)])
def test_lanes_that_have_left_are_missing_too(leave, first, found):
    """`if (lane == 0) dealloc();` at the end of a kernel: the other lanes may leave before or after it."""
    text = register_kernel(LEFT.format(first=first, leave=leave), 1, 1, target="sm_100a")
    arrays = [np.zeros((1, 32), np.uint32), np.zeros((1, 32), np.uint32)]
    result = ptxsim.load(text).launch("k", block=32, args=arrays)
    assert ("collective" in [f.kind for f in result.findings]) == found


@pytest.mark.parametrize("text", [
    "vote.ballot.sync.b32 %o0, %p, -1;",
    "vote.b32.ballot.sync %o0, %p, -1;",
    "shfl.idx.sync.b32 %o0, %r0, 5, 31, -1;",
    "shfl.b32.sync.idx %o0, %r0, 5, 31, -1;",
    "match.sync.any.b32 %o0, %r0, -1;",
    "redux.add.sync.u32 %o0, %r0, -1;",
])  # fmt: skip
def test_sync_may_stand_anywhere(text):
    """As ptxas accepts it, and CUB's radix sort writes it."""
    op, *mods = text.split()[0].split(".")
    mods.remove("sync")
    mods.sort(key=lambda mod: mod[-1].isdigit())  # the type last
    first = ["any", "sync"] if op == "match" else ["sync"]
    usual = ".".join([op, *first, *(mod for mod in mods if mod != "any")]) + text[text.index(" ") :]
    head = "{ .reg .pred %p; setp.lt.u32 %p, %r0, 7;"
    x = np.arange(32, dtype=np.uint32)[None] % 9
    one, other = (run_registers(register_kernel(f"{head} {t} }}", 1, 1), x, 1) for t in (text, usual))
    assert (one == other).all()
