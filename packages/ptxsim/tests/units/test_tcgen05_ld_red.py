"""tcgen05.ld.red against numpy: the least and the greatest of each thread's registers, NaNs and all."""

from __future__ import annotations

import numpy as np
import pytest

from ptxsim.units.tcgen05_ld_red import reduced

NAN = np.float32("nan")


@pytest.mark.parametrize("op, plain, strict", [("min", np.nanmin, np.min), ("max", np.nanmax, np.max)])
def test_floats(op, plain, strict):
    values = np.random.default_rng(0).normal(size=(8, 32)).astype(np.float32)
    values[3, 5], values[:, 9] = NAN, NAN
    bits = values.view(np.uint32)
    for modifiers, function, source in (
        ((), plain, values),
        (("NaN",), strict, values),
        (("abs",), plain, np.abs(values)),
    ):
        found = reduced(bits, ("ld", "red", op, *modifiers, "f32")).view(np.float32)
        with np.errstate(invalid="ignore"):
            want = np.array([function(source[:, i]) if i != 9 else NAN for i in range(32)], np.float32)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_words(kind):
    values = np.random.default_rng(1).integers(0, 1 << 32, (4, 32), np.uint64).astype(np.uint32)
    typed = values.view(np.uint32 if kind == "u32" else np.int32)
    np.testing.assert_array_equal(reduced(values, ("ld", "red", "max", kind)), typed.max(0).view(np.uint32))
    np.testing.assert_array_equal(reduced(values, ("ld", "red", "min", kind)), typed.min(0).view(np.uint32))
