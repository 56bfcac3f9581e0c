"""wmma against numpy and against mma.sync, and the findings where a rule is broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from warp_kernels import register_kernel
from wmma_kernels import (
    BITS,
    FORMS,
    WIDE,
    Matrix,
    counts,
    kernel,
    mma,
    random_matrices,
    sizes,
    vector,
)

import ptxsim
from ptxsim.isa.layouts.wmma import wmma_fragment


def run(ptx: str, matrices: dict[str, Matrix], **more) -> ptxsim.Result:
    arrays = [one.array for one in matrices.values()]
    return ptxsim.load(ptx).launch("k", **({"block": 32} | more), args=arrays, arg_names=list(matrices))


def plain(**changes: dict) -> dict[str, Matrix]:
    """Matrices of ones in shared memory, by rows without gaps; `changes` of some of them."""
    kinds = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}
    made = {w: Matrix(np.ones((16, 16)), kind, "row", ".shared", 0, 16) for w, kind in kinds.items()}
    return {w: replace(one, **changes.get(w, {})) for w, one in made.items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape, kind, d, c", FORMS)
def test_exact_product(shape, kind, d, c, seed):
    rng = np.random.default_rng([seed, *map(ord, shape + kind + d + c)])
    matrices = random_matrices(rng, shape, kind, d, c)
    result = run(kernel(shape, matrices, mma(shape, matrices)), matrices, checks=seed > 0)
    assert result.findings == []
    product = matrices["a"].values @ matrices["b"].values + matrices["c"].values
    assert np.array_equal(matrices["d"].array, replace(matrices["d"], values=product).array)


def test_exclusive_or_of_bits():
    matrices = random_matrices(np.random.default_rng(1), "m8n8k128", "b1", "s32", "s32")
    product = mma("m8n8k128", matrices).replace(".and.", ".xor.")
    assert run(kernel("m8n8k128", matrices, product), matrices).findings == []
    differ = (matrices["a"].values[:, :, None] != matrices["b"].values).sum(1) + matrices["c"].values
    assert np.array_equal(matrices["d"].array, replace(matrices["d"], values=differ).array)


@pytest.mark.parametrize("more, most", [("", 16 * 127 * 127 - 2**31 - 1), (".satfinite", 2**31 - 1)])
def test_integer_overflow_wraps_or_saturates(more, most):
    a, b, c = (np.full((16, 16), v) for v in (127, 127, 2**31 - 1))
    kinds = {"a": (a, "s8"), "b": (b, "s8"), "c": (c, "s32"), "d": (a, "s32")}
    matrices = {which: Matrix(*one) for which, one in kinds.items()}
    run(kernel("m16n16k16", matrices, mma("m16n16k16", matrices, more)), matrices)
    assert (matrices["d"].array.view(np.int32) == most).all()


def test_f16_of_a_sum_in_f32_is_rounded_twice():
    """2049 + 2^-14 is above the midpoint of two halves; as f32 it is the midpoint, which rounds to 2048."""
    a, b, c = np.zeros((16, 16)), np.ones((16, 16)), np.full((16, 16), 2049.0)
    a[:, 0] = 2.0**-14
    kinds = {"a": (a, "f16"), "b": (b, "f16"), "c": (c, "f32"), "d": (c, "f16")}
    matrices = {which: Matrix(*one) for which, one in kinds.items()}
    run(kernel("m16n16k16", matrices, mma("m16n16k16", matrices)), matrices)
    assert (matrices["d"].array.view(np.float16) == 2048).all()


# ---- fragments ----

TWINS = {  # by shape, the mma.sync of which two make a product
    **{(shape, kind): "m16n8k16" for shape in WIDE for kind in ("f16", "bf16", "s8")},
    ("m16n16k8", "tf32"): "m16n8k8",
}


def twins(shape: str, kind: str, c: str) -> str:
    """The two mma.sync that a wmma.mma becomes: m8n32k16 takes B for A and A for B, as transposes."""
    m, n, k = sizes(shape)
    registers = {"a": m * k * BITS[kind] // 1024, "b": k * n * BITS[kind] // 1024}  # without copies
    high, low = ("b", "a") if m == 8 else ("a", "b")
    wide = registers[high] * 1024 // BITS[kind] // k == 32  # two blocks of 16 rows, otherwise of 8 columns
    count, text = counts(shape, kind, c, c)["c"] // 2, ""
    for i in range(2):
        left, right = registers[high] // (1 + wide), registers[low] // (2 - wide)
        operands = [vector(high, left, left * i * wide), vector(low, right, right * i * (not wide))]
        sums = [vector(w, count, count * i) for w in "dc"]
        text += f"mma.sync.aligned.{TWINS[shape, kind]}.row.col.{c}.{kind}.{kind}.{c} "
        text += f"{sums[0]}, {', '.join(operands)}, {sums[1]};\n"
    return text


@pytest.mark.parametrize("shape, kind", TWINS)
@pytest.mark.parametrize("half", [False, True])
def test_it_is_two_mma_sync_of_the_same_registers(shape, kind, half):
    """Bit for bit, with sums that are rounded: the arithmetic of mma.sync, and its documented layouts."""
    c = "s32" if kind == "s8" else "f16" if half and kind == "f16" else "f32"
    rng = np.random.default_rng(len(shape + kind))
    matrices = random_matrices(rng, shape, kind, c, c, exact=c == "s32")
    left = []
    for product in (mma(shape, matrices), twins(shape, kind, c)):
        matrices["d"].array[:] = 0x5A
        assert run(kernel(shape, matrices, product), matrices).findings == []
        left.append(matrices["d"].array.tobytes())
    assert left[0] == left[1]


@pytest.mark.parametrize("shape, kind, d, c", FORMS)
def test_every_element_has_one_place(shape, kind, d, c):
    m, n, k = sizes(shape)
    for which, size in (("a", (m, k)), ("b", (k, n)), ("c", (m, n))):
        row, column = wmma_fragment(which, (m, n, k), BITS[kind])
        assert np.array_equal(np.sort(row * size[1] + column, axis=None), np.arange(size[0] * size[1]))


def test_the_accumulators_of_m16n16k16_are_those_of_two_m16n8():
    """Thread 5 holds rows 1 and 9, columns 2, 3 and 10, 11: programs that index fragments rely on this."""
    row, column = wmma_fragment("c", (16, 16, 16), 16)
    assert row[5].tolist() == [1, 1, 9, 9, 1, 1, 9, 9]
    assert column[5].tolist() == [2, 3, 2, 3, 10, 11, 10, 11]


def test_element_wise_work_on_fragments():
    """An operation of each thread on all its elements applies to the whole
    matrix, also to the copies of f16.
    """
    twice = "".join(f"add.rn.f16x2 %a{i}, %a{i}, %a{i};\n" for i in range(8))
    plus = "".join(f"add.rn.f32 %d{i}, %d{i}, 0f3F000000;\n" for i in range(8))
    matrices = plain()
    product = twice + mma("m16n16k16", matrices) + plus
    assert run(kernel("m16n16k16", matrices, product), matrices).findings == []
    assert (matrices["d"].array.view(np.float32) == 2 * 16 + 1 + 0.5).all()


# ---- rules ----

AT = {"a": "wmma.load.a", "b": "wmma.load.b", "c": "wmma.load.c", "d": "wmma.store.d"}


def found(matrices: dict[str, Matrix], change=lambda text: text, shape="m16n16k16", **more):
    """(kind, severity, words of the message, instruction) of all findings of a changed program."""
    text = change(kernel(shape, matrices, mma(shape, matrices)))
    result = run(text, matrices, **more)
    return [(f.kind, f.severity, f.message, f.where["ptx"]) for f in result.findings]


def the_one(findings: list) -> tuple:
    (finding,) = findings
    return finding


@pytest.mark.parametrize("which", "abc")
def test_a_load_of_shared_memory_that_nothing_orders_is_a_race(which):
    """Lanes of one warp, too: only a barrier makes what one stores visible to another."""
    for barrier in ("bar.sync 0;", "bar.warp.sync -1;", ""):
        findings = found(plain(), lambda t, b=barrier: t.replace("bar.sync 0;", b, 1))
        if barrier:
            assert findings == []
        else:
            assert {(kind, severity) for kind, severity, *_ in findings} == {("race", "error")}
            assert any(where.startswith(AT[which]) for *_, where in findings)


def test_a_read_of_what_wmma_store_wrote_needs_a_barrier_too():
    kind, severity, _, where = the_one(found(plain(), lambda t: t[::-1].replace(";0 cnys.rab", "", 1)[::-1]))
    assert (kind, severity) == ("race", "error") and where.startswith("ld.shared")


def test_two_warps_that_store_to_one_place_of_global_memory():
    matrices = plain(d={"space": ".global"})
    text = kernel("m16n16k16", matrices, mma("m16n16k16", matrices))
    findings = run(text.replace("ld.shared", "ld.volatile.shared"), matrices, block=64).findings
    assert any(f.kind == "race" and f.where["ptx"].startswith("wmma.store.d") for f in findings)


@pytest.mark.parametrize("which, kind, stride, good", [
    ("a", "f16", 20, 24), ("a", "f16", 17, 32), ("b", "f16", 28, 40), ("c", "f32", 18, 20),
    ("d", "f32", 17, 20), ("c", "f32", 22, 28),
])  # fmt: skip
def test_a_stride_of_no_whole_16_bytes(which, kind, stride, good):
    assert found(plain(**{which: {"stride": good}})) == []
    wrong = plain(**{which: {"stride": good}})
    findings = found(wrong, lambda t: t.replace(f", {good};", f", {stride};"))
    name, severity, message, where = findings[0]
    assert (name, severity) == ("misaligned", "error") and where.startswith(AT[which])
    assert f"its lines are {stride * BITS[kind] // 8} B apart; both must be multiples of 16 B" in message


@pytest.mark.parametrize("start, outcome", [(0, []), (32, []), (16, ["review"]), (8, ["error"])])
def test_a_matrix_starts_at_whole_fragments(start, outcome):
    """32 bytes by the text; known chips accept 16."""
    findings = [f for f in found(plain(a={"start": start})) if f[0] == "misaligned"]
    assert [severity for _, severity, *_ in findings] == outcome
    assert all(where.startswith(AT["a"]) for *_, where in findings)


def test_lines_that_overlap():
    assert found(plain(c={"stride": 0}), lambda t: t.replace("[%pc+0]", "[%pc+0], 0")) == []  # a bias
    overlap = found(plain(d={"stride": 20}), lambda t: t.replace(", 20;", ", 12;"))
    assert ("illegal", "error") == overlap[0][:2] and "lines of 64 B that are 48 B apart" in overlap[0][2]


@pytest.mark.parametrize("which", "abcd")
def test_a_matrix_beyond_the_end_of_a_buffer(which):
    matrices = plain(**{which: {"space": ".global"}})
    findings = found(matrices, lambda t: t.replace(f"[%p{which}+0]", f"[%p{which}+64]"))
    name, severity, message, where = findings[0]
    assert (name, severity) == ("out-of-bounds", "error") and where.startswith(AT[which])
    assert f"just past the end of {which}" in message


def test_a_matrix_at_an_address_with_its_highest_bit_set():
    matrices = plain(a={"space": ".global"})
    findings = found(matrices, lambda t: t.replace("wmma.load.a", "not.b64 %pa, %pa; wmma.load.a", 1))
    assert findings[0][:2] in (("out-of-bounds", "error"), ("misaligned", "error"))
    findings = found(matrices, lambda t: t.replace("wmma.load.a", "or.b64 %pa, %pa, 1 << 63; wmma.load.a", 1))
    assert findings[0][:2] == ("out-of-bounds", "error")


def test_a_matrix_in_local_memory_has_no_meaning():
    def change(text):
        text = text.replace(".reg .pred", ".local .align 32 .b8 own[512]; .reg .pred")
        return text.replace("wmma.load.a", "mov.u64 %pa, own; cvta.local.u64 %pa, %pa; wmma.load.a", 1)

    kind, severity, message, _ = found(plain(a={"space": ""}), change)[0]
    assert (kind, severity) == ("illegal", "error") and "local memory" in message


@pytest.mark.parametrize("change, words", [
    (("wmma.load.a", "cvt.u64.u32 %z, %t; shl.b64 %z, %z, 5; add.u64 %pa, %pa, %z; wmma.load.a"), "address"),
    ((", 24;", ", %i;"), "stride"),
])  # fmt: skip
def test_threads_that_disagree(change, words):
    matrices = plain(a={"stride": 24, "start": 0})
    ptx = kernel("m16n16k16", matrices, mma("m16n16k16", matrices)).replace(*change)
    ptx = ptx.replace("wmma.load.a", "shl.b32 %i, %t, 4; wmma.load.a", 1)
    findings = run(ptx, matrices).findings
    assert any(
        f.kind == "collective" and f"takes one {words} for the whole warp" in f.message for f in findings
    )


@pytest.mark.parametrize("name", ["wmma.load.a", "wmma.mma", "wmma.store.d"])
def test_a_part_of_the_warp(name):
    findings = found(plain(), lambda t: t.replace(name, f"setp.lt.u32 %p, %t, 16; @%p {name}", 1))
    kind, severity, message, _ = findings[0]
    assert (kind, severity) == ("collective", "error")
    assert f"{'.'.join(name.split('.')[:2])} is for the whole warp, but lanes 16-31" in message


def test_shared_memory_that_nobody_wrote():
    findings = found(plain(), lambda t: t.replace("st.shared.u32 [%x], %w;", "", 1))
    kind, severity, _, where = findings[0]
    assert (kind, severity) == ("uninitialized", "review") and where.startswith("wmma.load.a")


@pytest.mark.parametrize("name, at", [("wmma.load.c", "wmma.mma"), ("wmma.mma", "wmma.store")])
def test_fragments_that_nothing_filled(name, at):
    findings = found(
        plain(), lambda t: t.replace(name, f"@%none {name}").replace(".pred %p", ".pred %p, %none")
    )
    kinds = [(kind, where.split(".sync")[0]) for kind, _, _, where in findings]
    assert ("uninitialized", at if at == "wmma.mma" else "wmma.store.d") in kinds


LEFT, RIGHT = vector("a", 8), vector("b", 8)


@pytest.mark.parametrize("old, new, message", [
    ("wmma.mma.sync.aligned.row.row", "wmma.mma.sync.aligned.col.row",
     "a fragment of A.m16n16k16.row.f16 is used as one of A.m16n16k16.col.f16"),
    (f"{LEFT}, {RIGHT}, ", f"{RIGHT}, {RIGHT}, ",
     "a fragment of B.m16n16k16.row.f16 is used as one of A.m16n16k16.row.f16"),
    ("wmma.store.d.sync.aligned.row.m16n16k16", "wmma.store.d.sync.aligned.row.m8n32k16",
     "a fragment of accumulator.m16n16k16.f32 is used as one of accumulator.m8n32k16.f32"),
])  # fmt: skip
def test_a_fragment_of_another_matrix(old, new, message):
    findings = found(plain(d={"stride": 40}), lambda text: text.replace(old, new))
    kind, severity, words, _ = next(one for one in findings if one[0] == "illegal")
    assert severity == "error" and message in words and "PTX line" in words


@pytest.mark.parametrize("text, message", [
    ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1}, [%in], 16;", "has 8 registers, not 2"),
    ("wmma.load.a.sync.aligned.row.m16n16k16.s8 {%r0}, [%in], 16;", "has 2 registers, not 1"),
    ("wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%in], 32;", "not a modelled form of wmma.load.a"),
    ("wmma.load.b.sync.aligned.row.m8n8k128.b1 {%r0}, [%in], 128;", "not a modelled form of wmma.load.b"),
    ("wmma.load.c.sync.aligned.row.m16n16k16.bf16 {%r0}, [%in], 16;", "not modelled"),
    ("wmma.load.a.sync.aligned.row.m16n16k16.param.f16 {%r0}, [%in], 16;", "not modelled"),
    ("wmma.store.d.sync.aligned.row.m8n8k4.f32 [%in], {%r0, %r1};", "not a modelled form of wmma.store.d"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%r0}, {%r0}, {%r0}, {%r0};", "form of wmma"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%r0}, {%r0}, {%r0}, {%r0};", r"take \[8, 8, 8, 8\]"),
    ("wmma.mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64 {%r0}, {%r0}, {%r0}, {%r0};", "not modelled"),
])  # fmt: skip
def test_refused(text, message):
    with pytest.raises(ptxsim.PtxError, match=message):
        ptxsim.load(register_kernel(text, 2, 1))
