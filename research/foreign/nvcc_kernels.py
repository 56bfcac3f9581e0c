"""CUDA C++ with mma.h, by the nvcc in the PATH: `python nvcc_kernels.py OUT_DIR`. Run by make.py; no GPU.

Products by nvcuda::wmma, as students first write them; each kernel is a file of wmma/. ptxas decides whether
the PTX is legal.
"""

import re
import subprocess
import sys
from pathlib import Path

from spec import array, launch, output, save, scalar

SOURCES = Path(__file__).resolve().parent / "wmma"
TARGETS = {"80": ("shared", "halves"), "90a": None, "100a": ("shared", "tfloat")}  # None: all kernels


def sizes(n: int, k: int) -> list[dict]:
    return [scalar("n", n), scalar("k", k)]


def cases() -> dict[str, tuple[list, str, list[int], list[int]]]:
    """Name -> (arguments, what it computes, grid, block)."""
    factors = [scalar("alpha", 0.5, "float32"), scalar("beta", -2.0, "float32")]
    words = [
        array("a", "uint32", 16, 12, fill="below 4294967296"),
        array("b", "uint32", 24, 12, fill="below 4294967296"),
    ]
    return {
        "naive": ([array("a", "float16", 64, 48), array("b", "float16", 48, 32),
                   array("c", "float32", 64, 32), output("d", "float32", 64, 32), *sizes(32, 48), *factors],
                  "scaled_matmul", [2, 2, 1], [32, 2, 1]),
        "shared": ([array("a", "float16", 64, 96), array("b", "float16", 128, 96),
                    output("c", "float16", 64, 128), *sizes(128, 96)], "matmul_nt", [2, 1, 1], [128, 1, 1]),
        "halves": ([array("a", "float16", 16, 48), array("b", "float16", 48, 64),
                    array("bias", "float16", 64), output("c", "float16", 16, 64), *sizes(64, 48)],
                   "biased_matmul", [2, 2, 1], [32, 1, 1]),
        "bfloat": ([array("a", "bfloat16", 64, 64), array("b", "bfloat16", 16, 64),
                    output("c", "float32", 64, 16), *sizes(16, 64)], "matmul_nt", [2, 2, 1], [32, 1, 1]),
        "bytes": ([array("a", "int8", 32, 64), array("b", "int8", 64, 64), output("c", "int32", 32, 64),
                   *sizes(64, 64)], "matmul", [2, 2, 1], [32, 2, 1]),
        "tfloat": ([array("a", "float32", 32, 24), array("b", "float32", 24, 32),
                    output("c", "float32", 32, 32), *sizes(32, 24)], "matmul", [2, 2, 1], [32, 1, 1]),
        "doubles": ([array("a", "float64", 16, 20), array("b", "float64", 20, 24),
                     output("c", "float64", 16, 24), *sizes(24, 20)], "matmul", [3, 2, 1], [32, 1, 1]),
        "bits": ([*words, output("c", "int32", 16, 24), *sizes(24, 12)], "common_bits",
                 [3, 2, 1], [32, 1, 1]),
        "nibbles": ([*words, output("c", "int32", 16, 24), *sizes(24, 12)], "matmul_of_nibbles",
                    [3, 2, 1], [32, 1, 1]),
    }  # fmt: skip


def compiled(name: str, arch: str, folder: Path) -> str:
    """The PTX of a kernel, after ptxas has accepted it."""
    source, ptx = SOURCES / f"{name}.cu", folder / "k.ptx"
    subprocess.run(["nvcc", f"-arch=sm_{arch}", "-ptx", str(source), "-o", str(ptx)], check=True)
    subprocess.run(["ptxas", f"-arch=sm_{arch}", str(ptx), "-o", str(folder / "k.cubin")], check=True)
    return ptx.read_text()


def main(folder: Path) -> None:
    said = subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True).stdout
    version = f"nvcc {re.search(r'V([0-9.]+)', said).group(1)}"
    kernels = {}
    for name, (args, computes, grid, block) in cases().items():
        for arch, chosen in TARGETS.items():
            if chosen is None or name in chosen:
                spec = launch(version, name, computes, grid, block, args)
                kernels[f"nvcc_{name}_sm{arch}"] = compiled(name, arch, folder), spec
    save(folder, kernels)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
