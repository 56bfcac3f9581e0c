"""cvt, cvt.pack and mov against Python integers, exact rationals and ml_dtypes."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import rounding as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from scalar_eval import every_word, run
from test_scalar_float import patterns, same
from test_scalar_int import clamp, edges, value, width

INTS = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"]
CUTS = [
    ("u8", "s32"),
    ("s8", "u32"),
    ("s16", "s64"),
    ("u32", "s64"),
    ("s32", "u64"),
    ("s64", "s8"),
    ("u64", "s16"),
]


def integers(kind: str) -> list[int]:
    rng = np.random.default_rng(1)
    return (
        edges(kind)
        + [int(x) for x in rng.integers(0, 1 << width(kind), 200, dtype=np.uint64, endpoint=False)]
        if width(kind) < 64
        else edges(kind) + rng.integers(0, 2**64, 200, dtype=np.uint64).tolist()
    )


def register(kind: str) -> int:
    """Mask of the result's bits in a 32-bit register: small signed types are sign-extended there."""
    return (1 << max(32, width(kind))) - 1 if kind[0] == "s" else (1 << width(kind)) - 1


@pytest.mark.parametrize("to, kind", CUTS + [("u64", "u32"), ("u16", "u8")])
def test_integers(to, kind):
    raw = integers(kind)
    expected = [value(value(x, kind), to) & register(to) for x in raw]
    assert run(f"cvt.{to}.{kind}", raw).tolist() == expected


@pytest.mark.parametrize("to, kind", [cut for cut in CUTS if cut[0] != "s64"])  # every s8 is an s64
def test_saturating_integers(to, kind):
    raw = integers(kind)
    assert run(f"cvt.sat.{to}.{kind}", raw).tolist() == [
        clamp(value(x, kind), to) & register(to) for x in raw
    ]


ROUNDINGS = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
NEAR_LIMITS = {
    "f32": [
        0x4EFFFFFF,
        0x4F000000,
        0xCF000000,
        0xCF000001,
        0x4F7FFFFF,
        0x4F800000,
        0x5F000000,
        0xDF000000,
        0x5F800000,
    ]
    + [
        0x42FF0000,
        0x43000000,
        0xC3008000,
        0xC3010000,
        0x437F8000,
        0x3FC00000,
        0x40200000,
        0xBF000000,
        0x477FFF80,
    ],
    "f64": [
        0x41DFFFFFFFC00000,
        0x41DFFFFFFFE00000,
        0x41E0000000000000,
        0xC1E0000000100000,
        0x43E0000000000000,
    ]
    + [0x43DFFFFFFFFFFFFF, 0xC3E0000000000000, 0x43F0000000000000, 0x3FE0000000000000, 0xBFF8000000000000],
    "f16": [0x5800, 0x57FF, 0xD800, 0xD801, 0x7BFF, 0x3E00, 0x4100, 0xB800],
    "bf16": [0x4300, 0x42FF, 0x4F00, 0xCF00, 0x5F00, 0x3FC0, 0x4020],
}


def to_integer(x: ref.Number, to: str, mode: str, wide: bool) -> int:
    """Saturated; NaN is 0, or the top bit alone if a 64-bit type takes part (PTX ISA 9.7.9, cvt)."""
    if x.is_nan:
        return 1 << (width(to) - 1) if wide else 0
    return clamp(10**40 * (-1 if x.negative else 1) if x.is_inf else ROUNDINGS[mode](x.signed), to)


FROM_FLOAT = [
    "rni.s32.f32",
    "rzi.s32.f32",
    "rmi.u32.f32",
    "rpi.s64.f32",
    "rzi.u64.f32",
    "rni.s8.f32",
    "rzi.u8.f32",
]
FROM_FLOAT += [
    "rzi.s16.f16",
    "rni.u16.f16",
    "rpi.s32.bf16",
    "rzi.s32.f64",
    "rni.u32.f64",
    "rmi.s64.f64",
    "rpi.u64.f64",
]


@pytest.mark.parametrize("name", every_word(FROM_FLOAT))
def test_float_to_integer(name):
    mode, to, kind = name.split(".")
    raw = patterns(kind, 1, 300)[0] + NEAR_LIMITS[kind]
    wide = "64" in to + kind
    expected = [to_integer(ref.decode(x, ref.FORMATS[kind]), to, mode, wide) & register(to) for x in raw]
    assert run(f"cvt.{name}", raw).tolist() == expected


