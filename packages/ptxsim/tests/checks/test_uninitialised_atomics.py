"""An atomic in shared memory begins with what is there, and nobody may have written it."""

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim


@pytest.mark.parametrize("atomic", ["red.shared.add.u32 [bins], 1;", "atom.shared.max.u32 %r, [bins], 1;"])
@pytest.mark.parametrize("before", ["st.shared.u32 [bins], 0;", "atom.shared.exch.b32 %r, [bins], 0;", ""])
def test_an_atomic_on_what_nobody_has_written(before, atomic):
    text = f".shared .align 4 .b8 bins[4]; .reg .b32 %r; {before} {atomic} ret;"
    findings = ptxsim.load(f"{HEAD}.visible .entry k() {{ {text} }}").launch("k").findings
    assert [(f.kind, f.severity) for f in findings] == [("uninitialized", "error")] * (not before)


def test_its_result_in_global_memory_is_no_second_cause():
    text = """.shared .align 4 .b8 bins[4]; .reg .b32 %r; .reg .b64 %p; ld.param.u64 %p, [p];
  red.shared.add.u32 [bins], 1; ld.shared.u32 %r, [bins]; st.global.u32 [%p], %r; ret;"""
    module = ptxsim.load(f"{HEAD}.visible .entry k(.param .u64 p) {{ {text} }}")
    findings = module.launch("k", args=[np.zeros(1, np.uint32)]).findings
    assert [(f.severity, f.where["ptx"].split(".")[0]) for f in findings] == [("error", "red")]
