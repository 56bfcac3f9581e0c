"""Runs one form on a GPU: takes the registers of A, B, C of many tiles, returns those of D."""

from __future__ import annotations

import numpy as np

from research.arithmetic.forms import Form, ptx, result
from tirxlab.artifact import Artifact, BufferInfo, BufferParam
from tirxlab.devices import driver

WARPS = 4  # of a CTA, each with its own tile, for instructions of one warp
_SHARED = 4096


class Unit:
    """A form's kernel, loaded on the first GPU."""

    def __init__(self, form: Form, tiles: int, counts: list[int]):
        self.form = form
        threads = form.threads * (WARPS if form.threads == 32 else 1)
        artifact = Artifact(
            arch="sm_90a",
            entry="k",
            cuda="",
            ptx=ptx(form, counts),
            cubin=b"",
            grid=(tiles * form.threads // threads, 1, 1),
            block=(threads, 1, 1),
            cluster=(1, 1, 1),
            shared_bytes=_SHARED,
            params=(BufferParam("in"), BufferParam("out")),
            buffers=(BufferInfo("in", (1,), "uint32", "in"), BufferInfo("out", (1,), "uint32", "out")),
        )
        self.kernel = driver.Kernel(artifact)

    def run(self, registers: list[np.ndarray]) -> np.ndarray:
        """Bit patterns of D (tiles, m, n)."""
        api, call = driver.api(), driver.call
        data = np.ascontiguousarray(np.concatenate(registers))
        out = np.zeros(registers[2].shape, data.dtype)
        places = {"in": call(api.cuMemAlloc, data.nbytes), "out": call(api.cuMemAlloc, out.nbytes)}
        pointers = {name: int(place) for name, place in places.items()}
        call(api.cuMemcpyHtoD, pointers["in"], data, data.nbytes)
        call(api.cuMemsetD8, pointers["out"], driver.POISON, out.nbytes)
        self.kernel.launch(pointers)
        call(api.cuCtxSynchronize)
        call(api.cuMemcpyDtoH, out, pointers["out"], out.nbytes)
        for pointer in pointers.values():
            call(api.cuMemFree, pointer)
        return result(self.form, out)
