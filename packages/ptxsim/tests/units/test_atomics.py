"""atom and red: a whole warp at once gives what lane after lane gives, bit for bit, and the right values."""

import ml_dtypes
import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.lowering.emit import Program
from ptxsim.units import atomics
from ptxsim.units.atomic_values import OPERATIONS, TYPES, reduce_bytes

FORMS = [
    *(f"{op}.{kind}" for op in ("and", "or", "xor", "exch", "cas") for kind in ("b32", "b64")),
    *(f"add.{kind}" for kind in ("u32", "s32", "u64", "f32", "f64")),
    *(f"add.noftz.{kind}" for kind in ("f16", "bf16", "f16x2", "bf16x2")),
    "cas.b16",
    *(f"{op}.u32" for op in ("inc", "dec")),
    *(f"{op}.{kind}" for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64")),
]
SPACES = {
    "global": ("mov.b64 %base, %memory;", ""),
    "shared": ("mov.u32 %s, words; cvt.u64.u32 %base, %s;", ".shared"),
    "generic": ("mov.b64 %base, %memory;", ""),
    "generic shared": ("mov.u32 %s, words; cvt.u64.u32 %base, %s; cvta.shared.u64 %base, %base;", ""),
}


HALVES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def bits_of(form: str) -> int:
    """Bits of a register that holds an element, or a pair of halves."""
    return 32 if form.endswith("x2") else int(form[-2:])


def kernel(form: str, space: str, returns: bool) -> str:
    """Each thread with a non-negative index updates word index[t] of 8 words; out[t]: the old value."""
    bits = bits_of(form)
    base, where = SPACES[space]
    where = ".global" if space == "global" else where
    copy = "0" if "shared" not in space else "1"
    third = ", %c" if form.startswith("cas") else ""
    update = f"atom{where}.{form} %old, [%a], %b{third};" if returns else f"red{where}.{form} [%a], %b;"
    address = "cvt.u32.u64 %s, %a;" if space == "shared" else ""
    update = update.replace("[%a]", "[%s]") if space == "shared" else update
    return f"""{HEAD}
.visible .entry k(.param .u64 m, .param .u64 i, .param .u64 x, .param .u64 y, .param .u64 o) {{
  .shared .align 8 .b8 words[64];
  .reg .b64 %memory, %base, %i, %x, %y, %o, %a, %t8, %t4, %w; .reg .b{bits} %b, %c, %old, %v;
  .reg .b32 %s, %t; .reg .s32 %n; .reg .pred %p, %low;
  ld.param.u64 %memory, [m]; ld.param.u64 %i, [i]; ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
  ld.param.u64 %o, [o]; {base} mov.u32 %t, %tid.x; mul.wide.u32 %t8, %t, 8; mul.wide.u32 %t4, %t, 4;
  add.u64 %i, %i, %t4; add.u64 %x, %x, %t8; add.u64 %y, %y, %t8; add.u64 %o, %o, %t8;
  mov.b{bits} %old, 0; ld.global.b{bits} %b, [%x]; ld.global.b{bits} %c, [%y]; ld.global.s32 %n, [%i];
  setp.lt.u32 %low, %t, 8; setp.ge.s32 %p, %n, 0;
  mul.wide.u32 %a, %t, {bits // 8}; add.u64 %w, %memory, %a;
  mov.u32 %s, words; cvt.u64.u32 %y, %s; cvta.shared.u64 %y, %y; add.u64 %a, %y, %a;
  @%low ld.global.b{bits} %v, [%w]; @%low st.b{bits} [%a], %v; bar.sync 0;
  mul.wide.s32 %x, %n, {bits // 8}; add.u64 %a, %base, %x; {address}
  @%p {update}
  st.global.b{bits} [%o], %old; bar.sync 0;
  mul.wide.u32 %a, %t, {bits // 8}; add.u64 %a, %y, %a;
  @!%low bra END; setp.eq.u32 %p, {copy}, 0; @%p bra END; ld.b{bits} %v, [%a]; st.global.b{bits} [%w], %v;
END: ret;
}}"""


def words(rng, form: str, count: int) -> np.ndarray:
    """Bits of numbers: small ones that collide; for floats also zeros, subnormals, infinities and NaNs."""
    bits, kind = bits_of(form), form.split(".")[-1]
    if kind.removesuffix("x2") in HALVES:
        dtype, each = HALVES[kind.removesuffix("x2")], 2 if kind.endswith("x2") else 1
        special = np.array([0.0, -0.0, 6e-8, np.inf, -np.inf, np.nan, 60000.0, 2e38], np.float32)
        some = np.where(
            rng.random(count * each) < 0.4, rng.choice(special, count * each), rng.normal(size=count * each)
        )
        with np.errstate(over="ignore"):
            return some.astype(dtype).view(f"u{bits // 8}").astype(np.uint64)
    if kind[0] != "f":
        small = rng.integers(0, 5, count).astype(np.uint64)
        return np.where(rng.random(count) < 0.5, small, rng.integers(0, 2**bits, count, np.uint64))
    special = np.array([0.0, -0.0, 1e-40, -2e-40, np.inf, -np.inf, np.nan, 3.5, -1e38, 1.1754944e-38])
    some = np.where(rng.random(count) < 0.4, rng.choice(special, count), rng.standard_normal(count))
    return some.astype(f"f{bits // 8}").view(f"u{bits // 8}").astype(np.uint64)


INTEGERS = {
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: c if old == b else old,
    "add": lambda old, b, c: old + b,
    "min": lambda old, b, c: min(old, b),
    "max": lambda old, b, c: max(old, b),
    "inc": lambda old, b, c: 0 if old >= b else old + 1,
    "dec": lambda old, b, c: b if old == 0 or old > b else old - 1,
}


def sum_of(old: int, b: int, bits: int, shared: bool) -> int:
    """add.f32 and add.f64 as in PTX ISA 9.7.13.6 and on an H200; the NaN of f64 depends on the memory."""
    if bits == 32 and not shared:  # subnormal numbers count as zeros of their sign
        old, b = (x if x & 0x7F80_0000 else x & 0x8000_0000 for x in (old, b))
    with np.errstate(all="ignore"):
        one, two = np.array([old, b], f"u{bits // 8}").view(f"f{bits // 8}")
        total = one + two
    if not np.isnan(total):
        raw = int(total.view(f"u{bits // 8}"))
        return raw if bits == 64 or shared or raw & 0x7F80_0000 else raw & 0x8000_0000
    if bits == 32:
        return 0x7FFF_FFFF
    nans = [x for x in ((old, b) if shared else (b, old)) if x & (1 << 63) - 1 > 0x7FF << 52]
    return (nans or [0xFFF8 << 48])[0] | (1 << 51 if shared else 0)


def updated(form: str, old: int, b: int, c: int, shared: bool) -> int:
    (operation, *_, kind), bits = form.split("."), bits_of(form)
    if kind.endswith("x2"):
        halves = [
            updated(form[:-2], x & 0xFFFF, y & 0xFFFF, 0, shared) for x, y in ((old, b), (old >> 16, b >> 16))
        ]
        return halves[0] | halves[1] << 16
    if kind in HALVES:
        with np.errstate(all="ignore"):
            one, two = np.array([old, b], np.uint16).view(HALVES[kind])
            total = np.array([one + two])
        return 0x7FFF if np.isnan(total.astype(np.float32))[0] else int(total.view(np.uint16)[0])
    if kind[0] == "f":
        return sum_of(old, b, bits, shared)
    signed = 1 << bits if kind[0] == "s" else 0
    old, b, c = (x - signed if signed and x >> bits - 1 else x for x in (old, b, c))
    return INTEGERS[operation](old, b, c) % (1 << bits)


def inputs(seed: int, form: str) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    memory = words(rng, form, 8).astype(f"u{bits_of(form) // 8}")
    index = rng.integers(-1, rng.choice([1, 3, 8]), 32).astype(np.int32)
    return memory, index, words(rng, form, 32), words(rng, form, 32)


def expected(seed: int, form: str, shared: bool) -> tuple[list[int], list[int]]:
    """Memory and the values that the lanes get, lane after lane."""
    memory, index, b, c = (array.tolist() for array in inputs(seed, form))
    out = [0] * 32
    for lane, place in enumerate(index):
        if place >= 0:
            out[lane] = memory[place]
            memory[place] = updated(form, memory[place], b[lane], c[lane], shared)
    return memory, out


def outcome(text: str, seed: int, form: str) -> tuple[list[int], list[int]]:
    memory, index, b, c = inputs(seed, form)
    out = np.zeros(32, np.uint64)
    result = ptxsim.load(text).launch("k", block=32, args=[memory, index, b, c, out], checks=seed % 2 == 0)
    assert result.findings == []
    return memory.tolist(), out.tolist()


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("form", FORMS)
def test_lanes_update_one_after_the_other(form, space, monkeypatch):
    """Random words, some lanes off, many on one word; with checks, without, and one access at a time."""
    for returns in (True, False):
        if not returns and form.startswith(("exch", "cas")):
            continue
        text = kernel(form, space, returns)
        for seed in range(3):
            memory, out = expected(seed, form, "shared" in space)
            good = memory, out if returns else [0] * 32
            assert outcome(text, seed, form) == good
            with monkeypatch.context() as patch:
                patch.setattr(atomics, "whole_warp", lambda *_: None)
                patch.setattr(Program, "link", lambda self: None)
                assert outcome(text, seed, form) == good


@pytest.mark.parametrize("index", [-(1 << 18), 1 << 18])
def test_one_lane_that_faults_leaves_the_others(index):
    text = kernel("add.u32", "global", True)
    memory, out, one = np.zeros(8, np.uint32), np.zeros(32, np.uint64), np.ones(32, np.uint64)
    where = np.zeros(32, np.int32)
    where[5] = index
    text = text.replace("@%p atom", "atom")
    result = ptxsim.load(text).launch("k", block=32, args=[memory, where, one, one, out])
    assert memory[0] == 31 and "out-of-bounds" in [f.kind for f in result.findings]


@pytest.mark.parametrize("kind, dtype", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_of_two_zeros_the_negative_one_is_the_less(kind, dtype):
    for operation, sign in (("min", True), ("max", False)):
        memory, data = np.array([0.0, -0.0], dtype), np.array([-0.0, 0.0], dtype)
        number, held = OPERATIONS.index(operation), memory.ctypes.data
        reduce_bytes(number, *TYPES[kind], held, data.ctypes.data, data.nbytes)
        assert np.signbit(memory.astype(np.float32)).tolist() == [sign, sign]


def vector_kernel(lanes: int, offset: int) -> str:
    """The first `lanes` threads add {1, 2, 3, 4} to four floats each; by how many bytes the first is off."""
    return f"""{HEAD}
.visible .entry k(.param .u64 m) {{
  .reg .b64 %m, %a; .reg .b32 %t; .reg .f32 %f<4>; .reg .pred %p;
  ld.param.u64 %m, [m]; mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 16; add.u64 %a, %m, %a;
  mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;
  setp.lt.u32 %p, %t, {lanes};
  @%p red.global.add.v4.f32 [%a+{offset}], {{%f0, %f1, %f2, %f3}}; ret;
}}"""


@pytest.mark.parametrize("lanes", [32, 5])
def test_a_vector_is_added_element_by_element(lanes):
    memory = np.zeros((32, 4), np.float32)
    result = ptxsim.load(vector_kernel(lanes, 0)).launch("k", block=32, args=[memory])
    assert result.verdict == "clean"
    assert (memory[:lanes] == [1, 2, 3, 4]).all() and not memory[lanes:].any()


@pytest.mark.parametrize("offset", [4, 8])
def test_a_vector_has_an_address_that_is_a_multiple_of_its_size(offset):
    memory = np.zeros(256, np.float32)
    result = ptxsim.load(vector_kernel(32, offset)).launch("k", block=32, args=[memory])
    assert [finding.kind for finding in result.findings] == ["misaligned"] and not memory.any()
