"""What is said of matrix descriptors without their fixed bits, as Triton 3.3 to 3.5 write them."""

import types

import pytest

from ptxsim.checks.lifecycle.descriptors import Descriptors
from ptxsim.events.records import Footprint
from ptxsim.isa.layouts import MatrixDescriptor, encode_matrix_descriptor


class Said(list):
    def add(self, kind, severity, message, *rest, key=None):
        self.append((kind, severity, message))

    def shared_name(self, offset):
        return f"shared memory + {offset} B"


@pytest.mark.parametrize("mode", [32, 64, 128])
@pytest.mark.parametrize("marked", [True, False])
def test_a_descriptor_without_its_fixed_bits_is_a_review_once(mode, marked):
    said, bits = Said(), encode_matrix_descriptor(MatrixDescriptor(1024, 16, 1024, mode))
    checks = Descriptors(None, said)
    for part in (0, 2):
        read = Footprint((0,), descriptors=((bits if marked else bits ^ 1 << 46) + part, bits))
        checks.tensor_issue(None, None, types.SimpleNamespace(footprint=read))
    assert {(kind, severity) for kind, severity, _ in said} == (
        set() if marked else {("descriptor", "review")}
    )
