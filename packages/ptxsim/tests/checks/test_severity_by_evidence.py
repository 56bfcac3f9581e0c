"""What published kernels do and chips forgive: no `error`, and the data that a chip delivers."""

import numpy as np
import pytest

import ptxsim

HEAD = ".version 9.0\n.target {target}\n.address_size 64\n"
TMEM = """.visible .entry k(.param .u64 p) {
  .shared .align 8 .b8 buffer[16];
  .reg .b64 %p, %o; .reg .b32 %t, %w, %a, %s, %x, %y; .reg .pred %first;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %first, %w, 0;
  mov.u32 %s, buffer;
  @%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 32;
  bar.sync 0;
  ld.shared.u32 %a, [%s];
  shl.b32 %y, %w, 21; add.u32 %y, %y, %a;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%y], {%t};
  tcgen05.wait::st.sync.aligned;
  xor.b32 %y, %y, BITS;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x}, [%y];
  tcgen05.wait::ld.sync.aligned;
  mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o; st.global.u32 [%p], %x;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @%first tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  @%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 32;
  ret;
}
"""


@pytest.mark.parametrize("bits, verdict", [(0, "clean"), (64 << 16, "review"), (128 << 16, "review")])
def test_lane_bits_above_a_warps_quarter_are_not_looked_at(bits, verdict):
    out = np.zeros(128, np.uint32)
    text = HEAD.format(target="sm_100a") + TMEM.replace("BITS", str(bits))
    result = ptxsim.load(text).launch("k", block=128, args=[out])
    # with bit 64 flipped: warps 1 to 3 address another quarter, and so does warp 0 (lane 64)
    assert result.verdict == verdict, result.findings
    assert {f.kind for f in result.findings} == ({"tmem-alloc"} if bits else set())
    assert all(("CTA of a pair" in f.hint) == (bits >> 23) for f in result.findings)
    assert out.tolist() == list(range(128))


def test_lanes_from_256_on_are_nobodys():
    text = HEAD.format(target="sm_100a") + TMEM.replace("BITS", str(256 << 16))
    assert ptxsim.load(text).launch("k", block=128, args=[np.zeros(128, np.uint32)]).verdict == "error"


CLUSTER = """.visible .entry k(.param .u64 p) {
  .shared .align 4 .b8 buffer[128];
  .reg .b64 %p, %o; .reg .b32 %t, %s, %r, %x, %rank; .reg .pred %other;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mov.u32 %s, buffer; mad.lo.u32 %s, %t, 4, %s;
  mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %other, %rank, 1;
  @%other bra WRITE;
  BARRIER
  ld.shared.u32 %x, [%s];
  mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o; st.global.u32 [%p], %x;
  ret;
WRITE:
  mapa.shared::cluster.u32 %r, %s, 0;
  st.shared::cluster.u32 [%r], %t;
  ret;
}
"""
ARRIVE = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"


@pytest.mark.parametrize("barrier, races", [(ARRIVE, False), ("", True)])
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_the_exit_of_a_thread_counts_at_the_barrier_of_the_cluster(barrier, races, order):
    out = np.zeros(32, np.uint32)
    text = HEAD.format(target="sm_90a") + CLUSTER.replace("BARRIER", barrier)
    result = ptxsim.load(text).launch("k", grid=2, block=32, cluster=2, args=[out], order=order)
    assert ("race" in {f.kind for f in result.findings}) == races, result.findings
    if not races:
        assert out.tolist() == list(range(32))


PAIR = """.visible .entry k(.param .u64 p) .reqnctapercluster 2, 1, 1 {
  .shared .align 8 .b8 buffer[16];
  .reg .b64 %p, %o; .reg .b32 %t, %w, %a, %s, %x, %y, %rank; .reg .pred %first;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %first, %w, 0;
  mov.u32 %s, buffer; mov.u32 %rank, %cluster_ctarank;
  @%first tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%s], 32;
  bar.sync 0;
  ld.shared.u32 %a, [%s];
  shl.b32 %y, %w, 21; add.u32 %y, %y, %a;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%y], {%t};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x}, [%y];
  tcgen05.wait::ld.sync.aligned;
  mad.lo.u32 %t, %rank, 128, %t;
  mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o; st.global.u32 [%p], %x;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  BARRIER
  tcgen05.fence::after_thread_sync;
  @%first tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  WHO
  @%first tcgen05.dealloc.cta_group::2.sync.aligned.b32 %a, 32;
  ret;
}
"""
NOT_THE_PEER = "setp.eq.and.u32 %first, %rank, 0, %first;"


