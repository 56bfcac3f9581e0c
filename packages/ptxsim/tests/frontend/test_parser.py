"""ptxsim.parser: real NVRTC output prints back unchanged; operands, constants, scopes."""

from __future__ import annotations

import re
import struct

import pytest
from ptx_samples import SAMPLES, instrs, kernel, module, one, sample_ptx

from ptxsim.frontend import ast as p
from ptxsim.frontend.lexer import Tokens
from ptxsim.frontend.parser import parse

# --- what is parsed prints back as it was written ---


def show(operand, names: dict[str, str]) -> str:
    """PTX text of an operand, with the names as written."""

    def many(items):
        return ",".join(show(item, names) for item in items)

    def offset(value):
        return f"+{value}" if value > 0 else f"+-{-value}" if value else ""

    def name(text):
        base, dot, rest = text.partition(".")
        return names.get(text) or names.get(base, base) + dot + rest

    match operand:
        case p.Reg(text) | p.Label(text):
            return name(text)
        case p.Imm(bits, kind):
            return str(bits) if kind == "int" else f"0f{bits:08X}" if kind == "f32" else f"0d{bits:016X}"
        case p.Sym(text, add):
            return name(text) + offset(add)
        case p.Mem(base, add, parts):
            return "[" + many((base,)) + offset(add) + "".join("," + show(x, names) for x in parts) + "]"
        case p.Vec(items):
            return "{" + many(items) + "}"
        case p.Paren(items):
            return "(" + many(items) + ")"
        case p.Pred(reg, negated):
            return "!" * negated + show(reg, names)
        case p.Pair(first, second):
            return show(first, names) + "|" + show(second, names)
        case p.Sink():
            return "_"
    raise AssertionError(operand)


def show_instr(instr: p.Instr, names: dict[str, str]) -> str:
    guard = f"@{show(instr.pred, names)}" if instr.pred else ""
    return guard + instr.name + ",".join(show(x, names) for x in instr.operands) + ";"


def normal(text: str) -> str:
    """Statement text without spaces, integers in decimal, no `+0`."""
    tokens = Tokens(text)
    parts = [
        str(int(v.rstrip("U"), 0)) if k == "int" else v.upper().replace("0F", "0f", 1) if k == "real" else v
        for k, v in zip(tokens.kinds, tokens.values, strict=True)
    ]
    parts = [x.replace("0D", "0d", 1) if k == "real" else x for k, x in zip(tokens.kinds, parts, strict=True)]
    return re.sub(r"\+0(?=[\],;])", "", "".join(parts)).replace("+-", "-")


def round_trip(parsed: p.Module) -> int:
    count = 0
    for fn in parsed.functions.values():
        for instr in instrs(fn):
            assert show_instr(instr, fn.renamed).replace("+-", "-") == normal(instr.text), instr
            count += 1
    return count


@pytest.mark.parametrize("name", SAMPLES)
def test_real_ptx_round_trips(name):
    text = sample_ptx(name)
    parsed = parse(text)
    statements = re.findall(r"^\s*(?:@!?\S+\s+)?[a-z]\w*(?:\.[\w:]+)*(?:[ \t][^:\n]*)?;", text, re.M)
    assert round_trip(parsed) >= len(statements) - text.count(".callprototype") > 0


@pytest.mark.parametrize("name", SAMPLES)
def test_every_name_is_declared(name):
    """Registers are in regs or special, labels exist, symbols are variables, parameters or functions."""
    parsed = parse(sample_ptx(name))
    for fn in parsed.functions.values():
        labels = {item.name for item in fn.body if isinstance(item, p.LabelDef)}
        assert len(labels) == sum(isinstance(item, p.LabelDef) for item in fn.body)
        lists = fn.branchtargets.keys() | fn.calltargets.keys() | fn.prototypes.keys()
        symbols = (
            {v.name for v in fn.vars + fn.params + fn.returns} | parsed.vars.keys() | parsed.functions.keys()
        )
        for operand in (leaf for instr in instrs(fn) for leaf in leaves(instr.operands + (instr.pred,))):
            if isinstance(operand, p.Reg):
                special = re.match(r"%(n?tid|n?ctaid|cluster_ctarank|laneid)", operand.name)
                assert operand.name in fn.regs or special, operand
            elif isinstance(operand, p.Label):
                assert operand.name in labels | lists
            elif isinstance(operand, p.Sym):
                assert operand.name in symbols


