"""griddepcontrol (PTX ISA 9.7.13) on targets of Hopper and Blackwell: a single grid waits for no other."""

import numpy as np
import pytest

import ptxsim

TEXT = """
.version 9.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<2>; .reg .b64 %d<4>;
    griddepcontrol.wait;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r1;
    griddepcontrol.launch_dependents;
    ret;
}}
"""


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a"])
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_a_grid_alone_goes_on(target, order):
    out = np.full(64, 99, np.uint32)
    result = ptxsim.load(TEXT.format(target=target)).launch("k", block=64, args=[out], order=order)
    assert result.verdict == "clean" and out.tolist() == [*range(64)]
