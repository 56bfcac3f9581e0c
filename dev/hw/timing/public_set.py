"""Public and plain kernels of the third round: `python -m dev.hw.timing.public_set OUT.zip PYTHON`.

PYTHON is an interpreter with pyptx 0.1.1, whose Ampere examples compute addresses as they come. The plain
kernels are those of plain/gemm.cu. Needs nvcc and ptxas of CUDA 13.0, no GPU. All of it is the half "unseen".
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam

SOURCE = Path(__file__).parent / "plain" / "gemm.cu"
PLAIN = [  # (kernel, size, tile, threads)
    ("naive", (1200, 1360, 1056), (16, 16), (16, 16, 1)),
    ("tiled", (1536, 1856, 1120), (32, 32), (32, 32, 1)),
    ("blocked", (2112, 2304, 1040), (64, 64), (256, 1, 1)),
    ("fragments", (2240, 2368, 1312), (64, 64), (128, 1, 1)),
    ("staged", (2432, 2176, 1536), (128, 128), (256, 1, 1)),
    ("staged", (1280, 5504, 640), (128, 128), (256, 1, 1)),
]
PUBLIC = [  # (module, function, arguments): M, N, K of a product, else rows and columns
    ("gemm", "build_gemm", (1024, 1088, 512)),
    ("gemm_pipelined", "build_gemm_pipelined", (1536, 3328, 768)),
    ("gemm_pipelined", "build_gemm_pipelined", (4352, 1088, 1600)),
    ("gemm_highperf_ampere", "build_gemm_highperf", (2176, 2816, 768)),
    ("gemm_highperf_ampere", "build_gemm_highperf", (1408, 5120, 1280)),
    ("rms_norm", "build_rms_norm", (12000, 2048)),
    ("layer_norm", "build_layer_norm", (6000, 4096)),
    ("softmax", "build_softmax", (9000, 4096)),
    ("swiglu", "build_fused_silu_mul", (8000, 3072)),
]
TRACE = """
import importlib, json, sys, types
for name in ("jax", "jax.numpy"):  # imported by the examples; used only to run them
    sys.modules[name] = types.ModuleType(name)
sys.modules["jax"].numpy = sys.modules["jax.numpy"]
sys.modules["jax.numpy"].ndarray = object
module = importlib.import_module("pyptx.examples.ampere." + sys.argv[2])
made = getattr(module, sys.argv[3])(*map(int, sys.argv[4:]))
open(sys.argv[1], "w").write(made.ptx())
specs = [[[list(t.shape), t.dtype.name] for t in side] for side in (made._in_specs, made._out_specs)]
print(json.dumps([made._grid, made._block, made._smem, *specs]))
"""
DTYPES = {"bf16": "bfloat16", "f32": "float32"}


def assembled(ptx: str) -> tuple[int, bytes]:
    """(registers of a thread, cubin) for sm_90a."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        text.write_text(ptx)
        command = ["ptxas", "-arch=sm_90a", "-v", str(text), "-o", str(cubin)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        return int(re.search(r"Used (\d+) registers", said)[1]), cubin.read_bytes()


def artifact(ptx: str, entry: str, grid, block, shared: int, buffers, scalars=()) -> Artifact:
    """A kernel whose parameters are its buffers, in order, and then scalars."""
    registers, cubin = assembled(ptx)
    params = [BufferParam(b.name) for b in buffers] + [ScalarParam(n, "int32", v) for n, v in scalars]
    return Artifact(
        arch="sm_90a", entry=entry, cuda="", ptx=ptx, cubin=cubin, grid=tuple(grid), block=tuple(block),
        cluster=(1, 1, 1), shared_bytes=shared, params=tuple(params), buffers=tuple(buffers),
        registers=registers,
    )  # fmt: skip


def plain(kernel: str, size, tile, block) -> Artifact:
    """A kernel of plain/gemm.cu, alone in its module."""
    (m, n, k), half = size, kernel in ("fragments", "staged")
    dtype, b = ("float16", (n, k)) if half else ("float32", (k, n))
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "k.ptx"
        subprocess.run(["nvcc", "-arch=sm_90a", "-ptx", str(SOURCE), "-o", str(text)], check=True)
        ptx = only(text.read_text(), kernel)
    buffers = [BufferInfo("A", (m, k), dtype, "in"), BufferInfo("B", b, dtype, "in")]
    buffers.append(BufferInfo("D", (m, n), "float32", "out"))
    grid = n // tile[1], m // tile[0], 1
    return artifact(ptx, kernel, grid, block, 0, buffers, (("M", m), ("N", n), ("K", k)))


def only(ptx: str, kernel: str) -> str:
    """The module with one of its kernels; static shared memory of the others goes with them."""
    head, *entries = re.split(r"(?m)^(?=\t?\.visible \.entry|// \.globl|\s*// \.globl)", ptx)
    kept = [e for e in entries if re.search(rf"\.entry {kernel}\(", e)]
    return head + "".join(kept)


def public(python: str, module: str, function: str, arguments) -> Artifact:
    """An example of pyptx."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "k.ptx"
        command = [python, "-c", TRACE, str(text), module, function, *map(str, arguments)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ptx = text.read_text()
    grid, block, shared, ins, outs = json.loads(said)
    sides = [(spec, "in") for spec in ins] + [(spec, "out") for spec in outs]
    buffers = [BufferInfo(f"b{i}", tuple(s), DTYPES[d], role) for i, ((s, d), role) in enumerate(sides)]
    entry = re.search(r"\.entry (\w+)", ptx)[1]
    return artifact(ptx, entry, grid, block, shared, buffers)


def main(out: Path, python: str) -> None:
    made = {}
    for kernel, size, tile, block in PLAIN:
        name = f"plain_{kernel}_" + "x".join(map(str, size))
        made[name] = plain(kernel, size, tile, block), 2.0 * size[0] * size[1] * size[2]
    for module, function, arguments in PUBLIC:
        name = f"pyptx_{module}_" + "x".join(map(str, arguments))
        m, n, *k = arguments
        made[name] = public(python, module, function, arguments), 2.0 * m * n * k[0] if k else 4.0 * m * n
    index = {name: {"half": "unseen", "flops": flops} for name, (_, flops) in made.items()}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (kernel, _) in made.items():
            entry = zipfile.ZipInfo(f"{name}.lab")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, kernel.to_bytes())
            print(name, kernel.registers, kernel.grid, kernel.shared_bytes, len(kernel.ptx), flush=True)
        archive.writestr(zipfile.ZipInfo("index.json"), json.dumps(index, indent=1))
    print(f"{len(index)} kernels, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