@pytest.mark.parametrize(
    "barrier, who, severity", [(ARRIVE, "", None), ("", "", "review"), ("", NOT_THE_PEER, "error")]
)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_each_cta_of_a_pair_frees_behind_its_own_barrier(barrier, who, severity, order):
    out = np.zeros(256, np.uint32)
    text = HEAD.format(target="sm_100a") + PAIR.replace("BARRIER", barrier).replace("WHO", who)
    result = ptxsim.load(text).launch("k", grid=2, block=128, cluster=2, args=[out], order=order)
    said = {f.severity for f in result.findings if "read its half of them" in f.message}
    assert said == ({severity} if severity else set()), result.findings
    assert result.verdict == (severity or "clean") and out.tolist() == 2 * list(range(128))


@pytest.mark.parametrize("before, verdict", [("before_thread", "clean"), ("after_thread", "review")])
def test_a_relaxed_barrier_orders_a_load_that_was_waited_for(before, verdict):
    """PTX ISA 9.7.16.6.3 and 9.7.16.6.4.4; without the fence of the loading warps, their wait still holds."""
    end = f"fence::{before}_sync;\n  {ARRIVE.replace('arrive.release', 'arrive.relaxed')}"
    text = HEAD.format(target="sm_100a") + PAIR.replace("WHO", "")
    text = text.replace("fence::before_thread_sync;\n  bar.sync 0;\n  BARRIER", end)
    result = ptxsim.load(text).launch("k", grid=2, block=128, cluster=2, args=[np.zeros(256, np.uint32)])
    assert result.verdict == verdict, result.findings
    assert all("no tcgen05.fence::before_thread_sync" in f.message for f in result.findings)


TICKET = """.visible .global .u32 count;
.visible .entry k(.param .u64 p) {
  .shared .align 4 .b8 last[4];
  .reg .b64 %p, %o, %c; .reg .b32 %t, %b, %n, %x, %y, %sum, %i; .reg .pred %q;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %nctaid.x;
  mov.u64 %c, count;
  setp.ne.u32 %q, %t, 0;
  @%q bra TAKEN;
  mul.wide.u32 %o, %b, 4; add.u64 %o, %p, %o; add.u32 %x, %b, 1; st.global.u32 [%o], %x;
  RELEASE
  ATOMIC %x, [%c], 1;
  ACQUIRE
  st.shared.u32 [last], %x;
TAKEN:
  bar.sync 0;
  ld.shared.u32 %x, [last]; add.u32 %x, %x, 1; setp.ne.u32 %q, %x, %n;
  @%q ret;
  mov.u32 %sum, 0; mov.u32 %i, 0;
NEXT:
  mul.wide.u32 %o, %i, 4; add.u64 %o, %p, %o; ld.global.u32 %y, [%o]; add.u32 %sum, %sum, %y;
  add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %n;
  @%q bra NEXT;
  bar.sync 0;
  setp.ne.u32 %q, %t, 0;
  @%q ret;
  st.global.u32 [%p], %sum;
  ret;
}
"""
FENCE = "fence.acq_rel.gpu;"


@pytest.mark.parametrize(
    "release, atomic, acquire, verdict",
    [
        (FENCE, "atom.global.add.u32", FENCE, "clean"),
        (FENCE, "atom.acquire.gpu.global.add.u32", "", "clean"),
        (FENCE, "atom.global.add.u32", "", "review"),  # as CUDA's guide and samples have it
        ("", "atom.global.add.u32", FENCE, "error"),
        ("", "atom.global.add.u32", "", "error"),
    ],
)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_the_last_of_all_ctas_reads_what_the_others_wrote(release, atomic, acquire, verdict, order):
    out = np.zeros(8, np.uint32)
    text = HEAD.format(target="sm_90a") + TICKET.replace("RELEASE", release).replace("ATOMIC", atomic)
    result = ptxsim.load(text.replace("ACQUIRE", acquire)).launch(
        "k", grid=8, block=32, args=[out], order=order
    )
    assert result.verdict == verdict, result.findings
    assert {f.kind for f in result.findings} == (set() if verdict == "clean" else {"race"})
    assert out[0] == 36


