"""ptxsim.parser: variables, initialisers, function headers, module directives."""

from __future__ import annotations

import struct

import pytest
from ptx_samples import instrs, kernel, module

from ptxsim.frontend import ast as p

DATA = {
    ".global .u32 x = 5;": struct.pack("<I", 5),
    ".global .u32 x[2][2] = {{1},{2,3}};": struct.pack("<4I", 1, 0, 2, 3),
    ".global .u32 x[2][2] = {1,2,3};": struct.pack("<4I", 1, 2, 3, 0),
    ".global .s16 x[] = {-1, 0x10, 010, 0b11};": struct.pack("<4h", -1, 16, 8, 3),
    ".global .u8 x[3] = {255, 256+1, -1};": bytes([255, 1, 255]),
    ".const .f32 x[2] = {1.5, 0f40000000};": struct.pack("<2f", 1.5, 2.0),
    ".const .f32 x = 1e300;": struct.pack("<f", float("inf")),
    ".const .f64 x[2] = {-0.5, 0d3FF0000000000000};": struct.pack("<2d", -0.5, 1.0),
    ".global .v4 .f32 x = {1.0, 2.0, 3.0, 4.0};": struct.pack("<4f", 1, 2, 3, 4),
    ".global .v2 .u32 x[2] = {{1,2},{3,4}};": struct.pack("<4I", 1, 2, 3, 4),
    ".global .align 8 .b32 x[] = {0f3F800000};": struct.pack("<f", 1.0),
    ".global .b64 x = WARP_SZ * 2;": struct.pack("<Q", 64),
}


@pytest.mark.parametrize("text", DATA)
def test_initialiser(text):
    var = module(text).vars["x"]
    assert var.init == DATA[text] and var.size == len(var.init)


def test_masked_and_named_initialisers():
    var = module(".global .b32 foo;\n.global .u8 x[3] = {0xff(foo), 0xff00(generic(foo)), 7};").vars["x"]
    assert var.relocs == [(0, p.Sym("foo", 0, False, 0xFF)), (1, p.Sym("foo", 0, True, 0xFF00))]
    assert var.init == bytes([0, 0, 7])


def test_declaration_qualifiers():
    var = module(".visible .global .attribute(.managed) .align 32 .v2 .b64 x[3];").vars["x"]
    assert (var.align, var.count, var.size, var.init) == (32, 6, 48, None)
    assert var.attributes == ("visible", "managed")
    fn = module(
        ".entry k(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 b[12]) { ret; }"
    ).functions["k"]
    assert fn.params[0].attributes == ("ptr", "ptr.global") and fn.params[1].size == 12
    assert [p.align for p in fn.params] == [8, 8]  # .ptr .align is that of the target's memory


def test_function_directives_and_prototypes():
    text = (
        ".weak .func (.param .b32 r) f (.param .b32 a) .noreturn;\n.alias g, f;\n.file 1 \"a b.cu\", 1, 2\n"
        ".entry k() .maxntid 64, 2 .pragma \"nounroll\"; .explicitcluster .reqnctapercluster 2, 1, 1\n"
        ".maxnreg 40\n"
        "{ ret; }\n.section .debug_str { L: .b8 1,2,3 { } }\n.pragma \"x\";\n"
    )  # fmt: skip
    parsed = module(text)
    assert parsed.functions["g"] is parsed.functions["f"] and parsed.files == {1: "a b.cu"}
    assert parsed.functions["f"].returns[0].name == "r" and "noreturn" in parsed.functions["f"].directives
    assert parsed.functions["k"].directives == {
        "maxntid": (64, 2),
        "pragma": ("nounroll",),
        "explicitcluster": (),
        "reqnctapercluster": (2, 1, 1),
        "maxnreg": (40,),
    }


def test_definition_replaces_declaration():
    fn = module(".func f();\n.func f() { ret; }\n.func f();").functions["f"]
    assert not fn.extern and len(fn.body) == 1


def test_locations():
    fn = kernel(".loc 1 2 3\nret;\n.loc 2 5 6, function_name $L__info + 4, inlined_at 1 7 8\n$L: ret;")
    assert [i.at.loc for i in instrs(fn)] == [(1, 2, 3), (2, 5, 6)]
    assert any(isinstance(item, p.LabelDef) for item in fn.body)


@pytest.mark.parametrize("kind", ["u8", "b16", "s32", "u64", "f32", "u16x2"])
@pytest.mark.parametrize("dims", ["[]", "[40]", "[50]", "[5][8]"])
@pytest.mark.parametrize("odd", ["", "0x10, ", "-3, ", "017, "])
def test_long_initialisers_are_read_as_short_ones(kind, dims, odd):
    numbers = odd + ",\n".join(str(7 * i) for i in range(40 - bool(odd)))
    text = f".global .{kind} x{dims} = {{%s}};"
    long, short = (module(text % n).vars["x"] for n in (numbers, numbers.replace(",\n", ", // one\n")))
    assert long == short and len(long.init) == long.size


@pytest.mark.parametrize(
    ("numbers", "why"), [("1, " * 40 + "1", "more than 40"), ("1, " * 39 + "18446744073709551616", "64 bits")]
)
def test_long_initialisers_that_do_not_fit(numbers, why):
    with pytest.raises(p.PtxError) as error:
        module(f".global .u8 x[40] = {{{numbers}}};")
    assert why in str(error.value)


def test_long_lists_elsewhere_are_single_numbers():
    (store, *_) = instrs(kernel(f"// @src 3\nst.global.b32 [%r1], {{{'1, ' * 39}1}};\n// @src 5\n"))
    assert len(store.operands[1].items) == 40 and store.src == 3
