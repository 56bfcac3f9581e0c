"""What the table of scalar instructions accepts and refuses: the ISA's syntax boxes, and ptxas if present."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from scalar_eval import find, instr

from ptxsim.frontend.ast import Imm, Instr, PtxError, Reg, Vec
from ptxsim.isa.mathlib import all as mathlib
from ptxsim.isa.scalar import table as scalar

# Spellings from the syntax boxes and examples of PTX ISA 9.0, with the number of operands
LEGAL_FORMS = """
add.u16:3 add.s64:3 add.sat.s32:3 add.u16x2:3 add.s16x2:3 sub.u32:3 sub.sat.s32:3 mul.wide.u16:3
mul.lo.s64:3 mul.hi.u64:3 mad.lo.u32:4 mad.wide.s32:4 mad.hi.sat.s32:4 mul24.lo.u32:3 mad24.hi.sat.s32:4
sad.s16:4 div.u64:3 rem.s16:3 abs.s64:2 neg.s32:2 min.u16:3 min.relu.s32:3 min.s16x2.relu:3 max.u16x2:3
max.relu.s16x2:3 popc.b64:2 clz.b32:2 bfind.s64:2 bfind.shiftamt.u32:2 fns.b32:4 brev.b64:2 bfe.s64:4
bfi.b32:5 vadd2.u32.s32.u32.sat:4 vabsdiff4.u32.u32.u32:4 vavrg4.s32.s32.s32.add:4 vset4.u32.u32.lt.add:4
szext.clamp.s32:3 bmsk.wrap.b32:3 dp4a.u32.s32:4 dp2a.hi.s32.u32:4 add.cc.u32:3 addc.cc.s64:3
addc.u32:3 sub.cc.s32:3 subc.u64:3 mad.lo.cc.u32:4 mad.hi.cc.s64:4 madc.hi.u32:4 madc.lo.cc.u64:4
testp.subnormal.f64:2 copysign.f32:3 add.rn.ftz.sat.f32:3 add.rp.f64:3 add.rz.ftz.f32x2:3 sub.rm.f32:3
mul.rn.f64:3 mul.rn.ftz.f32x2:3 fma.rn.ftz.sat.f32:4 fma.rz.f64:4 fma.rp.f32x2:4 mad.rn.f32:4 mad.rz.f64:4
div.approx.ftz.f32:3 div.full.f32:3 div.rn.ftz.f32:3 div.rm.f64:3 abs.ftz.f32:2 neg.f64:2
min.ftz.NaN.xorsign.abs.f32:3 min.f32:4 max.NaN.abs.f32:4 max.f64:3 rcp.approx.ftz.f32:2 rcp.rn.f32:2
rcp.rz.f64:2 rcp.approx.ftz.f64:2 sqrt.approx.f32:2 sqrt.rp.ftz.f32:2 sqrt.rn.f64:2 rsqrt.approx.f32:2
rsqrt.approx.f64:2 rsqrt.approx.ftz.f64:2 sin.approx.ftz.f32:2 cos.approx.f32:2 lg2.approx.f32:2
ex2.approx.ftz.f32:2 tanh.approx.f32:2 add.f16:3 add.rn.ftz.sat.f16x2:3 add.rn.bf16x2:3 sub.bf16:3
mul.ftz.f16x2:3 fma.rn.f16:4 fma.rn.relu.f16x2:4 fma.rn.ftz.relu.f16:4 fma.rn.relu.bf16x2:4 neg.bf16x2:2
abs.ftz.f16:2 min.NaN.xorsign.abs.bf16x2:3 max.ftz.f16:3 tanh.approx.bf16x2:2 ex2.approx.f16x2:2
ex2.approx.ftz.bf16:2 add.rz.sat.f32.f16:3 sub.f32.bf16:3 fma.rn.f32.f16:4 set.lt.and.f32.s32:4
set.eq.u32.u32:3 set.ne.ftz.f16.f16:3 set.gtu.u32.bf16:3 set.lt.f16x2.f16x2:3 setp.lt.and.s32:4
setp.eq.u32:3 setp.hs.u16:3 setp.nan.f64:3 setp.ltu.or.ftz.f32:4 setp.eq.b64:3 setp.geu.f16:3 selp.f64:4
selp.b16:4 slct.u64.s32:4 slct.ftz.b16.f32:4 and.pred:3 or.b64:3 xor.b16:3 not.pred:2 cnot.b32:2 lop3.b32:5
shf.l.wrap.b32:4 shf.r.clamp.b32:4 shl.b16:3 shr.s64:3 shr.b32:3 prmt.b32:4 prmt.b32.rc16:4 mov.b32:2
mov.f64:2 mov.pred:2 cvt.rni.f32.f32:2 cvt.rzi.s32.f64:2 cvt.f64.f32:2 cvt.rn.f32.f64:2 cvt.sat.u8.s32:2
cvt.u64.u32:2 cvt.rn.relu.f16.f32:2 cvt.rz.f16x2.f32:3 cvt.rn.relu.satfinite.f16x2.f32:3
cvt.rz.relu.satfinite.bf16.f32:2 cvt.rna.satfinite.tf32.f32:2 cvt.rn.relu.tf32.f32:2 cvt.f64.bf16.rp:2
cvt.bf16.f16.rz:2 cvt.rz.bf16.u64:2 cvt.rpi.s8.bf16:2 cvt.rpi.bf16.bf16:2 cvt.rn.satfinite.e4m3x2.f32:3
cvt.rn.relu.satfinite.e5m2x2.f16x2:2 cvt.rn.f16x2.e4m3x2:2 cvt.rn.relu.f16x2.e2m1x2:2
cvt.rn.satfinite.e2m3x2.f32:3 cvt.rn.relu.f16x2.e3m2x2:2 cvt.rp.satfinite.ue8m0x2.f32:3
cvt.rz.ue8m0x2.bf16x2:2 cvt.rn.bf16x2.ue8m0x2:2 cvt.rn.bf16x2.e4m3x2:2 cvt.rn.relu.bf16x2.e2m1x2:2
cvt.rn.satfinite.relu.bf16x2.e5m2x2:2 cvt.pack.sat.s16.s32:3 cvt.pack.sat.u4.s32.b32:4
"""

ILLEGAL_FORMS = """
add.u8 add.sat.u32 add.b32 add.sat.f64 add.rn.u32 add.ftz.bf16 sub.u16x2 mul.u32 mul.wide.u64 mad.f32
mad.hi.sat.u32 mul24.u32 min.relu.u32 min.abs.f32x2 max.xorsign.f32 popc.u32 brev.u32 bfe.b32 bfi.u32
szext.u32 bmsk.b32 shl.u32 shf.l.b32 shf.clamp.b32 prmt.b32.xyz lop3.xor.b32 setp.lo.s32 setp.lt.b32
setp.ltu.u32 setp.eq.ftz.f64 setp.eq.f8 set.lt.u64.u32 selp.pred slct.u32.u32 fma.f32 fma.rn.sat.relu.f16
div.f32 rcp.f32 sqrt.ftz.f32 sin.f32 ex2.f32 ex2.approx.bf16 tanh.approx.ftz.f32 cvt.s32.f32 cvt.rn.s32.f32
cvt.f16.f32 cvt.sat.u32.u16 cvt.rn.f64.f32 cvt.rn.e4m3x2.f32 cvt.rm.f16x2.f32 cvt.rn.tf32.f16
cvt.rni.f16.f32 cvt.ftz.u32.u64 cvt.pack.u16.s32 mov.b8 mov.v2.b32 and.u32 not.u16 testp.f32 addc.sat.u32
"""


@pytest.mark.parametrize("form", LEGAL_FORMS.split())
def test_accepts(form):
    name, count = form.split(":")
    op = scalar.resolve(instr(name, int(count)))
    assert len(op.dst) + len(op.src) == int(count)


@pytest.mark.parametrize("name", ILLEGAL_FORMS.split())
def test_refuses(name):
    with pytest.raises(PtxError, match=rf"line 7: .*{re.escape(name.split('.')[0])}.*: `{re.escape(name)}`"):
        scalar.resolve(instr(name))


def test_other_opcodes_are_not_ours():
    for name in ("ld.global.u32", "bar.sync", "mma.sync.aligned", "bra", "cvta.to.global.u64", "wgmma.fence"):
        assert scalar.resolve(instr(name)) is None


@pytest.mark.parametrize("name", ["cvt.rs.f16x2.f32", "cvt.rs.satfinite.e2m1x4.f32", "fma.rn.oob.relu.f16"])
def test_unmodelled_forms_say_so(name):
    with pytest.raises(PtxError, match="is not modelled"):
        scalar.resolve(instr(name, 4))


def test_wrong_number_of_operands():
    with pytest.raises(PtxError, match="add.u32 takes 3 operands, not 2"):
        scalar.resolve(instr("add.u32", 2))
    with pytest.raises(PtxError, match="min.f32 takes 3 or 4 operands, not 5"):
        scalar.resolve(instr("min.f32", 5))


def test_two_destinations():
    assert scalar.resolve(instr("setp.lt.s32", 3, pair=True)).dst == ("pred", "pred")
    assert scalar.resolve(instr("lop3.or.b32", 6, pair=True)).dst == ("b32", "pred")
    with pytest.raises(PtxError, match="has one destination"):
        scalar.resolve(instr("add.u32", 3, pair=True))
    with pytest.raises(PtxError, match="two destinations"):
        scalar.resolve(instr("lop3.and.b32", 6))


def test_vector_operands_count_per_item():
    operands = (Reg("%r1"), Vec((Reg("%r2"), Reg("%r3"))), Imm(1, "int"))
    one = Instr(None, "add", ("u32",), operands, 1, "add.u32 %r1, {%r2, %r3}, 1")
    with pytest.raises(PtxError, match="takes 3 operands, not 4"):
        scalar.resolve(one)


def test_rounding_and_saturation_may_stand_anywhere():
    for name in (
        "add.ftz.rn.f32",
        "add.f32.rn.ftz",
        "cvt.f16.f32.rn",
        "min.s16x2.relu",
        "fma.rn.relu.ftz.f16",
    ):
        assert scalar.resolve(
            instr(name, 2 if name.startswith("cvt") else 4 if name.startswith("fma") else 3)
        )


def all_operations():
    """Every spelling of the table with its operation."""
    for opcode in sorted(scalar.OPCODES):
        for spelled in scalar.spellings(opcode).values():
            for form, mods in spelled:
                yield mods["name"], form.build(mods, scalar.HOT)


def test_table_is_consistent():
    """One key, one meaning; types are known; the text names only its sources and the helpers."""
    seen = {}
    for name, op in all_operations():
        assert seen.setdefault(op.key, op) == op, f"{name}: {op.key} has two meanings"
        code = compile(op.expr, name, "eval")
        assert set(code.co_names) <= set("abcde"[: len(op.src)]) | {"cc", "np", "min", "max", "abs"} | set(
            vars(mathlib)
        ) | {"uint64", "int64", "float32", "float64", "rint", "trunc", "floor", "ceil"}, name
        assert all(re.fullmatch(r"pred|b?f\d+|[usb]\d+", kind) for kind in op.dst + op.src), name
    assert len(seen) > 4000


def test_hot_operations_exist():
    hot = {op.key for _, op in all_operations() if op.hot}
    assert hot == scalar.HOT
    assert 90 <= len(hot) <= 130


def registers(kind: str) -> str:
    """The register class that ptxas requires for a type."""
    if kind in ("pred", "f32", "f64"):
        return {"pred": "%p", "f32": "%f", "f64": "%fd"}[kind]
    bits = int(re.sub(r"\D", "", kind))
    return {8: "%c" if kind == "b8" else "%h", 16: "%h", 32: "%r", 64: "%d"}[bits]


def statement(name: str, op: scalar.ScalarOp) -> str:
    sources = [f"{registers(kind)}{i}" for i, kind in enumerate(op.src, 3)]
    if name.startswith("lop3"):
        sources[3] = "0x40"
    kinds = ["b16"] if re.search(r"\.s(8|16)\.bf16$", name) else op.dst
    targets = "|".join(f"{registers(kind)}{i}" for i, kind in enumerate(kinds, 1))
    return f"{name.rstrip('|')} {targets}, {', '.join(sources)};"


BEYOND_PTXAS = re.compile(  # in the syntax box of PTX ISA 9.0, or of 9.2; not in ptxas 13.0
    r"cvt\.\w+\.([us]8\.bf16|bf16\.[us]8)$|cvt\.rn.*\.bf16x2\.e\dm\dx2$"
    r"|cvt\.rn\.satfinite.*\.(e(4m3|5m2)x2\.bf16x2|e(2m1|2m3|3m2)x2\.b?f16x2)$"
)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_ptxas_accepts_every_spelling(tmp_path):
    """The whole table as one kernel for sm_100a."""
    head = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
    classes = {"p": "pred", "c": "b8", "h": "b16", "r": "b32", "d": "b64", "f": "f32", "fd": "f64"}
    head += "".join(f".reg .{kind} %{name}<10>;\n" for name, kind in classes.items())
    lines = [statement(name, op) for name, op in all_operations() if not BEYOND_PTXAS.match(name)]
    source = tmp_path / "table.ptx"
    source.write_text(head + "\n".join(lines) + "\nret;\n}\n")
    command = ["ptxas", "-arch", "sm_100a", "-O0", str(source), "-o", str(tmp_path / "table.cubin")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200)
    refused = [lines[int(n) - head.count("\n") - 1] for n in re.findall(r"line (\d+); error", result.stderr)]
    if "sm_100a" in result.stderr and not refused:
        pytest.skip("this ptxas does not know sm_100a")
    assert not refused and result.returncode == 0, refused[:10] or result.stderr[:300]


def test_find_is_the_same_table():
    assert find("min.f32", 3).src == ("f32",) * 3
