"""Every instruction refuses modifiers that its syntax box does not have, whatever its handler looks at.

The cases are generated from the boxes themselves, so no new unit can be forgotten.
"""

from __future__ import annotations

import random

import pytest

import ptxsim
import ptxsim.units.all_units
from ptxsim.frontend.ast import Instr, PtxError, Reg
from ptxsim.isa import memory_access
from ptxsim.isa.scalar import address
from ptxsim.isa.scalar import table as scalar
from ptxsim.isa.syntax import conform, syntax
from ptxsim.lowering import instruction_selection
from ptxsim.units.registry import UNITS

BOXES = {name: (spec.forms, spec.section) for name, spec in UNITS.items()}
BOXES |= {name: (forms, "9.7.9") for name, forms in memory_access.FORMS.items()}
BOXES |= {name: (forms, section) for name, (section, forms) in address._FORMS.items()}
BOXES |= instruction_selection._CONTROL
MOST = 20  # spellings tried per form


def instr(parts: tuple[str, ...], operands: int) -> Instr:
    registers = tuple(Reg(f"%r{i}") for i in range(operands))
    return Instr(None, parts[0], parts[1:], registers, 3, ".".join(parts))


def spellings(name: str) -> list[tuple[tuple[str, ...], int]]:
    """(opcode and modifiers, number of operands) of random spellings of every form of an instruction."""
    rng, found = random.Random(name), {}
    for form in BOXES[name][0]:
        for _ in range(MOST):
            words = [rng.choice(slot.words + ("",) * bool(slot.brace)) for slot in form.slots]
            parts = (*form.name, *filter(None, words))
            if form.arrange(parts) == parts:  # otherwise it holds only a part of a braced group
                found[parts] = form.operand_counts(parts)[0] or int(form.operands is None)
    return list(found.items())


@pytest.mark.parametrize("name", BOXES)
def test_a_legal_spelling_stays_as_it_is(name):
    for parts, operands in spellings(name):
        one = instr(parts, operands)
        assert conform(one, *BOXES[name]) is one


@pytest.mark.parametrize("name", BOXES)
def test_a_word_that_no_box_has_is_refused_wherever_it_stands(name):
    for parts, operands in spellings(name):
        for at in range(1, len(parts) + 1):
            with pytest.raises(PtxError):
                conform(instr((*parts[:at], "banana", *parts[at:]), operands), *BOXES[name])


@pytest.mark.parametrize("name", BOXES)
def test_a_modifier_that_stands_twice_is_refused(name):
    for parts, operands in spellings(name):
        for at in range(1, len(parts)):
            doubled = (*parts[:at], parts[at], *parts[at:])
            if any(form.arrange(doubled) for form in BOXES[name][0]):
                continue  # two policies of createpolicy may be the same
            with pytest.raises(PtxError):
                conform(instr(doubled, operands), *BOXES[name])


@pytest.mark.parametrize("name", BOXES)
def test_modifiers_in_another_order_are_refused_or_mean_the_same(name):
    rng = random.Random(name)
    for parts, operands in spellings(name):
        mods = list(parts[1:])
        rng.shuffle(mods)
        try:
            found = conform(instr((parts[0], *mods), operands), *BOXES[name])
        except PtxError:
            continue
        assert sorted(found.mods) == sorted(mods)
        again = (parts[0], *found.mods)
        assert any(form.arrange(again) == again for form in BOXES[name][0])


COUNTED = {name: box for name, box in BOXES.items() if None not in {form.operands for form in box[0]}}


@pytest.mark.parametrize("name", COUNTED)
def test_a_number_of_operands_that_no_box_has_is_refused(name):
    parts, _ = spellings(name)[0]
    most = max(form.operands[1] for form in COUNTED[name][0])
    with pytest.raises(PtxError, match="operands"):
        conform(instr(parts, most + 1), *COUNTED[name])


def test_calls_alone_take_any_number_of_operands():
    assert BOXES.keys() - COUNTED.keys() == {"call"}


@pytest.mark.parametrize("name", sorted(scalar.OPCODES))
def test_scalar_instructions_refuse_words_they_do_not_have(name):
    table = list(scalar.spellings(name))
    for mods in random.Random(name).sample(table, min(MOST, len(table))):
        plain = tuple(m for m in mods if m != "|")
        for wrong in ((*plain, "banana"), *((*plain, m) for m in plain)):
            if scalar.ordered(wrong) not in scalar.spellings(name):
                with pytest.raises(PtxError):
                    scalar.resolve(instr((name, *wrong), 3))


