"""Functions that only compiled code calls are compiled with their callers; called from Python they do the
same.
"""

import numba
import pytest
from numba.core.codegen import CPUCodeLibrary

from ptxsim.isa.mathlib.inner import WHOLE, inner


@inner
def one_more(x):
    return x + 1


@inner(forceinline=True)
def twice(x):
    if x > 5:
        raise ValueError("too large")
    return one_more(x) * 2


@numba.njit(pipeline_class=WHOLE)
def both(x):
    return twice(x) + one_more(x)


@numba.njit
def of_someone_else(x):
    return twice(x)


@pytest.mark.parametrize("x", [3, 3.5])
@pytest.mark.parametrize("function, times, more", [(both, 3, 3), (twice, 2, 2), (of_someone_else, 2, 2)])
def test_values(function, times, more, x):
    assert function(x) == times * x + more


@pytest.mark.parametrize("function", [both, twice, of_someone_else])
def test_exceptions_come_through(function):
    with pytest.raises(ValueError, match="too large"):
        function(7)


def test_only_what_python_calls_is_optimised(monkeypatch):
    optimised, usual = [], CPUCodeLibrary._optimize_final_module

    def note(self):
        optimised.append(self)
        usual(self)

    monkeypatch.setattr(CPUCodeLibrary, "_optimize_final_module", note)

    @inner
    def low(x):
        return x * 3

    @inner
    def middle(x):
        return low(x) + low(x + 1)

    @numba.njit(pipeline_class=WHOLE)
    def top(x):
        return middle(x) + low(x)

    assert top(2) == 21 and len(optimised) == 1
