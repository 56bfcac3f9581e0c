"""An H200's results of random products: the model has every bit; ptxsim has those of integers and is near
else.
"""

import numpy as np
import pytest

from research import packed
from research.arithmetic import model, ours
from research.arithmetic.__main__ import RESULTS, SLICE, digest, distance, results, written
from research.arithmetic.forms import FP8, forms, ptx, registers, result
from research.arithmetic.vectors import matrices

ROWS = {row["form"]: row for row in results()}
FORMS = forms()
NEAR = {"f32": 2.0**-17, "f64": 2.0**-47}  # relative to the largest term; f16 is rounded to its own bits


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_chips_bits(form):
    codes = matrices(form, SLICE, 0)
    given = registers(form, *codes)
    mine = ours.product(form, given, codes)
    chip = model.product(form, *codes, model.adder_of(form)) if form.is_float else mine
    assert digest(chip) == ROWS[form.name]["slice"]
    if form.d in NEAR:
        _, far = distance(form, codes, chip, mine)
        assert far <= (2.0**-8 if form.a in FP8 and form.unit != "mma" else NEAR[form.d])


def test_results_are_written_as_they_were_read():
    assert written(list(ROWS.values())) == packed.read(RESULTS)
    rounds = {name: row["rounds"] for name, row in ROWS.items()}
    assert all(
        {len(r) for r in found} == {4} and len(found) == 16 for n, found in rounds.items() if "f64" not in n
    )


def test_registers_come_back_as_the_matrix():
    for form in FORMS:
        codes = matrices(form, SLICE, 0)
        assert np.array_equal(result(form, registers(form, *codes)[2]), codes[2])


def test_every_form_is_one_instruction():
    for form in FORMS:
        counts = [len(part) for part in registers(form, *matrices(form, SLICE, 0))]
        assert ptx(form, counts).count("mma.sync" if form.unit == "mma" else "wgmma.mma_async") == 1


def test_another_adder_has_other_bits():
    """One bit less, K in halves, C at the end: each changes bits."""
    form = next(form for form in FORMS if form.name == "mma.m16n8k16.f32.f16.f16.f32")
    codes = matrices(form, 64, 0)
    right = model.product(form, *codes, model.adder_of(form))
    for adder in (
        model.Adder(24, 16, model.F32),
        model.Adder(25, 8, model.F32),
        model.Adder(25, 16, model.F32, after=True),
    ):
        assert (model.product(form, *codes, adder) != right).any()