@pytest.mark.parametrize("text", [
    "elect.sync.banana %x0|%p, -1;", "membar.cluster;", "mbarrier.arrive.release.shared.b64 _, [%sm];",
    "bar.sync.aligned 0;", "ld.shared.L1::banana.u32 %x0, [%sm];", "bra.banana END;", "ret.banana;",
    "trap.banana;", "cvta.to.banana.u64 %y0, %y1;", "mov.b64.banana %y0, {%x0, %x1};",
    "fence.proxy.async.shared;", "atom.shared.exch.u32 %x0, [%sm], %x1;",
    "red.shared.add.f16x2 [%sm], %x1;", "elect.sync %x0|%p, -1, 5;", "shfl.sync.idx.b32 %x0, %x1, 0, 31;",
    "getctarank.shared::cluster.u64 %x0, %x1;", "getctarank.u32 %x0, %y1;",
    "mapa.shared::cluster.u64 %y0, %x1, %x2;", "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%x0, %x1}, [%x2];",
    "bar.sync.cta 0;", "bar.arrive.cta 0, 32;", "bar.popc.red.u32 %x0, 0, %p;",
    "match.all.all.sync.b32 %x0|%p, %x1, -1;", "st.const.b32 [%y0], %x0;",
    "ld.relaxed.cta.local.b32 %x0, [%y0];", "ld.shared.L1::evict_last.b32 %x0, [%sm];",
    "ld.global.cg.L1::evict_last.b32 %x0, [%y0];", "ld.global.nc.cv.b32 %x0, [%y0];",
    "ld.global.v8.b64 {%y0, %y1, %y2, %y3, %y0, %y1, %y2, %y3}, [%y0];",
    "ld.global.L2::evict_last.b32 %x0, [%y0];", "ld.global.b32 %x0, [%y0], %y1;",
    "red.global.add.u32 [%y0], %x0, %y1;", "ld.global.L2::cache_hint.b32 %x0, [%y0];",
    "atom.shared.add.L2::cache_hint.u32 %x0, [%sm], %x1, %y0;",
    "atom.global.add.u32 {%x0, %x1}, [%y0], {%x2, %x3};", "mul.u32.lo %x0, %x1, %x2;",
    "shf.wrap.l.b32 %x0, %x1, %x2, %x3;", "div.f32.full %x0, %x1, %x2;",
    "dp2a.u32.lo.u32 %x0, %x1, %x2, %x3;", "abs.s32 %y0, %y1;", "and.b32 %p, %p, %p;",
    "and.pred %x0, %x1, %x2;", "setp.eq.u64 %p, %x0, %x1;",
])  # fmt: skip
def test_the_front_door_refuses_what_ptxas_refuses(text):
    head = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
    registers = ".reg .b32 %x<8>, %sm; .reg .b64 %y<4>; .reg .pred %p; .shared .b8 buffer[64];\n"
    with pytest.raises(ptxsim.PtxError):
        ptxsim.load(f"{head}{registers}mov.u32 %sm, buffer;\n{text}\nEND: ret;\n}}\n")


@pytest.mark.parametrize("text", [
    "setp.s32.lt %p, %x0, %x1;", "setp.and.lt.s32 %p, %x0, %x1, %p;", "add.f32.rz.ftz %x0, %x1, %x2;",
    "cos.f32.approx %x0, %x1;", "testp.f32.normal %p, %x0;", "prmt.f4e.b32 %x0, %x1, %x2, %x3;",
    "bar.cta.sync 0;", "barrier.sync.aligned 0;", "ld.b32.global %x0, [%y0];",
    "ld.global.v8.b32.L2::evict_last {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}, [%y0];",
    "ld.global.L2::cache_hint.b32 %x0, [%y0], %y1;", "atom.u32.add.global %x0, [%y0], %x1;",
    "cvt.u64.u32 %y0, %x1;", "cvt.u32.u32 %y0, %y1;", "cvt.s16.s8 %h0, %h1;", "cvt.s8.s32 %h0, %x1;",
])  # fmt: skip
def test_the_front_door_takes_what_ptxas_takes(text):
    head = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
    registers = ".reg .b16 %h<4>; .reg .b32 %x<8>; .reg .b64 %y<4>; .reg .pred %p;\n"
    ptxsim.load(f"{head}{registers}{text}\nret;\n}}\n")


def test_state_spaces_keep_their_order():
    form = syntax("copy .to.from.b32", to="shared::cta", **{"from": "global"})
    assert form.arrange(("copy", "b32", "shared::cta", "global")) == ("copy", "shared::cta", "global", "b32")
    assert form.arrange(("copy", "global", "shared::cta", "b32")) is None


def test_braces_hold_all_of_their_words_or_none():
    form = syntax("op {.sem.scope}.b64", sem="acquire")
    assert form.arrange(("op", "b64")) and form.arrange(("op", "acquire", "cta", "b64"))
    assert form.arrange(("op", "acquire", "b64")) is None and form.arrange(("op", "cta", "b64")) is None


@pytest.mark.parametrize("text", ["cvt.rn.f16x2.e9m9 %x0, %x1;", "tcgen05.new.x1;", "elect.two %x0|%p, -1;"])
@pytest.mark.parametrize("version, told", [("9.0", False), ("9.1", True)])
def test_a_form_of_a_newer_isa_is_said_to_be_one(text, version, told):
    head = f".version {version}\n.target sm_100a\n.address_size 64\n.visible .entry k() {{\n"
    with pytest.raises(ptxsim.PtxError) as error:
        ptxsim.load(f"{head}.reg .b32 %x<8>; .reg .pred %p;\n{text}\nret;\n}}\n")
    assert ("needs PTX ISA 9.1" in str(error.value)) == told
