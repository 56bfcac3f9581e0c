"""An atomic in shared memory begins with what is there, and nobody may have written it."""

import pytest
from ptx_samples import HEAD

import ptxsim


@pytest.mark.parametrize("atomic", ["red.shared.add.u32 [bins], 1;", "atom.shared.max.u32 %r, [bins], 1;"])
@pytest.mark.parametrize("before", ["st.shared.u32 [bins], 0;", "atom.shared.exch.b32 %r, [bins], 0;", ""])
def test_an_atomic_on_what_nobody_has_written(before, atomic):
    """A load of the result, as of a sum, is no second cause."""
    text = f".shared .align 4 .b8 bins[4]; .reg .b32 %r; {before} {atomic} ld.shared.u32 %r, [bins]; ret;"
    findings = ptxsim.load(f"{HEAD}.visible .entry k() {{ {text} }}").launch("k").findings
    assert [(f.kind, f.severity) for f in findings] == [("uninitialized", "error")] * (not before)
