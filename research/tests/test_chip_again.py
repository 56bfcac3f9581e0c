"""What a caught kernel is given when it runs on a chip once more."""

import io

import numpy as np

from research.chip.again import POISON, VALUES, inputs


def test_numbers_are_of_four_values_and_indices_stay():
    spec = {"args": [{"array": n, "dtype": t} for n, t in enumerate(("float16", "int32", "int8", "float32"))]}
    arrays = {f"in{n}": np.arange(256, dtype=np.uint8) for n in range(4)}
    made = io.BytesIO()
    np.savez(made, **arrays, out3=np.zeros(256, np.uint8))
    made.seek(0)
    halves, index, whole, output = inputs(spec, np.load(made), np.random.RandomState(1))
    assert set(halves.view(np.float16).tolist()) == set(VALUES)
    assert set(whole.view(np.int8).tolist()) == set(2 * VALUES)
    assert (index == arrays["in1"]).all()
    assert (output == POISON).all()
