"""A recorded launch of a test comes back from its set as a chip takes it."""

import numpy as np

import ptxsim
from ptxsim.launch import LoadedModule
from research.chip.case import load_set, save_set
from research.chip.own_tests import Recorder

ADD = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry add(.param .u64 a, .param .u32 by) {
    .reg .u32 %v<3>;
    .reg .u64 %p<1>;
    ld.param.u64 %p0, [a];
    ld.param.u32 %v0, [by];
    ld.global.u32 %v1, [%p0];
    add.u32 %v2, %v1, %v0;
    st.global.u32 [%p0], %v2;
    ret;
}
"""


def test_a_set_of_launches_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(LoadedModule, "launch", LoadedModule.launch)  # which the recorder replaces
    recorder = Recorder()
    recorder.pytest_configure()
    ptxsim.load(ADD).launch("add", args=[np.full(1, 5, np.uint32), np.uint32(2)])
    file = tmp_path / "set.tar.xz"
    save_set(file, recorder.cases, {})
    _, [case] = load_set(file)
    assert case.arrays["a0"].view(np.uint32) == 5 and case.expected["a0"].view(np.uint32) == 7