def leaves(items):
    for item in items:
        if isinstance(item, (p.Vec, p.Paren)):
            yield from leaves(item.items)
        elif isinstance(item, p.Mem):
            yield from leaves((item.base, *item.parts))
        elif isinstance(item, p.Pair):
            yield from (item.first, item.second)
        elif isinstance(item, p.Pred):
            yield item.reg
        elif item is not None:
            yield item


# --- module facts of the real samples ---


def test_module_facts():
    parsed = parse(sample_ptx("language-sm_90a"))
    assert (parsed.target, parsed.address_size) == (("sm_90a",), 64)
    assert re.fullmatch(r"\d+\.\d", parsed.version)
    fn = parsed.functions["language"]
    assert fn.is_kernel and not fn.extern
    assert fn.directives["maxntid"][0] == 128 and fn.directives["minnctapersm"] == (2,)
    assert [(v.type, v.count, v.align, v.size) for v in fn.params] == [
        ("b8", 128, 64, 128),
        ("u64", 1, 8, 8),
        ("u32", 1, 4, 4),
        ("f32", 1, 4, 4),
    ]
    tile = next(v for v in fn.vars if v.space == "shared")
    assert (tile.size, tile.align) == (32 * 33 * 4, 128)
    assert next(v for v in fn.vars if v.space == "local").size >= 64
    assert fn.regs["%r1"] == "b32" and fn.regs["%p1"] == "pred"
    assert parsed.functions["vprintf"].extern and not parsed.functions["vprintf"].is_kernel
    dyn = parsed.vars["dyn"]
    assert dyn.extern and dyn.space == "shared" and dyn.size == 0 and dyn.align == 16
    assert fn.prototypes and next(iter(fn.prototypes.values())).params[1].type == "b32"


def test_real_initialisers():
    parsed = parse(sample_ptx("language-sm_90a"))
    assert struct.unpack("<4f", parsed.vars["ctab"].init) == (1.0, 2.5, -3.0, 0.0)
    assert parsed.vars["ctab"].space == "const"
    assert struct.unpack("<6i", parsed.vars["gtab"].init) == (1, 2, 3, 4, 5, 6)
    assert struct.unpack("<2d", parsed.vars["dtab"].init) == (1.5, -2.0)
    assert parsed.vars["ptrs"].relocs == [(0, p.Sym("gtab", 16, generic=True))]
    assert parsed.vars["mixed"].relocs == [(8, p.Sym("ctab", 8, generic=True))]
    assert struct.unpack("<ibxh", parsed.vars["mixed"].init[:8]) == (1, ord("x"), 3)
    assert [name.generic for _, name in parsed.vars["table"].relocs] == [False, False]


def test_real_inline_asm_scopes():
    """Two asm blocks repeat labels and predicates, the second nests a third P1; each branch stays in its
    scope.
    """
    fn = parse(sample_ptx("language-sm_90a")).functions["language"]
    predicates = [name for name in fn.regs if fn.renamed.get(name, name) == "P1"]
    assert len(predicates) == 3 and {fn.regs[name] for name in predicates} == {"pred"}
    waits = [item for item in fn.body if isinstance(item, p.LabelDef) and item.name.startswith("LAB_WAIT")]
    done = [item for item in fn.body if isinstance(item, p.LabelDef) and item.name.startswith("DONE")]
    assert len(waits) == len(done) == 2
    for wait, out in zip(waits, done, strict=True):
        inside = fn.body[fn.body.index(wait) : fn.body.index(out)]
        targets = {i.operands[0].name for i in inside if isinstance(i, p.Instr) and i.op == "bra"}
        assert targets == {wait.name, out.name}
    first, second = (i for i in instrs(fn) if i.op == "mbarrier")
    assert first.operands[0] != second.operands[0]
    assert second.operands[1].offset == 8


def test_real_source_markers_and_locations():
    fn = parse(sample_ptx("language-sm_100a-lines")).functions["language"]
    found = instrs(fn)
    assert found[0].src is None and found[0].at.file is None
    first, second = (i for i in found if i.op == "mbarrier")
    assert (first.src, first.at.file) == (12, None)
    assert (second.src, second.at.file) == (13, "steps/step 2.py")
    assert found[-1].src == 13
    file, line, column = first.at.loc
    source = SAMPLES["language-sm_100a-lines"][0].split("\n")
    assert "mbarrier" in source[line - 2] + source[line - 1] and file == 1 and column > 0


def test_real_line_numbers_and_text():
    text = sample_ptx("hopper-sm_90a")
    lines = text.split("\n")
    for instr in instrs(parse(text).functions["hopper"]):
        assert instr.op in lines[instr.line - 1]
    assert parse(text).functions["hopper"].directives["reqnctapercluster"] == (2, 1, 1)


