"""Kernels that `torch.compile` generates, captured while they run on a GPU.

    python -m research.chip.harvest FOLDER [SECONDS [GROUP ..]]

Needs torch and a GPU, no TVM. Every Triton kernel that PyTorch's compiler launches, including autotuned
variants, is saved with its PTX, its launch and all bytes that it could access, before and after. replay.py
runs them on ptxsim. A kernel that needs more than LARGEST bytes or CTAS is left out and counted. Kernels that
multiply matrices are also compiled for Blackwell from Triton's own intermediate representation: that PTX must
leave the same results as this chip.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER", "0")
os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # the PTX names no folder

import numpy as np
import torch
import triton.compiler.compiler as compiler
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaLauncher

from research.chip.workloads import WORKLOADS

LARGEST, CTAS = 600_000, 1500  # bytes of all arrays of a launch; CTAs
FULL = 14_000_000  # bytes of one archive: then the next begins
CHOICES = 6  # variants that autotuning tries
PRODUCTS = ("triton_tem", "triton_mm", "triton_bmm", "triton_flex", "triton_conv")  # names of templates
VARIANTS = {True: 8, False: 3}  # saved variants of one kernel name, by whether it is a product


class Catcher:
    """Saves launches while `on`."""

    def __init__(self, out: str, seconds: float):
        self.folder, self.number, self.bytes, self.caught = Path(out), 0, 0, 0
        self.open()
        self.kernels: dict[int, object] = {}  # function handle -> compiled kernel
        self.seen: Counter = Counter()
        self.done: set[int] = set()
        self.left_out: Counter = Counter()
        self.workload, self.end = "", time.monotonic() + seconds

    def open(self) -> None:
        path = self.folder / f"caught{self.number}.zip"
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.index: dict[str, dict] = {}
        self.number, self.bytes = self.number + 1, 0

    def install(self) -> None:
        made, loaded, called = (
            CudaLauncher.__init__,
            compiler.CompiledKernel._init_handles,
            CudaLauncher.__call__,
        )

        def init(launcher, src, metadata):
            launcher.types = dict(src.signature)
            made(launcher, src, metadata)

        def handles(kernel):
            loaded(kernel)
            self.kernels[kernel.function] = kernel

        def call(launcher, x, y, z, stream, function, *args):
            given = dict(zip(launcher.types, args[-len(launcher.types) :], strict=True))
            note = self.before(launcher.types, (x, y, z), function, given)
            result = called(launcher, x, y, z, stream, function, *args)
            if note:
                self.after(note, given)
            return result

        CudaLauncher.__init__, compiler.CompiledKernel._init_handles = init, handles
        CudaLauncher.__call__ = call

    def before(self, types: dict, grid, function, given: dict) -> dict | None:
        kernel = self.kernels.get(function)
        if kernel is None or function in self.done or time.monotonic() > self.end:
            return None
        self.done.add(function)
        name = kernel.metadata.name
        if self.seen[name] >= VARIANTS[name.startswith(PRODUCTS)]:
            return None
        args, storages = described(types, given)
        if args is None:
            self.left_out["argument of an unknown kind"] += 1
            return None
        total = sum(s.nbytes() for s in storages.values())
        ctas = grid[0] * grid[1] * grid[2]
        if total > LARGEST or ctas > CTAS:
            self.left_out["too large"] += 1
            return None
        self.seen[name] += 1
        torch.cuda.synchronize()
        meta = kernel.metadata
        other = blackwell(kernel) if name.startswith(PRODUCTS) else None
        return {
            "name": f"{name}-{self.seen[name]}",
            "ptx": kernel.asm["ptx"],
            "grid": grid,
            "block": [meta.num_warps * 32, 1, 1],
            "shared": meta.shared,
            "cluster": list(getattr(meta, "cluster_dims", (1, 1, 1))),
            "entry": name,
            "scratch": getattr(meta, "global_scratch_size", 0) or 0,  # bytes for each CTA
            "blackwell": other,
            "args": args,
            "storages": storages,
            "in": [content(s) for s in storages.values()],
        }

    def after(self, note: dict, given: dict) -> None:
        torch.cuda.synchronize()
        out = [content(s) for s in note.pop("storages").values()]
        data = {f"in{i}": a for i, a in enumerate(note.pop("in"))}
        data |= {f"out{i}": a for i, a in enumerate(out) if not np.array_equal(a, data[f"in{i}"])}
        stream = io.BytesIO()
        np.savez_compressed(stream, **data)
        self.bytes, self.caught = self.bytes + len(stream.getvalue()), self.caught + 1
        self.archive.writestr(f"{note['name']}.ptx", note.pop("ptx"))
        if note["blackwell"]:
            self.archive.writestr(f"{note['name']}.sm_100a.ptx", note["blackwell"].pop("ptx"))
        self.archive.writestr(f"{note['name']}.npz", stream.getvalue())
        self.index[note["name"]] = note | {"workload": self.workload}
        if self.bytes > FULL:
            self.close()
            self.open()

    def close(self) -> None:
        versions = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
        made = {"versions": versions, "kernels": self.index, "left_out": dict(self.left_out)}
        self.archive.writestr("index.json", json.dumps(made, indent=1))
        self.archive.close()


def blackwell(kernel) -> dict | None:
    """PTX and launch of the same Triton kernel for sm_100a; None if Triton refuses."""
    meta = kernel.metadata
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{meta.name}.ttir"
        path.write_text(kernel.asm["ttir"])
        options = {"num_warps": meta.num_warps, "num_stages": meta.num_stages}
        try:
            made = compiler.compile(str(path), target=GPUTarget("cuda", 100, 32), options=options)
        except Exception as error:
            print(f"{meta.name} for Blackwell: {type(error).__name__}: {str(error).splitlines()[:1]}")
            return None
    return {
        "ptx": made.asm["ptx"],
        "block": [made.metadata.num_warps * 32, 1, 1],
        "shared": made.metadata.shared,
        "cluster": list(getattr(made.metadata, "cluster_dims", (1, 1, 1))),
        "scratch": getattr(made.metadata, "global_scratch_size", 0) or 0,
    }


def described(types: dict, given: dict) -> tuple[list[dict] | None, dict[int, torch.UntypedStorage]]:
    """The arguments that the PTX has, or None if one of them is unknown; and the storages that they point
    into.
    """
    args, storages = [], {}
    for key, kind in types.items():
        if kind == "constexpr" or isinstance(kind, tuple):
            continue
        value = given[key]
        if isinstance(value, torch.Tensor):
            base = value.untyped_storage()
            storages.setdefault(base.data_ptr(), base)
            place, offset = list(storages).index(base.data_ptr()), value.storage_offset()
            dtype = str(value.dtype).removeprefix("torch.")
            made = {"array": place, "offset": offset * value.element_size(), "dtype": dtype}
        elif isinstance(value, (int, float)):
            made = {"scalar": value, "type": str(kind)}
        else:
            return None, storages
        args.append(made | {"name": str(key)})
    return args, storages


def content(storage: torch.UntypedStorage) -> np.ndarray:
    view = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return view.cpu().numpy().copy()


def few_choices() -> None:
    """Limits autotuning to CHOICES variants."""
    from torch._inductor.select_algorithm import AlgorithmSelectorCache as Cache

    original = Cache.__call__

    def call(self, name, choices, *args, **more):
        return original(self, name, choices[:: -(-len(choices) // CHOICES)], *args, **more)

    Cache.__call__ = call


def main(out: str, seconds: float, only: list[str]) -> None:
    import torch._inductor.config as config

    for name in ("use_static_cuda_launcher", "use_static_triton_launcher"):
        if hasattr(config, name):
            setattr(config, name, False)
    catcher = Catcher(out, seconds)
    catcher.install()
    few_choices()

    def late(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, late)
    signal.alarm(int(seconds))
    try:
        for name, function in reversed(WORKLOADS.items()):  # the large ones first
            if not only or name in only:
                catch(catcher, name, function)
    except KeyboardInterrupt:
        print("no time left in", catcher.workload)
    catcher.close()
    print(f"{catcher.caught} kernels; left out: {dict(catcher.left_out)}")


def catch(catcher: Catcher, name: str, function) -> None:
    """Runs one workload; reports what the compiler cannot do, and lets the others continue."""
    catcher.workload = name
    torch._dynamo.reset()
    torch.manual_seed(len(name))
    try:
        function()
        torch.cuda.synchronize()
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error).splitlines()[:1]}")
    print(f"{name}: {catcher.caught} kernels so far", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 240.0, sys.argv[3:])
