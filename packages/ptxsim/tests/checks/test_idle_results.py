"""A tcgen05.mma of more rows or columns than its tile: where nothing that is stored depends on them, what it
reads for them changes nothing. DeepGEMM multiplies tiles of 32 and 64 rows by instructions of 128.
"""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule, wait

from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor

# rows of 32 bytes, each half of which is one of 8 rows in 128 bytes; A from the start on, B after 4096 bytes
A, B = (encode_matrix_descriptor(MatrixDescriptor(at, 128, 256, 0)) for at in (1024, 1024 + 4096))
SHAPE = 1 << 4 | 1 << 24  # float32 result; M and N follow
OPERANDS = "%y8, %y9, %x9,"
FORMS = {  # name -> (M, N, the instruction)
    "plain": (128, 16, f"kind::f16 [%x8], {OPERANDS} %q;"),
    "half": (64, 16, f"kind::f16 [%x8], {OPERANDS} %q;"),
    "ws": (32, 64, f"kind::f16 [%x8], {OPERANDS} %q, 0;"),
    "scaled": (128, 16, f"kind::mxf8f6f4.block_scale [%x8], {OPERANDS} [%x10], [%x10], %q;"),
}
SCALED = 1 << 23  # of an instruction descriptor: ue8m0 factors
ALL = ", ".join(f"%r{i}" for i in range(8))
LOAD = f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{ALL}}}, [%x8+8]; tcgen05.wait::ld.sync.aligned;"
ROWS = "setp.ge.u32 %q, %t, 64; @%q bra DONE;"  # warps 2 and 3 have the lanes from 64 on
STORE = "add.u32 %x11, %r0, %r1; st.global.u32 [%myout], %x11;"  # columns 8 and 9
COPY = lines(
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x3], [%in], 256, [%bar];",
    wait(0),
)


def text_of(form: str, after: str, at: int, copies: bool = True, more: str = "") -> str:
    """Threads 0 to 127 clear 8192 bytes but for 256 at `at`, multiply and load; thread 128 copies 256 bytes
    there meanwhile.
    """
    m, n, product = FORMS[form]
    shape = (m >> 4) << 24 | (n >> 3) << 17 | (SCALED if form == "scaled" else 1 << 4)
    return lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; @%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;",
        "@%lead fence.mbarrier_init.release.cluster; mov.u32 %x2, 0; shl.b32 %x4, %t, 6;",
        f"add.u32 %x3, %sm, {at}; add.u32 %x4, %x4, %sm; add.u32 %x5, %x4, 64; mov.u32 %x6, 0x7f7f7f7f;",
        "@%w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%bar+64], 128;",
        "@%w4 bra CLEARED;",
        f"sub.u32 %x7, %x4, %x3; setp.lt.u32 %q, %x7, {256 * (not copies)}; @%q bra CLEARED;",
        "CLEAR: st.shared.u32 [%x4], %x2; add.u32 %x4, %x4, 4; setp.lt.u32 %q, %x4, %x5; @%q bra CLEAR;",
        "CLEARED: fence.proxy.async; bar.sync 0; ld.shared.u32 %x8, [%bar+64]; add.u32 %x10, %x8, 96;",
        "tcgen05.fence::after_thread_sync; @%w4 bra COPY;",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%x10], {%x6}; tcgen05.wait::st.sync.aligned;",
        "tcgen05.fence::before_thread_sync; bar.sync 1, 128; tcgen05.fence::after_thread_sync;",
        f"mov.b64 %y8, {A}; mov.b64 %y9, {B}; mov.u32 %x9, {shape}; setp.ne.u32 %q, %t, %t;",
        f"@%lead tcgen05.mma{'.ws' * (form == 'ws')}.cta_group::1.{product}",
        more,
        "@%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar+8];",
        wait(0, at=8),
        "tcgen05.fence::after_thread_sync;",
        after,
        "DONE: tcgen05.fence::before_thread_sync; bar.sync 1, 128;",
        "@%w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x8, 128; bra END;",
        f"COPY: setp.eq.u32 %q, %t, 128; {'@%q bra LOADS;' if copies else ''} bra END;",
        f"LOADS: {COPY}",
        "END:",
    )


def severities(form: str, after: str, at: int, order, copies: bool = True, more: str = "") -> set[str]:
    text = text_of(form, after, at, copies, more)
    found = run_rule(Rule("rows", text, threads=160), text, order).findings
    found = [f for f in found if "lanes of tensor memory" not in f.message]  # M=64 leaves half of them out
    assert {f.kind for f in found} <= {"race" if copies else "uninitialized"}, [str(f) for f in found]
    return {f.severity for f in found}


BESIDE = {  # form -> places whose rows or columns only warps 2 and 3 load; other places
    "plain": ({2048, 3840}, {0, 1792, 4096, 4096 + 256}),
    "half": ({1024, 1792}, {0, 512, 4096}),
    "ws": ({4096 + 1024, 4096 + 1536}, {0, 768, 4096, 4096 + 512}),
    "scaled": ({2048, 3840}, {0, 1792, 4096}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("copies", [True, False])
def test_only_rows_that_are_stored_matter(form, copies):
    beside, inside = BESIDE[form]
    load = LOAD.replace("+8", "") if form == "ws" else LOAD  # each warp has 16 columns
    for at in beside:
        assert severities(form, ROWS + load + STORE, at, "program", copies) == {"review"}, at
        assert severities(form, load + ROWS + STORE, at, "program", copies) == {"review"}, at
        assert severities(form, load + STORE, at, "program", copies) == {"error"}, at
    for at in inside:
        expected = {"review"} if at == 4096 and form != "ws" else {"error"}  # columns 0 to 7
        assert severities(form, ROWS + load + STORE, at, "program", copies) == expected, at
    assert severities(form, ROWS + load + STORE, 7168, "program", copies) == set()


@pytest.mark.parametrize("order", ORDERS)
def test_only_registers_that_are_stored_matter(order):
    both = LOAD.replace(".x8.", ".x16.").replace("+8", "").replace(ALL, ALL + ", " + ALL.replace("r", "o"))
    last = STORE.replace("%r0, %r1", "%o6, %o7")  # columns 14 and 15
    assert severities("plain", both + last, 4096, order) == {"review"}
    assert severities("plain", both + last, 4096 + 256, order) == {"error"}
    assert severities("plain", both + STORE, 4096 + 256, order) == {"review"}


def test_a_result_that_decides_or_goes_elsewhere_matters():
    for use in (
        "setp.gt.u32 %q, %r0, 7; @%q bra DONE;",
        "shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%x8+32], {%r0}; tcgen05.wait::st.sync.aligned;",
    ):
        assert severities("plain", LOAD + use + ROWS + STORE, 2048, "program") == {"error"}


def test_a_product_of_the_results_matters():
    """The lanes beside the tile are A of another product, whose result is stored."""
    again = "@%lead tcgen05.mma.cta_group::1." + FORMS["plain"][2].replace("[%x8], %y8", "[%x8+32], [%x8]")
    late = LOAD.replace("+8", "+40")
    assert severities("plain", ROWS + LOAD + STORE, 2048, "program", more=again) == {"review"}
    assert severities("plain", ROWS + late + STORE, 2048, "program", more=again) == {"error"}


def test_nothing_is_known_of_threads_that_are_stuck():
    text = text_of("plain", wait(1, at=8).replace("AGAIN", "STUCK") + LOAD + STORE, 2048)
    found = run_rule(Rule("rows", text, threads=160), text, "program").findings
    assert {f.severity for f in found if f.kind == "race"} == {"error"}
