"""Tensor copies that the main loop executes itself if nobody listens: no handler is called, and Python's
counts of them are right. What they copy is tested in test_tma.py, which compares both ways with numpy.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_tma import MULTICAST, PAIR, expected_load
from tma_kernels import entry, load_box, store_box

import ptxsim
from ptxsim import TensorMap
from ptxsim.jit.bytecode import CONTROL_WORDS
from ptxsim.machine.global_memory import GlobalMemory
from ptxsim.machine.map_table import MT_BYTES, MapTable
from ptxsim.units import bulk_groups, tma


@pytest.fixture
def no_handler(monkeypatch):
    """Every handler of a tensor copy, and of its group, fails."""

    def fail(*_):
        raise AssertionError("a handler was asked")

    for module, name in ((tma, "_load_one"), (tma, "_copies"), (bulk_groups, "bulk_groups")):
        monkeypatch.setattr(module, name, fail)


@pytest.mark.parametrize("start", [(0, 0), (16, 3), (-16, 2), (48, 6), (0, -9)])
def test_a_load(no_handler, start):
    tmap = TensorMap(np.arange(512, dtype=np.int32).reshape(8, 64), (32, 4), 128)
    out, result = load_box(tmap, start, 1024)
    assert not result.findings and result.stats["tma_bytes"] == 512
    assert np.array_equal(out[:512], expected_load(tmap, start, 1024)[:512])


@pytest.mark.parametrize("start", [(0, 0), (16, 3), (48, 6)])
def test_a_store(no_handler, start):
    array = np.zeros((8, 64), np.int32)
    result = store_box(TensorMap(array, (32, 4), 128), start, np.full(1024, 7, np.uint8))
    assert not result.findings and result.stats["tma_bytes"] == 512
    assert (array != 0).sum() == (64 - start[0] if start[0] > 32 else 32) * (min(8, start[1] + 4) - start[1])


@pytest.mark.parametrize("text, ctas", [(MULTICAST, 4), (PAIR.replace("GROUP", "cta_group::2."), 2)])
def test_several_ctas(no_handler, text, ctas):
    array, out = np.arange(32 * ctas, dtype=np.int32).reshape(ctas, 32), np.zeros((4, 4, 32), np.int32)
    args = [TensorMap(array, (32, 1)), out]
    result = ptxsim.load(text).launch("k", grid=ctas, block=32, shared_bytes=512, args=args, checks=False)
    assert not result.findings and out.any()


def test_a_loop_that_copies_the_same_tile_is_seen():
    """Python learns of the copies: an endless loop is reported as one, long before the limits are reached."""
    copy = "@%q cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {%c0, %c1}], [%r3];"
    text = entry(f"AGAIN: {copy} cp.async.bulk.commit_group; bar.sync 0; bra AGAIN;")
    args = [TensorMap(np.zeros((8, 64), np.int32), (32, 4)), np.zeros(5, np.int32), np.zeros(4), 0, 0]
    result = ptxsim.load(text).launch("k", block=64, shared_bytes=2048, args=args, checks=False)
    assert [f.kind for f in result.findings] == ["deadlock"]
    assert result.stats["warp_instructions"] < 1_000_000


def test_a_map_in_other_bytes_takes_the_place_of_the_one_before():
    """The bytes that compiled code compares with memory belong to the map that was decoded last."""
    data, memory = np.zeros(128, np.uint8), GlobalMemory()
    address = memory.add(data, "map")
    table = MapTable(np.zeros(CONTROL_WORDS, np.int64))
    table.start(SimpleNamespace(memory=memory, maps={}))
    for rows in (4, 2):
        tmap = TensorMap(np.zeros((8, 64), np.int32), (32, rows))
        data[:] = rows
        table.add(address, tmap)
    assert table._maps == [tmap] and (table._rows[0, MT_BYTES:].view(np.uint8) == 2).all()
