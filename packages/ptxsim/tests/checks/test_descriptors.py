"""Findings about matrix descriptors: without their fixed bits, as Triton 3.3 to 3.5 write them; and of
operands that do not start where a swizzle pattern does; and about instruction descriptors.
"""

import types

import pytest
from test_truth_tables_tmem import PRODUCT, SHAPE
from truth import Rule, check_broken, check_kept, each

from ptxsim.checks.lifecycle.descriptors import Descriptors
from ptxsim.events.records import BulkCopy, Footprint
from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor


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


def loaded(offset: int, mode: int) -> tuple:
    """A TMA load of 8 KB to a place, as the bus reports it."""
    return None, None, BulkCopy("load", types.SimpleNamespace(swizzle=mode), (0, 0), offset, 8192, None)


@pytest.mark.parametrize(
    "start, base, box, severity",
    [
        (2048, 0, None, None),
        (2048 + 128, 0, None, "error"),  # unknown how the data got there
        (2048 + 128, 1, None, None),  # the descriptor says where the pattern starts
        (2048 + 128, 2, None, "error"),
        (2048 + 128, 0, (2048, 128), "review"),  # TMA and the MMA both swizzle by the address
        (2048 + 128, 0, (2048, 64), "error"),
        (2048 + 128, 0, (2048 + 8192, 128), "error"),  # another buffer
        (2048 + 128, 2, (2048, 128), "error"),  # a wrong base offset moves the pattern
    ],
)
def test_an_operand_behind_the_start_of_a_pattern(start, base, box, severity):
    said, bits = Said(), encode_matrix_descriptor(MatrixDescriptor(start, 16, 1024, 128, base))
    checks = Descriptors(None, said)
    if box:
        checks.copy_issue(*loaded(*box))
    checks.tensor_issue(None, None, types.SimpleNamespace(footprint=Footprint((0,), descriptors=(bits,))))
    assert [(kind, level) for kind, level, _ in said] == ([("misaligned", severity)] if severity else [])


REFUSED = Rule(  # what a refused MMA does not write is no second finding
    "types-of-the-operands",
    PRODUCT,
    (f"mov.u32 %x9, {SHAPE};", f"mov.u32 %x9, {SHAPE | 5 << 7};"),
    "descriptor",
    words="matrix A has type 5, expected 0 (f16) or 1 (bf16)",
    threads=128,
)


@each([REFUSED])
def test_an_mma_that_is_refused(rule, order):
    check_kept(rule, order)
    check_broken(rule, order)