def test_real_branch_targets():
    fn = parse(sample_ptx("switch-sm_80")).functions["jump"]
    (brx,) = (i for i in instrs(fn) if i.op == "brx")
    assert brx.mods == ("idx",)
    assert fn.branchtargets[brx.operands[1].name] == [p.Label("A0"), p.Label("A1"), p.Label("A2")]


# --- operands ---


def reg(number: int) -> p.Reg:
    return p.Reg(f"%r{number}")


RD = p.Reg("%rd1")
OPERANDS = {
    "ld.global.u32 %r1, [%rd1];": (reg(1), p.Mem(RD)),
    "ld.global.u32 %r1, [%rd1+16];": (reg(1), p.Mem(RD, 16)),
    "ld.global.u32 %r1, [%rd1 + -8];": (reg(1), p.Mem(RD, -8)),
    "ld.global.u32 %r1, [%rd1-8];": (reg(1), p.Mem(RD, -8)),
    "ld.shared.u32 %r1, [0x10];": (reg(1), p.Mem(p.Imm(16, "int"))),
    "ld.global.u32 %r1, [arr+4];": (reg(1), p.Mem(p.Sym("arr"), 4)),
    "ld.global.u32 %r1, [arr[2]];": (reg(1), p.Mem(p.Sym("arr"), 8)),
    "ld.global.u32 %r1, arr[2];": (reg(1), p.Mem(p.Sym("arr"), 8)),
    "mov.u64 %rd1, arr[2];": (RD, p.Sym("arr", 8)),
    "mov.u64 %rd1, arr+12;": (RD, p.Sym("arr", 12)),
    "mov.u64 %rd1, generic(arr)+12;": (RD, p.Sym("arr", 12, generic=True)),
    "mov.u64 %rd1, k_param_0;": (RD, p.Sym("k_param_0")),
    "mov.u32 %r1, -1;": (reg(1), p.Imm(-1, "int")),
    "mov.u32 %r1, 0xFFFFFFFFU;": (reg(1), p.Imm(0xFFFFFFFF, "int")),
    "mov.u64 %rd1, 0xFFFFFFFFFFFFFFFF;": (RD, p.Imm(2**64 - 1, "int")),
    "mov.s64 %rd1, -9223372036854775808;": (RD, p.Imm(-(2**63), "int")),
    "mov.u32 %r1, 0b101;": (reg(1), p.Imm(5, "int")),
    "mov.u32 %r1, 017;": (reg(1), p.Imm(15, "int")),
    "mov.u32 %r1, (1+2)*3 - 7/-2;": (reg(1), p.Imm(12, "int")),
    "mov.u32 %r1, 1 ? 2 : 3;": (reg(1), p.Imm(2, "int")),
    "mov.u32 %r1, ~0;": (reg(1), p.Imm(-1, "int")),
    "mov.u32 %r1, -7 % 3;": (reg(1), p.Imm(-1, "int")),
    "mov.u64 %rd1, (.u64)-1 >> 60;": (RD, p.Imm(15, "int")),
    "mov.u64 %rd1, -1 >> 60;": (RD, p.Imm(-1, "int")),
    "mov.u32 %r1, 1 << 4 | 3 && 0;": (reg(1), p.Imm(0, "int")),
    "mov.f32 %r1, 0f3F800000;": (reg(1), p.Imm(0x3F800000, "f32")),
    "mov.f64 %rd1, 0d3FF8000000000000;": (RD, p.Imm(0x3FF8000000000000, "f64")),
    "mov.f64 %rd1, 1.5;": (RD, p.Imm(0x3FF8000000000000, "f64")),
    "mov.f64 %rd1, -1.5e0;": (RD, p.Imm(0xBFF8000000000000, "f64")),
    "mov.f64 %rd1, 1.0/2 + 1;": (RD, p.Imm(0x3FF8000000000000, "f64")),
    "mov.u32 %r1, %tid.x;": (reg(1), p.Reg("%tid.x")),
    "mov.u32 %r1, WARP_SZ;": (reg(1), p.Reg("WARP_SZ")),
    "mov.b64 {%r1, _}, %rd1;": (p.Vec((reg(1), p.Sink())), RD),
    "foo.bar.shared::cluster %r1|%r2, !%r3, _;": (p.Pair(reg(1), reg(2)), p.Pred(reg(3), True), p.Sink()),
    "elect.sync _|%r1, -1;": (p.Pair(p.Sink(), reg(1)), p.Imm(-1, "int")),
    "cp.x [%r1], [%rd1, {%r1,%r2}], [%r2+8], {%r3}, 5;": (
        p.Mem(reg(1)),
        p.Mem(RD, 0, (p.Vec((reg(1), reg(2))),)),
        p.Mem(reg(2), 8),
        p.Vec((reg(3),)),
        p.Imm(5, "int"),
    ),
    "vadd.s32 %r1, %r2.b0, %r3.h1;": (reg(1), p.Reg("%r2.b0"), p.Reg("%r3.h1")),
    "call (%r1), f, (%r2, 3);": (p.Paren((reg(1),)), p.Sym("f"), p.Paren((reg(2), p.Imm(3, "int")))),
    "call.uni f;": (p.Sym("f"),),
    "ret;": (),
}
BEFORE = ".global .align 4 .u32 arr[4];\n.func (.reg .u32 a) f (.reg .u32 b);\n"