TO_FLOAT = ["rn.f32.s32", "rn.f32.u64", "rz.f32.s64", "rp.f32.u32", "rm.f64.s64", "rn.f64.u64", "rn.f16.s32"]
TO_FLOAT += ["rp.f16.u64", "rz.bf16.s64", "rn.bf16.u32", "rm.f16.s16", "rn.f32.s8"]


@pytest.mark.parametrize("name", every_word(TO_FLOAT))
def test_integer_to_float(name):
    mode, to, kind = name.split(".")
    raw = integers(kind) + [0x7FFFFFBF & ((1 << width(kind)) - 1), 65519 & ((1 << width(kind)) - 1)]
    if width(kind) == 64:
        raw += [
            0x7FFFFFFFFFFFFDFF,
            0x8000000000000400,
            0xFFFFFFFFFFFFFBFF,
            0x8000008000000001,
            (1 << 53) + 1,
            1 << 25 | 1,
        ]
    fmt = ref.FORMATS[to]
    expected = [ref.encode(ref.make(Fraction(value(x, kind)), False), fmt, mode) for x in raw]
    assert run(f"cvt.{name}", raw).tolist() == expected


BETWEEN = ["f32.f16", "f64.f16", "f32.bf16", "f64.f32", "f64.bf16"]
BETWEEN += [
    f"{m}.{pair}" for m in ("rn", "rz", "rm", "rp") for pair in ("f16.f32", "bf16.f32", "f32.f64", "f16.f64")
]
BETWEEN += ["rn.bf16.f64", "rz.f16.bf16", "rp.bf16.f16", "rn.satfinite.f16.f32", "rz.satfinite.bf16.f32"]
BETWEEN += ["rn.tf32.f32", "rz.tf32.f32", "rna.tf32.f32", "rna.satfinite.tf32.f32"]
HALFWAY = {
    "f32": [
        0x3F801000,
        0x3F803000,
        0x3F808000,
        0x3F818000,
        0x477FEFFF,
        0x477FF000,
        0x33000000,
        0x33000001,
        0x7F7FF000,
    ]
    + [0x387FF000, 0x7F7F8000, 0x7F7F7FFF, 0x00008000, 0x00018000, 0x3F800FFF, 0x3F801001],
    "f64": [
        0x47EFFFFFF0000000,
        0x47EFFFFFEFFFFFFF,
        0x3690000000000000,
        0x3690000000000001,
        0x3FF0000010000000,
    ]
    + [0x3FF0000030000000, 0x3FF0020000000000, 0x3FF0020000000001, 0x3E60000000000000, 0x40EFFE0000000000],
    "f16": [],
    "bf16": [0x33000 >> 4, 0x4780],
}


@pytest.mark.parametrize("name", every_word(BETWEEN))
def test_float_to_float(name):
    *mods, to, kind = name.split(".")
    mode, finite = (mods or ["rn"])[0], "satfinite" in mods
    raw = patterns(kind, 1, 600)[0] + HALFWAY[kind]
    for bits, got in zip(raw, run(f"cvt.{name}", raw).tolist(), strict=True):
        expected = ref.encode(ref.decode(bits, ref.FORMATS[kind]), ref.FORMATS[to], mode, finite)
        got = got >> 13 if to == "tf32" else got
        assert same(got, expected, to), f"cvt.{name} {bits:#x}: {got:#x}, not {expected:#x}"


@pytest.mark.parametrize("mode", every_word(ROUNDINGS))
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_round_to_whole_numbers(mode, kind):
    fmt = ref.FORMATS[kind]
    raw = patterns(kind, 1, 300)[0] + NEAR_LIMITS[kind]
    for bits, got in zip(raw, run(f"cvt.{mode}.{kind}.{kind}", raw).tolist(), strict=True):
        x = ref.decode(bits, fmt)
        if not (x.is_nan or x.is_inf):
            x = ref.make(Fraction(ROUNDINGS[mode](x.signed)), x.negative)
        assert same(got, ref.encode(x, fmt), kind)


