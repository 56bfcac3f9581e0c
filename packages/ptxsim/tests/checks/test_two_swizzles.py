"""TMA and the product that reads its data must name one swizzle (PTX ISA 5.5.6 and 9.7.16.4)."""

import types

import numpy as np
import pytest

from ptxsim.checks.lifecycle.shared_memory import SharedMemory
from ptxsim.events.records import BulkCopy, SharedSpan
from ptxsim.isa.layouts.swizzle import XORS


class Program:
    instrs = ()


class Said(list):
    def add(self, kind, severity, message, *rest, key=None):
        self.append((kind, severity))

    def shared_buffer(self, offset):
        return "tile"


CHUNKS = np.arange(64, 128)  # 1 KB: eight rows of 128 B


def checks_of(said):
    launch = types.SimpleNamespace(shared_window=4096, ctas_per_cluster=1, program=Program())
    return SharedMemory(launch, said)


def load(checks, mode, dims=(64, 8)):
    tensor, spans = types.SimpleNamespace(swizzle=mode, dims=dims), (SharedSpan.of(0, CHUNKS),)
    checks.copy_write(None, None, BulkCopy("load", tensor, (0, 0), 1024, 1024, None, spans))


@pytest.mark.parametrize("read", XORS)
@pytest.mark.parametrize("written", [*XORS, "bulk", "thread"])
def test_the_swizzles_of_tma_and_of_a_descriptor(written, read):
    said = Said()
    checks = checks_of(said)
    if written == "thread":
        checks.written[:] = 1
    elif written == "bulk":
        load(checks, 0, (512,))
    else:
        load(checks, written)
    checks.chunks_read(None, SharedSpan.of(0, CHUNKS, read), "the tensor core")
    level = "error" if written else "review"  # without one, global memory may hold the data in that order
    agree = written in ("bulk", "thread", read)
    assert said == ([] if agree else [("descriptor", level)])


def test_a_second_load_by_another_swizzle_is_looked_at_again():
    said, span = Said(), SharedSpan.of(0, CHUNKS, 128)
    checks = checks_of(said)
    for mode in (128, 128, 64):
        load(checks, mode)
        checks.wgmma_read(None, None, span)
    assert said == [("descriptor", "error")]
