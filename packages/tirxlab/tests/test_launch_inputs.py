"""Inputs of timed launches, on a stand-in for the driver: host memory by address."""

import types

import numpy as np

from tirxlab.artifact import BufferInfo
from tirxlab.devices.launch_inputs import ROWS, Inputs

SHAPE = (64, 32)
BUFFERS = (BufferInfo("A", SHAPE, "float16", "in"), BufferInfo("D", SHAPE, "float16", "out"))


class Memory:
    """cuMemAlloc and the copies."""

    def __init__(self):
        self.held, self.end = np.zeros(1 << 20, np.uint8), 0

    def __getattr__(self, name):
        return lambda *args: (types.SimpleNamespace(value=0), getattr(self, "_" + name)(*args))

    def _cuMemAlloc(self, size):
        self.end += size
        return self.end - size

    def _cuMemcpyHtoD(self, address, data, size):
        self.held[address : address + size] = np.frombuffer(data, np.uint8)

    def _cuMemcpyDtoDAsync(self, to, source, size, stream):
        self.held[to : to + size] = self.held[source : source + size]

    def _cuMemcpyDtoH(self, data, address, size):
        data[:] = self.held[address : address + size].tobytes()

    def _cuMemFree(self, address):
        return None


def launched(pools, launches=8):
    """(A of each launch, the Inputs) of a kernel that copies A to D."""
    memory, A = Memory(), np.arange(np.prod(SHAPE)).astype(np.float16)
    size = A.nbytes
    pointers = {"A": memory._cuMemAlloc(size), "D": memory._cuMemAlloc(size)}
    inputs = Inputs(
        memory, types.SimpleNamespace(buffers=BUFFERS), [A.tobytes(), bytes(size)], pools, pointers
    )
    given = []
    for left in reversed(range(launches)):
        inputs.before(left)
        given.append(memory.held[pointers["A"] :][:size].view(np.float16).reshape(SHAPE).copy())
        memory.held[pointers["D"] :][:size] = memory.held[pointers["A"] :][:size]
        inputs.after(left)
    return given, inputs


def test_each_launch_has_a_window_of_the_pool_and_the_last_what_was_given():
    pool = np.random.default_rng(0).standard_normal(np.prod(SHAPE) + 1000).astype(np.float16)
    given, inputs = launched([pool.tobytes()])
    assert len({A.tobytes() for A in given}) > 4 and (given[-1].ravel() == pool[: given[-1].size]).all()
    for A, seen, held in zip(given, inputs.seen, inputs.held, strict=True):
        start = seen["at"]["A"]
        assert (A.ravel() == pool[start:][: A.size]).all()
        assert seen["name"] == "D" and len(set(seen["rows"])) == ROWS
        assert (np.frombuffer(held, np.float16).reshape(ROWS, -1) == A[seen["rows"]]).all()
    assert len({tuple(seen["rows"]) for seen in inputs.seen}) > 4


def test_without_pools_inputs_are_put_back():
    given, inputs = launched([])
    assert len({A.tobytes() for A in given}) == 1 and inputs.seen == []