@pytest.mark.parametrize("name", ["sat.f32.f32", "rn.sat.f16.f32", "sat.f64.f16", "rz.ftz.sat.f32.f64"])
def test_saturated_floats(name):
    to, kind = name.split(".")[-2:]
    mode = "rz" if "rz" in name else "rn"
    raw = patterns(kind, 1, 300)[0]
    for bits, got in zip(raw, run(f"cvt.{name}", raw).tolist(), strict=True):
        x, fmt = ref.decode(bits, ref.FORMATS[kind]), ref.FORMATS[to]
        x = ref.flush_result(x, fmt, mode) if ".ftz" in name else x
        assert got == ref.saturate(ref.encode(x, fmt, mode), fmt)


def test_ftz_flushes_float32_sources():
    for name in ("cvt.ftz.f64.f32", "cvt.rpi.ftz.s32.f32", "cvt.ftz.f32.f32"):
        assert run(name, [0x007FFFFF]).tolist() == [0]


SMALL = {"e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 4}


def narrow(bits: int, kind: str, relu: bool, source: ref.Format = ref.F32) -> int:
    """An element of a packed format: always .satfinite; NaN becomes the largest number if the format has no
    NaN.
    """
    x = ref.decode(bits, source)
    if relu and x.negative and not x.is_nan:
        x = ref.Number(False, Fraction(0))
    return ref.encode(x, ref.FORMATS[kind], "rn", finite=True)


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_two_floats_to_a_packed_format(kind, relu):
    a, b = patterns("f32", 2, 500)
    a += [
        0x43E00000,
        0x43E7FFFF,
        0x43E80000,
        0x3A800000,
        0x3A800001,
        0x40C00000,
        0x40A00000,
        0x3E800000,
        0x3E800001,
    ]
    b += [
        0x41F00000,
        0x41F80000,
        0x40E80000,
        0x40F00000,
        0x3D800000,
        0x3DC00000,
        0x47600000,
        0x47700000,
        0x3F400000,
    ]
    got = run(f"cvt.rn.satfinite{relu}.{kind}x2.f32", a, b).tolist()
    expected = [
        narrow(y, kind, bool(relu)) | narrow(x, kind, bool(relu)) << SMALL[kind]
        for x, y in zip(a, b, strict=True)
    ]
    assert got == expected


@pytest.mark.parametrize("source", ["f16", "bf16"])
@pytest.mark.parametrize("kind", SMALL)
def test_two_halves_to_a_packed_format(kind, source):
    low, high = patterns(source, 2, 400)
    packed = [x | y << 16 for x, y in zip(low, high, strict=True)]
    got = run(f"cvt.rn.satfinite.{kind}x2.{source}x2", packed).tolist()
    parts = [[narrow(x, kind, False, ref.FORMATS[source]) for x in column] for column in (low, high)]
    assert got == [x | y << SMALL[kind] for x, y in zip(*parts, strict=True)]


ML_TYPES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m3": "float6_e2m3fn", "e3m2": "float6_e3m2fn"}
ML_TYPES["e2m1"] = "float4_e2m1fn"


HALVES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("to", HALVES)
@pytest.mark.parametrize("kind", SMALL)
def test_every_small_number_to_halves(kind, to):
    """All codes of a format, against ml_dtypes."""
    bits = ref.FORMATS[kind].bits
    codes = np.arange(1 << bits, dtype=np.uint8)
    numbers = codes.view(getattr(ml_dtypes, ML_TYPES[kind])).astype(HALVES[to])
    packed = codes.astype(np.uint64) | codes[::-1].astype(np.uint64) << np.uint64(SMALL[kind])
    got = run(f"cvt.rn.{to}x2.{kind}x2", packed)
    expected = numbers.view(np.uint16).astype(np.uint64)
    expected[np.isnan(numbers)] = 0x7FFF
    assert got.tolist() == (expected | expected[::-1] << np.uint64(16)).tolist()


@pytest.mark.parametrize(
    "name, expected", [("rn", [0x7F80, 0xFF80]), ("rn.satfinite", [0x7F7F, 0xFF7F]), ("rn.relu", [0x7F80, 0])]
)
def test_infinities_of_e5m2_to_bf16(name, expected):
    got = run(f"cvt.{name}.bf16x2.e5m2x2", np.array([0xFC7C], np.uint64)).tolist()
    assert got == [expected[0] | expected[1] << 16]


@pytest.mark.parametrize("to, dtype", HALVES.items())
def test_pairs_of_halves_against_numpy(to, dtype):
    """cvt.rn.f16x2.f32 puts its first source into the upper half."""
    a, b = (np.array(x, np.uint32).view(np.float32) for x in patterns("f32", 2, 800))
    with np.errstate(all="ignore"):
        high, low = (
            np.where(np.isnan(x), 0x7FFF, x.astype(dtype).view(np.uint16)).astype(np.uint64) for x in (a, b)
        )
    got = run(f"cvt.rn.{to}x2.f32", a.view(np.uint32), b.view(np.uint32))
    assert got.tolist() == (low | high << np.uint64(16)).tolist()


@pytest.mark.parametrize("name", ["cvt.rz.relu.f16x2.f32", "cvt.rn.relu.satfinite.bf16x2.f32"])
def test_relu_of_halves(name):
    to, mode = ("f16", "rz") if "f16x2" in name and "bf16" not in name else ("bf16", "rn")
    a, b = patterns("f32", 2, 400)
    fmt = ref.FORMATS[to]

    def one(bits):
        x = ref.decode(bits, ref.F32)
        return 0 if x.negative and not x.is_nan else ref.encode(x, fmt, mode, "satfinite" in name)

    assert run(name, a, b).tolist() == [one(y) | one(x) << 16 for x, y in zip(a, b, strict=True)]


def test_scale_factors():
    """ue8m0 holds 2**(code - 127); rz and rp pick the power below and above, 0xFF is NaN, no signs."""
    cases = [  # float32 bits, rz, rp, rp.satfinite
        *[(0x3F800000, 127, 127, 127), (0xBF800001, 127, 128, 128), (0x40400000, 128, 129, 129)],
        *[(0, 0, 0, 0), (0x00400000, 0, 0, 0), (0x00400001, 0, 1, 1), (0x00800000, 1, 1, 1)],
        *[(0x7F000001, 254, 255, 254), (0x7F800000, 255, 255, 254), (0x7FC00000, 255, 255, 255)],
    ]
    for bits, *expected in cases:
        for mods, code in zip(("rz", "rp", "rp.satfinite"), expected, strict=True):
            assert run(f"cvt.{mods}.ue8m0x2.f32", [bits], [0x40000000]).tolist() == [code << 8 | 128], (
                mods,
                hex(bits),
            )
    codes = np.arange(256, dtype=np.uint8)
    powers = codes.view(ml_dtypes.float8_e8m0fnu).astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.uint64)
    powers[255] = 0x7FFF
    assert run("cvt.rn.bf16x2.ue8m0x2", codes).tolist() == (powers | np.uint64(0x40 << 16)).tolist()