ALL_STORE = """.visible .entry k(.param .u64 p, .param .u64 q) {
  .reg .b64 %p, %q, %o; .reg .b32 %t, %x;
  ld.param.u64 %p, [p]; ld.param.u64 %q, [q]; mov.u32 %t, %tid.x;
  and.b32 %t, %t, BITS; mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o;
  ld.global.u32 %x, [%p]; st.global.u32 [%q], %x;
  ret;
}
"""


@pytest.mark.parametrize("bits, verdict", [(0, "review"), (32, "error")])
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_warps_of_a_cta_may_store_one_loaded_value_to_one_place_of_global_memory(bits, verdict, order):
    text = HEAD.format(target="sm_90") + ALL_STORE.replace("BITS", str(bits))
    arrays = np.arange(1, 65, dtype=np.uint32), np.zeros(1, np.uint32)
    result = ptxsim.load(text).launch("k", block=64, args=list(arrays), order=order)
    assert result.verdict == verdict, result.findings
    assert all("both write the same value" in f.message for f in result.findings) == (verdict == "review")


WARP_LEAVES = """.visible .entry k(.param .u64 q) {
  .shared .align 4 .b8 s[4];
  .reg .b64 %q; .reg .b32 %t, %l, %x; .reg .pred %some, %p;
  ld.param.u64 %q, [q]; mov.u32 %t, %tid.x; and.b32 %l, %t, 31; setp.ge.u32 %some, %l, LEAST; VALUE
  @%some st.SPACE.u32 [PLACE], %x;
  ret;
}
"""
_LANES = "mov.u32 %x, %l;"  # one lane of a warp stores last, the same one in all warps
_OTHER = "setp.eq.u32 %p, %l, 31; selp.b32 %x, %t, %l, %p;"


@pytest.mark.parametrize("least", [0, 3])  # whole warps, and some of their lanes
@pytest.mark.parametrize("space, place", [("shared", "s"), ("global", "%q")])
@pytest.mark.parametrize("value, verdict", [(_LANES, "review"), (_OTHER, "error")])
def test_what_a_warp_leaves_counts_where_its_lanes_store_to_one_place(least, space, place, value, verdict):
    """Triton's sums end in lanes that differ in the last bit, and all warps store them to one place."""
    text = HEAD.format(target="sm_90") + WARP_LEAVES.replace("LEAST", str(least)).replace("VALUE", value)
    text = text.replace("SPACE", space).replace("PLACE", place)
    out = np.zeros(1, np.uint32)
    result = ptxsim.load(text).launch("k", block=128, args=[out])
    assert result.verdict == verdict, result.findings
    assert {f.kind for f in result.findings if f.severity == verdict} == {"race"}
    assert space == "shared" or out[0] == (31 if verdict == "review" else 127)


SOME_MEET = """.visible .entry k(.param .u64 p) {
  .reg .b64 %p, %o; .reg .b32 %t, %x; .reg .pred %others;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; setp.ge.u32 %others, %t, 2;
  mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o; mov.u32 %x, 7;
  @%others bra ON;
  bar.warp.sync 0xffffffff;
  add.u32 %x, %x, %t;
ON:
  st.global.u32 [%p], %x;
  BEHIND
  ret;
}
"""


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("behind, verdict", [("", "review"), ("bar.sync 0;", "error")])
def test_lanes_that_never_come_to_a_warp_barrier_may_end_without_it(behind, verdict, order):
    """As in numba's cuda.reduce; a CTA barrier after it blocks both sides forever."""
    out = np.zeros(32, np.uint32)
    text = HEAD.format(target="sm_90") + SOME_MEET.replace("BEHIND", behind)
    result = ptxsim.load(text).launch("k", block=32, args=[out], order=order)
    assert result.verdict == verdict, result.findings
    assert "lanes 2-31 do not reach this bar.warp.sync" in result.findings[-1].message
    assert verdict == "error" or out.tolist() == [7, 8, *[7] * 30]


