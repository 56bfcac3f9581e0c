"""Different inputs for each timed launch, and some rows of each one's output, to prove that it did the work.

A launch could leave D, or part of it, for the next one: in an input, in shared memory, in memory that is not
its own. So each launch multiplies other numbers: a window of a pool of random numbers that begins at an
unpredictable place. The last launch has the given inputs. Rows of the output are chosen only after the
launch; the caller, who knows the pools, compares them.
"""

from __future__ import annotations

import random

import numpy as np

from tirxlab.devices.driver import call

ROWS = 16  # how many rows of each output are kept from each launch


class Inputs:
    """The inputs of all launches; without pools each launch gets the same ones, restored before it."""

    def __init__(self, driver, artifact, buffers: list, pools: list, pointers: dict[str, int]):
        self.driver, self.pointers, self.random = driver, pointers, random.SystemRandom()
        pairs = list(zip(artifact.buffers, buffers, strict=False))
        inputs = [(buffer, data) for buffer, data in pairs if buffer.role == "in"]
        self.outputs = [buffer for buffer, _ in pairs if buffer.role == "out"] if pools else []
        sources = pools or [data for _, data in inputs]
        self.places = {
            b.name: self._place(b, data, source) for (b, data), source in zip(inputs, sources, strict=True)
        }
        self.seen: list[dict] = []  # an entry for each output of each launch
        self.held: list[bytearray] = []  # its rows
        self.at: dict[str, int] = {}

    def _place(self, buffer, data, source) -> tuple[int, int, int, int]:
        """(address of the pool, bytes of the input, bytes of an element, spare elements of the pool)."""
        width = np.dtype(buffer.dtype).itemsize
        pool = int(call(self.driver.cuMemAlloc, len(source)))
        call(self.driver.cuMemcpyHtoD, pool, bytes(source), len(source))
        return pool, len(data), width, (len(source) - len(data)) // width

    def before(self, left: int) -> None:
        for name, (pool, size, width, spare) in self.places.items():
            self.at[name] = self.random.randint(0, spare) if left else 0
            start = pool + self.at[name] * width
            call(self.driver.cuMemcpyDtoDAsync, self.pointers[name], start, size, 0)

    def after(self, left: int) -> None:
        for buffer in self.outputs:
            rows = sorted(self.random.sample(range(buffer.shape[0]), min(ROWS, buffer.shape[0])))
            size = np.dtype(buffer.dtype).itemsize * int(np.prod(buffer.shape[1:]))
            held = bytearray(size * len(rows))
            for number, row in enumerate(rows):
                part = memoryview(held)[number * size : (number + 1) * size]
                call(self.driver.cuMemcpyDtoH, part, self.pointers[buffer.name] + row * size, size)
            self.seen.append({"at": dict(self.at), "name": buffer.name, "rows": rows})
            self.held.append(held)

    def free(self) -> None:
        for pool, *_ in self.places.values():
            call(self.driver.cuMemFree, pool)