@pytest.mark.parametrize("to", ["u16", "s16"])
def test_pack_two_integers(to):
    raw = edges("s32") * 2
    a, b = raw, raw[::-1]
    expected = [
        clamp(value(y, "s32"), to) & 0xFFFF | (clamp(value(x, "s32"), to) & 0xFFFF) << 16
        for x, y in zip(a, b, strict=True)
    ]
    assert run(f"cvt.pack.sat.{to}.s32", a, b).tolist() == expected


@pytest.mark.parametrize("to", ["u8", "s8", "u4", "s2"])
def test_pack_into_an_accumulator(to):
    bits, mask = int(to[1:]), (1 << int(to[1:])) - 1
    a, b, c = edges("s32"), edges("s32")[::-1], edges("u32")
    expected = []
    for x, y, z in zip(a, b, c, strict=True):
        low, high = (clamp(value(v, "s32"), f"{to[0]}{bits}") & mask for v in (y, x))
        expected.append((low | high << bits | z << 2 * bits) & 0xFFFFFFFF)
    assert run(f"cvt.pack.sat.{to}.s32.b32", a, b, c).tolist() == expected


@pytest.mark.parametrize("kind", ["b16", "u32", "s64", "f32", "f64"])
def test_mov(kind):
    raw = [0, 1, (1 << int(kind[1:])) - 1, 0x7F81]
    assert run(f"mov.{kind}", raw).tolist() == raw


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["rn", "rz", "rm", "rp"]), st.sampled_from(["f16", "bf16"]))
def test_any_float_to_half(bits, mode, to):
    expected = ref.encode(ref.decode(bits, ref.F32), ref.FORMATS[to], mode)
    assert int(run(f"cvt.{mode}.{to}.f32", [bits])[0]) == expected