TWO_STATEMENTS = """.visible .entry k(.param .u64 q) {
  .reg .b64 %q; .reg .b32 %w, %l, %x, %y; .reg .b16 %h; .reg .pred %second, %all;
  .shared .align 4 .b8 s[4];
  ld.param.u64 %q, [q]; mov.u32 %w, WHO; setp.ge.u32 %second, %w, FIRST;
  mov.u32 %l, %laneid; setp.ne.u32 %all, %l, 0; @%all bra END;
  ld.global.u32 %x, [%q+8]; add.u32 %y, %x, 1; cvt.u16.u32 %h, %x;
  @%second bra SECOND;
  st.SPACE.u32 [PLACE], %x;
  bra END;
SECOND:
  BEHIND
END:
  ret;
}
"""
BY_WARPS, BY_CTAS = ("%tid.x", "32", {"block": 64}), ("%ctaid.x", "1", {"block": 32, "grid": 2})
SECONDS = {
    "st.SPACE.u32 [PLACE], %x;": "review",
    "st.SPACE.u32 [PLACE], %y;": "error",
    "st.SPACE.u16 [PLACE], %h;": "review",
    "st.SPACE.u8 [PLACE+1], 1;": "error",
    "st.volatile.SPACE.u32 [PLACE], %x;": "review",
    "red.SPACE.max.u32 [PLACE], %x;": "error",  # the same result here, but it depends on the old value
    "red.SPACE.max.u32 [PLACE], %y; st.SPACE.u32 [PLACE], %y;": "error",
}


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("behind, verdict", SECONDS.items(), ids=range(len(SECONDS)))
@pytest.mark.parametrize(
    "who, first, shape, space",
    [(*BY_WARPS, "shared"), (*BY_WARPS, "global"), (*BY_CTAS, "global")],
    ids=["warps, shared", "warps, global", "ctas"],
)
def test_two_statements_may_store_the_same_bytes(behind, verdict, order, who, first, shape, space):
    """FlashInfer's act_and_mul, whose last loop begins before its vector loop ends; Rodinia's bfs."""
    text = TWO_STATEMENTS.replace("BEHIND", behind).replace("SPACE", space).replace("WHO", who)
    text = text.replace("FIRST", first).replace("PLACE+", "s+" if space == "shared" else "%q+")
    text = HEAD.format(target="sm_90") + text.replace("PLACE", "s" if space == "shared" else "%q")
    result = ptxsim.load(text).launch("k", args=[np.array([0, 0, 7], np.uint32)], order=order, **shape)
    assert result.verdict == verdict, result.findings
    assert {f.kind for f in result.findings} == {"race"}
    assert all(("both write the same value" in f.message) == (verdict == "review") for f in result.findings)


@pytest.mark.parametrize("elements, verdict", [(1, "review"), (2, "error")])
def test_ctas_that_store_the_same_instead_of_the_rest_of_an_output_are_wrong(elements, verdict):
    out = np.full(elements, np.nan, np.float32)
    text = HEAD.format(target="sm_90") + ALL_STORE.replace("BITS", "0")
    result = ptxsim.load(text).launch("k", grid=3, args=[np.float32([5]), out], arg_names=["x", "D"])
    found = result.findings[0]
    assert (found.severity, found.evidence["cause"]) == (verdict, "same-tile"), result.findings
    assert ("other elements of D were never written" in found.message) == (verdict == "error")


@pytest.mark.parametrize("elements, cause", [(2, "tiles-too-many"), (3, "same-tile")])
def test_ctas_that_store_the_same_place_have_too_many_tiles_only_where_all_of_it_is_written(elements, cause):
    text = ".visible .entry k(.param .u64 q) { .reg .b64 %q; .reg .b32 %x; ld.param.u64 %q, [q]; "
    text += "mov.u32 %x, %ctaid.x; st.global.v2.u32 [%q], {%x, %x}; ret; }"
    out = np.full(elements, np.nan, np.float32)
    program = ptxsim.load(HEAD.format(target="sm_90") + text)
    found = program.launch("k", grid=2, args=[out], arg_names=["D"]).findings[0]
    assert (found.kind, found.severity, found.evidence["cause"]) == ("race", "error", cause)
    assert ("too many tiles" in found.message) == (cause == "tiles-too-many")