@pytest.mark.parametrize("text", OPERANDS)
def test_operands(text):
    assert one(text, BEFORE).operands == OPERANDS[text]


def test_opcode_and_guard():
    fn = kernel(".reg .pred q;\n@!q ld.shared::cta.v4 .b32 {%r1,%r2,%r3,%r4}, [%r5]; // note\n")
    instr = instrs(fn)[0]
    assert (instr.op, instr.mods, instr.name) == ("ld", ("shared::cta", "v4", "b32"), "ld.shared::cta.v4.b32")
    assert instr.pred == p.Pred(p.Reg("q"), True)
    assert instr.text == "@!q ld.shared::cta.v4 .b32 {%r1,%r2,%r3,%r4}, [%r5];" and instr.line == 9
    assert one("tcgen05.wait::ld.sync.aligned;").mods == ("wait::ld", "sync", "aligned")


def test_text_is_one_line_without_comments():
    assert one("add.u32 %r1, // first\n\t%r2, /* second */ 3;").text == "add.u32 %r1, %r2, 3;"


def test_vector_registers():
    fn = kernel(".reg .v4 .f32 v;\nmov.f32 %r1, v.y;\nmov.f32 v.r, %r1;\nld.v4.f32 v, [%rd1];")
    assert [i.operands for i in instrs(fn)][:2] == [(reg(1), p.Reg("v.y")), (p.Reg("v.x"), reg(1))]
    assert instrs(fn)[2].operands[0] == p.Vec(tuple(p.Reg(f"v.{c}") for c in "xyzw"))
    assert fn.regs["v.w"] == "f32"


# --- scopes ---


def test_inner_scope_hides_and_returns():
    fn = kernel("{ .reg .b64 %r1; mov.b64 %r1, 0; }\nmov.b32 %r1, 1;\n{ .reg .f32 %r1; mov.f32 %r1, %r2; }")
    first, second, third = (i.operands[0].name for i in instrs(fn))
    assert second == "%r1" and len({first, second, third}) == 3
    assert (fn.regs[first], fn.regs[second], fn.regs[third]) == ("b64", "b32", "f32")
    assert fn.renamed[first] == fn.renamed[third] == "%r1"


def test_label_resolves_innermost_first():
    fn = kernel("bra END; { bra END; { bra END; bra OUT; END: } END: } END: OUT: ret;")
    targets = [i.operands[0].name for i in instrs(fn) if i.op == "bra"]
    order = [item.name for item in fn.body if isinstance(item, p.LabelDef)]
    assert [targets[0], targets[1], targets[2]] == [order[2], order[1], order[0]] and targets[3] == "OUT"


def test_unique_name_avoids_names_in_use():
    fn = kernel(
        ".reg .b32 x$1;\n{ .reg .b32 x; mov.b32 x, 1; }\n{ .reg .b32 x; mov.b32 x, 2; mov.b32 x$1, 3; }"
    )
    names = [i.operands[0].name for i in instrs(fn)]
    assert len(set(names)) == 3 and names[2] == "x$1"


def test_local_variable_does_not_capture_the_global_one():
    fn = kernel("{ .local .b32 arr; st.local.u32 [arr], 1; }\nst.global.u32 [arr], 2;", BEFORE)
    inner, outer = (i.operands[0].base.name for i in instrs(fn))
    assert outer == "arr" and inner != "arr" and fn.vars[0].name == inner


def test_markers_stay_in_their_function():
    text = ".func a() { // @src 7\n ret; }\n// @src 9\n.func b() { ret; // @src 4\n ret; /* x */ ret; }\n"
    functions = module(text).functions
    assert [i.src for i in instrs(functions["a"])] == [7]
    assert [i.src for i in instrs(functions["b"])] == [None, 4, 4]
