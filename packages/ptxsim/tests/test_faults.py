"""A bug in ptxsim is reported as such, and says nothing about the kernel."""

import numpy as np
import pytest

import ptxsim
from ptxsim.cli.run import launched
from ptxsim.driver.chips import CHIPS
from ptxsim.driver.device import UNSUPPORTED, CudaError, Device, Options

TEXT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) { ret; }
"""


@pytest.fixture
def broken(monkeypatch):
    def fails(*given, **more):
        raise IndexError("list index out of range")

    monkeypatch.setattr("ptxsim.launch.parallel.run_clusters", fails)


def test_a_launch_says_whose_fault_it_is(broken):
    with pytest.raises(
        ptxsim.Fault, match="ptxsim itself failed, not the kernel.*IndexError at .*test_faults"
    ):
        ptxsim.load(TEXT).launch("k", args=[np.zeros(1)])


def test_arguments_that_do_not_fit_stay_the_callers(broken):
    with pytest.raises(ValueError, match="order must be"):
        ptxsim.load(TEXT).launch("k", args=[np.zeros(1)], order="any")


def test_a_command_gives_no_verdict_but_incomplete(broken):
    result = launched(ptxsim.load(TEXT), "k", [np.zeros(1)], {"grid": 1, "block": 32})
    assert result.verdict == "incomplete" and "not the kernel" in result.findings[0].message


def test_a_program_gets_an_error_and_goes_on(broken):
    device = Device(Options(CHIPS["h200"], True, "program", 0, None, None))
    number = device.add_module(TEXT.encode())
    with pytest.raises(CudaError) as caught:
        device.launch(number, "k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, bytes(8))
    assert caught.value.code == UNSUPPORTED
    assert device.records[0].verdict == "incomplete" and "not the kernel" in str(
        device.records[0].findings[0]
    )
