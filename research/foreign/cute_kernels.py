"""Kernels in CuTe DSL: `python cute_kernels.py OUT_DIR`. Run by make.py; needs no GPU.

Compiles against fake tensors, so no array and no device exists. The architecture is chosen when the compiler
is imported: one process of this file per architecture.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from spec import array, launch, output, save

TARGETS = {"sm80": "sm_80", "sm90": "sm_90a", "sm100": "sm_100a"}


@dataclass
class Entry:
    """A kernel: its function, the arrays, and the launch that its host function would make."""

    name: str
    function: Callable
    arrays: list[dict]
    computes: str
    grid: list[int]
    block: list[int]
    shared: int = 0  # bytes
    cluster: tuple = (1, 1, 1)
    boxes: tuple = ()  # (columns, rows) of the tensor maps that the host makes for the first arrays


def simple() -> list[Entry]:
    import cute_simple

    x, y, out = array("x", "float32", 1024), array("y", "float32", 1024), output("out", "float32", 1024)
    rows = [array("x", "float32", 5, 781), output("out", "float32", 5, 781)]
    return [
        Entry("add", cute_simple.add, [x, y, out], "add", [2, 1, 1], [128, 1, 1]),
        Entry("softmax", cute_simple.softmax, rows, "softmax", [5, 1, 1], [128, 1, 1], 16),
        Entry(
            "matmul", cute_simple.matmul, factors(128, 128, 96), "matmul_nt", [2, 2, 1], [128, 1, 1], 24576
        ),
    ]


def hopper() -> list[Entry]:
    import cute_cluster
    import cute_tma

    clusters = Entry(
        "clusters", cute_cluster.clusters, factors(256, 128, 320, "float16"), "matmul_nt", [2, 2, 1],
        [384, 1, 1], 91136, (2, 1, 1), ((64, 128), (64, 32), (64, 128)),
    )  # fmt: skip
    return [with_maps("wgmma", cute_tma.wgmma, (128, 256, 320), [2, 2, 1], 160, (64, 128)), clusters]


def blackwell() -> list[Entry]:
    import cute_tma as k

    return [
        with_maps("tcgen05", k.one_cta, (128, 128, 320), [1, 2, 1], 128, (128, 64)),
        with_maps("multicast", k.multicast, (256, 128, 320), [2, 2, 1], 128, (128, 64), (2, 2, 1), (64, 32)),
        with_maps("pair", k.two_ctas, (512, 128, 320), [4, 1, 1], 128, (128, 64), (2, 1, 1)),
        with_maps(
            "pair_multicast",
            k.two_ctas_multicast,
            (256, 128, 320),
            [2, 2, 1],
            128,
            (128, 32),
            (2, 2, 1),
            (64, 32),
        ),
    ]


def factors(m: int, n: int, k: int, result: str = "float32") -> list[dict]:
    return [array("a", "float16", m, k), array("b", "float16", n, k), output("c", result, m, n)]


def with_maps(name, function, mnk, grid, threads, rows, cluster=(1, 1, 1), loads=None) -> Entry:
    """A product: a CTA holds `rows` of A and of B, one TMA load fetches `loads` rows."""
    import cute_tma

    shared = 1024 + cute_tma.STAGES * cute_tma.BK * 2 * sum(rows)
    boxes = tuple((cute_tma.BK, n) for n in loads or rows)
    return Entry(name, function, factors(*mnk), "matmul_nt", grid, [threads, 1, 1], shared, cluster, boxes)


KERNELS = {"sm80": [simple], "sm90": [simple, hopper], "sm100": [simple, blackwell]}


def parameters(entry: Entry, ptx: str) -> list[dict]:
    """The PTX parameters: tensor maps, pointers, and the state of the MMA, which starts as zeros."""
    sizes = [int(size) for size in re.findall(r"\.param [^\n]*\[(\d+)\]", ptx)]
    maps = [
        {"map": a["array"], "dtype": a["dtype"], "shape": a["shape"], "fill": a["fill"], "box": box,
         "swizzle": 128}
        for a, box in zip(entry.arrays, entry.boxes, strict=False)
    ]  # fmt: skip
    found = [*maps, *entry.arrays[len(maps) :]]
    return [*found, *({"bytes": "00" * size} for size in sizes[len(found) :])]


def compile_here(arch: str, folder: Path) -> None:
    """Compiles all kernels of one architecture in this process."""
    import cutlass
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_compact_tensor

    types = {"float32": cutlass.Float32, "float16": cutlass.Float16}
    kernels = {}
    version = f"nvidia-cutlass-dsl {metadata.version('nvidia-cutlass-dsl')}"
    for e in [entry for group in KERNELS[arch] for entry in group()]:
        tensors = [
            make_fake_compact_tensor(
                types[a["dtype"]],
                tuple(a["shape"]),
                stride_order=tuple(reversed(range(len(a["shape"])))),
                assumed_align=16,
            )
            for a in e.arrays
        ]
        ptx = cute.compile(e.function, *tensors).__ptx__
        entry = re.search(r"\.entry (\w+)", ptx).group(1)
        args = parameters(e, ptx)
        spec = launch(version, entry, e.computes, e.grid, e.block, args, e.shared, e.cluster)
        kernels[f"cute_{e.name}_{arch}"] = ptx, spec
    save(folder, kernels)


def main(folder: Path) -> None:
    index = {}
    for arch, target in TARGETS.items():
        part = folder / arch
        part.mkdir(exist_ok=True)
        settings = {"CUTE_DSL_ARCH": target, "CUTE_DSL_KEEP_PTX": "1", "CUTE_DSL_DUMP_DIR": str(part)}
        subprocess.run([sys.executable, __file__, str(part), arch], env=os.environ | settings, check=True)
        found = json.loads((part / "index.json").read_text())
        save(folder, {name: ((part / f"{name}.ptx").read_text(), spec) for name, spec in found.items()})
        index |= found
    (folder / "index.json").write_text(json.dumps(index, indent=1))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        compile_here(sys.argv[2], Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]))
