"""Kernels in CuTe DSL: `python cute_kernels.py OUT_DIR`. Run by make.py; needs no GPU.

Compiles against fake tensors, so no array and no device exists. The architecture is chosen when the compiler
is imported: one process of this file per architecture.
"""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from spec import array, launch, output, save

TARGETS = {"sm80": "sm_80", "sm90": "sm_90a", "sm100": "sm_100a"}


def kernels_of(arch: str) -> list[tuple]:
    """(name, function, arguments, computes, grid, block, shared, cluster) of an architecture."""
    import cute_simple

    x, y = array("x", "float32", 1024), array("y", "float32", 1024)
    a, b = array("a", "float16", 128, 96), array("b", "float16", 128, 96)
    return [
        ("add", cute_simple.add, [x, y, output("out", "float32", 1024)], "add", [2, 1, 1], [128, 1, 1], {}),
        ("softmax", cute_simple.softmax, [array("x", "float32", 5, 781), output("out", "float32", 5, 781)],
         "softmax", [5, 1, 1], [128, 1, 1], {"shared": 16}),
        ("matmul", cute_simple.matmul, [a, b, output("c", "float32", 128, 128)], "matmul_nt", [2, 2, 1],
         [128, 1, 1], {"shared": 24576}),
    ]  # fmt: skip


def compile_here(arch: str, folder: Path) -> None:
    """All kernels of one architecture, in this process."""
    import cutlass
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_compact_tensor

    types = {"float32": cutlass.Float32, "float16": cutlass.Float16}
    kernels = {}
    version = f"nvidia-cutlass-dsl {metadata.version('nvidia-cutlass-dsl')}"
    for name, function, args, computes, grid, block, more in kernels_of(arch):
        tensors = [
            make_fake_compact_tensor(
                types[a["dtype"]],
                tuple(a["shape"]),
                stride_order=tuple(reversed(range(len(a["shape"])))),
                assumed_align=16,
            )
            for a in args
        ]
        ptx = cute.compile(function, *tensors).__ptx__
        entry = re.search(r"\.entry (\w+)", ptx).group(1)
        kernels[f"cute_{name}_{arch}"] = ptx, launch(version, entry, computes, grid, block, args, **more)
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
