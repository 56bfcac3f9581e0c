"""The inputs of a saved kernel when it runs on a chip again."""

import numpy as np

from research.chip.again import LARGE, POISON, inputs
from research.chip.compact import VALUES

PTX = "  ld.global.b32 %r1, [%rd1];"
ADDS = "  @%p1 red.global.add.f32 [%rd1], %f1;"


def spec_of(*pointers):
    args = [{"array": n, "name": name, "dtype": dtype} for n, (name, dtype) in enumerate(pointers)]
    return {"name": "kernel-1", "args": args}


def data_of(spec, size, *written):
    made = {f"in{n}": np.arange(size // 4, dtype=np.int32).view(np.uint8) for n in range(len(spec["args"]))}
    return made | {f"out{n}": np.zeros(size, np.uint8) for n in written}


def test_large_inputs_are_of_four_values_and_indices_stay():
    spec = spec_of(("arg_A", "float16"), ("in_ptr1", "int32"), ("arg_B", "int8"), ("out_ptr0", "float32"))
    data = data_of(spec, 2 * LARGE, 3)
    (halves, index, whole, output), rules = inputs(spec, PTX, data)
    assert set(halves.view(np.float16).tolist()) == set(VALUES)
    assert set(whole.view(np.int8).tolist()) == set(2 * VALUES)
    assert (index == data["in1"]).all()
    assert (output == POISON).all()
    assert set(rules) == {"in0", "in2"}


def test_what_is_read_and_written_stays_as_it_was():
    spec = spec_of(("in_out_ptr0", "float32"))
    data = data_of(spec, 256, 0)
    (before,), rules = inputs(spec, PTX, data)
    assert (before == data["in0"]).all() and not rules


def test_sums_begin_at_zero_and_do_not_depend_on_their_order():
    spec = spec_of(("in_ptr0", "float32"), ("out_ptr0", "float32"))
    (added, sums), _ = inputs(spec, ADDS, data_of(spec, 256, 1))
    assert set(added.view(np.float32).tolist()) <= set(VALUES)
    assert not sums.any()


def test_small_inputs_keep_their_sign_and_order():
    ascending, positive, mixed = np.linspace(-1, 1, 64), np.array([2.0, 1.0] * 32), np.array([1.0, -1.0] * 32)
    spec = spec_of(*(("in_ptr", "float64") for _ in range(3)))
    data = {f"in{n}": a.view(np.uint8) for n, a in enumerate((ascending, positive, mixed))}
    made, _ = inputs(spec, PTX, data)
    ascending, positive, mixed = (a.view(np.float64) for a in made)
    assert (np.diff(ascending) >= 0).all() and ascending[0] < 0
    assert (positive >= 0).all() and (np.diff(positive) < 0).any()
    assert (mixed < 0).any() and (mixed > 0).any()
