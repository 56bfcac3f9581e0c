"""What a product reads as A and B, beside what TMA loaded there."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.checks.lifecycle.operands import Operands
from ptxsim.events.records import BulkCopy, Operand, SharedSpan
from ptxsim.machine.tensor_map import TensorMap

MAP = TensorMap(np.zeros((256, 256), np.float16), (64, 16), swizzle=128)
BOX = np.arange(64, 192)  # 16 rows of 128 B


class Said(list):
    def add(self, kind, severity, message, cause, *rest, key=None):
        self.append(cause.id)

    def shared_buffer(self, offset):
        return "tile"


def run(*rounds, fresh=1):
    """rounds: (start of a load, operands that products then read); what is said of them."""
    said = Said()
    checks = Operands(SimpleNamespace(ctas_per_cluster=1, shared_window=4096), said)
    checks.start(None)
    for n, (start, operands) in enumerate(rounds):
        copy = BulkCopy("load", MAP, start, 1024, 2048, None, (SharedSpan.of(0, BOX),))
        checks.copy_write(None, None, copy)
        for i, operand in enumerate(operands):
            checks.wgmma_product(None, None, (operand,), ("d",), n + i < fresh)
    checks.finish(None)
    return said


def step(k: int, rows: int = 16, **changed) -> Operand:
    """K step k of a K-major operand, without the swizzle's order."""
    chunks = BOX[0] + 8 * np.arange(rows)[:, None] + 2 * k + np.arange(2)
    given = {"chunks": chunks, "kind": "f16", "rows": rows, "mn": False} | changed
    return Operand("b", 0, **given)


STEPS = [step(k) for k in range(4)]


@pytest.mark.parametrize(
    "rounds, cause",
    [
        ([((0, 0), STEPS), ((64, 0), STEPS)], ""),
        ([((0, 0), STEPS), ((0, 16), STEPS)], "operand-axis"),
        ([((0, 0), [step(k, mn=True) for k in range(4)]), ((0, 16), STEPS[:0])], ""),
        ([((0, 0), [step(k, kind="bf16") for k in range(4)])], "operand-type"),
        ([((0, 0), [step(0), step(0), step(1)])], "operand-part"),
        ([((0, 0), STEPS[:2])], ""),
        ([((0, 0), [step(0, chunks=np.repeat(STEPS[0].chunks, 2, axis=0))])], "operand-repeats operand-part"),
        ([((0, 0), [step(k, negated=True) for k in range(4)])], "operand-negated"),
    ],
)
def test_what_operands_say_beside_their_loads(rounds, cause):
    assert set(run(*rounds)) == set(cause.split())


def test_each_sum_counts_its_own_reads():
    """A tile that stays is read again for the next D."""
    assert not run(((0, 0), [step(0), step(0)]), fresh=2)
