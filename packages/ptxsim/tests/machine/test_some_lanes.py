"""Loads and stores by some lanes of a warp, in every space, and where lanes reconverge after a branch."""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel

import ptxsim

MASKS = [0xFFFF_FFFF, 0x0000_0001, 0x8000_0000, 0x5A3C_0F81, 0x7FFF_FFFE]
SPACES = ["global", "shared", "local", "shared generic", "local generic"]
KINDS = ["u8", "s8", "u16", "s16", "b32", "b64"]
VALUES = np.random.default_rng(4).integers(0, 2**64, (2, 32), dtype=np.uint64)


def at(space: str) -> str:
    """PTX that sets %y0 to the address of an access %x0 bytes from the start of a buffer."""
    where = {
        "global": "mul.wide.u32 %y2, %t, 8; sub.u64 %y1, %out, %y2; add.u64 %y1, %y1, 512;",
        "shared": "cvt.u64.u32 %y1, %sm;",
        "local": "mov.u64 %y1, frame;",
        "shared generic": "cvt.u64.u32 %y1, %sm; cvta.shared.u64 %y1, %y1;",
        "local generic": "mov.u64 %y1, frame; cvta.local.u64 %y1, %y1;",
    }[space]
    return f"{where} cvt.u64.u32 %y0, %x0; add.u64 %y0, %y0, %y1;"


def launched(text: str, checks: bool):
    """(its output, the launch). `text` may use a predicate %m, and frame, its local memory."""
    text = f"{{ .reg .pred %m; .local .align 16 .b8 frame[1024]; mov.u64 %o1, 0; {text} }}"
    ptx = register_kernel(text, 2, 2, 64, 1024)
    out = np.zeros((4, 32), np.uint64)  # two rows for the registers, and two for accesses
    return out, ptxsim.load(ptx).launch("k", block=32, args=[VALUES, out], checks=checks)


def chosen(mask: int) -> str:
    return f"mov.u32 %x1, {mask}; shr.u32 %x1, %x1, %t; and.b32 %x1, %x1, 1; setp.ne.u32 %m, %x1, 0;"


def loaded(value: int, kind: str) -> int:
    size = int(kind[1:]) // 8
    raw = value & ((1 << 8 * size) - 1)
    return int.from_bytes(raw.to_bytes(size, "little"), "little", signed=kind[0] == "s") & (2**64 - 1)


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", SPACES)
def test_each_lane_of_a_mask_gets_its_own(space, kind, checks):
    """Lanes store to another lane's place, and load it again; the other lanes keep their values."""
    size, word = int(kind[1:]) // 8, space.split()[0] + "."
    word = "" if "generic" in space else word
    for mask in MASKS:
        text = f"""{chosen(mask)} mul.lo.u32 %x0, %t, 5; and.b32 %x0, %x0, 31; mul.lo.u32 %x0, %x0, {size};
        {at(space)} mov.u64 %o0, 7; @%m st.{word}{kind} [%y0], %r0; @%m ld.{word}{kind} %o0, [%y0];"""
        out, result = launched(text, checks)
        assert not checks or result.verdict == "clean", result.findings
        expected = [loaded(int(v), kind) if mask >> t & 1 else 7 for t, v in enumerate(VALUES[0])]
        assert out[0].tolist() == expected


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("space", SPACES)
def test_vectors_of_some_lanes(space, checks):
    word = "" if "generic" in space else space + "."
    for mask in MASKS:
        text = f"""{chosen(mask)} shl.b32 %x0, %t, 4; {at(space)} mov.u64 %o0, 7; mov.u64 %o1, 8;
        @%m st.{word}v2.b64 [%y0], {{%r0, %r1}}; @%m ld.{word}v2.b64 {{%o1, %o0}}, [%y0];"""
        out, _ = launched(text, checks)
        lanes = np.array([mask >> t & 1 for t in range(32)], bool)
        assert out[0].tolist() == np.where(lanes, VALUES[1], 7).tolist()
        assert out[1].tolist() == np.where(lanes, VALUES[0], 8).tolist()


@pytest.mark.parametrize("space", ["shared", "local"])
def test_one_lane_of_a_mask_outside(space):
    """The other lanes' accesses are performed."""
    text = f"""{chosen(0x5A3C_0F81)} shl.b32 %x0, %t, 3; setp.eq.u32 %p, %t, 7; @%p add.u32 %x0, %x0, 1048576;
    {at(space)} mov.u64 %o0, 7; @%m st.{space}.b64 [%y0], %r0; @%m ld.{space}.b64 %o0, [%y0];"""
    out, result = launched(text, True)
    assert {f.kind for f in result.findings if f.severity == "error"} == {"out-of-bounds"}
    rest = [t for t in range(32) if 0x5A3C_0F81 >> t & 1 and t != 7]
    assert out[0, rest].tolist() == VALUES[0, rest].tolist() and out[0, 7] == 0 and out[0, 1] == 7


@pytest.mark.parametrize("guard, lanes", [("@%m ", 0), ("", 8), ("@!%m ", 8)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", ["local", "local generic"])
def test_lanes_that_load_what_they_have_not_written(space, kind, guard, lanes):
    """The lanes of the mask have written it."""
    word = "local." if space == "local" else ""
    text = f"""{chosen(0x0FFF_FFF0)} mov.u32 %x0, 16; {at(space)} mov.u64 %o0, 7;
    @%m st.{word}{kind} [%y0], %r0; {guard}ld.{word}{kind} %o0, [%y0];"""
    _, result = launched(text, True)
    assert [f.count for f in result.findings if f.kind == "uninitialized"] == ([lanes] if lanes else [])


def test_one_unwritten_byte_is_told_of():
    for missing in range(8):
        stores = "".join(f"st.local.u8 [frame+{8 + b}], %r0; " for b in range(8) if b != missing)
        for wide in ("ld.local.b64 %o0, [frame+8];", "ld.local.v2.b32 {%x2, %x3}, [frame+8];"):
            _, result = launched(f"{stores} mov.u64 %o0, 0; {wide}", True)
            (finding,) = [f for f in result.findings if f.kind == "uninitialized"]
            assert finding.count == 32 and "frame + 8 B" in finding.message


HOPS = """mov.u64 %o0, 0; mov.u32 %x0, 0; cvt.u32.u64 %x2, %r0; and.b32 %x2, %x2, 7;
AGAIN: and.b32 %x1, %x0, 1; setp.eq.u32 %m, %x1, 0; @%m bra NEXT; add.u64 %o0, %o0, 10;
and.b32 %x3, %t, 1; setp.eq.u32 %p, %x3, 0; @%p bra NEXT; add.u64 %o0, %o0, 100;
NEXT: add.u64 %o0, %o0, 1; add.u32 %x0, %x0, 1; setp.le.u32 %p, %x0, %x2; @%p bra AGAIN;"""


@pytest.mark.parametrize("checks", [True, False])
def test_lanes_that_jump_to_where_all_meet(checks):
    """Around the body of an `if`, and out of a loop: with every lane in step, or each with its own count."""
    out, result = launched(HOPS, checks)
    for t, value in enumerate(VALUES[0].tolist()):
        turns = (value & 7) + 1
        odd = turns // 2
        assert out[0, t] == turns + 10 * odd + (100 * odd if t & 1 else 0)
    assert result.stats["warp_instructions"] == launched(HOPS, not checks)[1].stats["warp_instructions"]
