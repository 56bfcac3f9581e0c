"""Hardware counters of some saved kernels: `python3 -m research.time.counters FOLDER [N ..]`, a minute each.

Needs a GPU, ncu with access to the counters, nvcc, numpy and cuda-bindings; no torch, no TVM. Writes to
FOLDER:

ports.jsonl: the measurements of ports.cu.xz.
counters-N.csv.gz, source-N.csv.gz: of the kernels of KERNELS[N], in this order, all counters, and the
samples of stalled warps for each instruction. Without N: of all groups that begin within three minutes.

`--launch N` launches the kernels of group N once each, in order, for ncu to observe.
"""

from __future__ import annotations

import argparse
import gzip
import math
import subprocess
import sys
import time
from pathlib import Path

from research import packed

HERE = Path(__file__).parent
NAMES = ("ladders-3", "first-ladders", "public-3", "triton-3", "ladders-4", "public-4", "triton-4")
SETS = [HERE / "kernels.tar.xz" / name for name in NAMES]
KERNELS = (
    (
        "ampere4_1920x3328x1472_bfloat16", "ampere6_1920x3328x1472_bfloat16",
        "ampere2_1000x1672x5000_bfloat16", "split_k_1x640x896x15360_64x128x64_s4_w4_float16",
        "plain_naive_1200x1360x1056", "plain_tiled_1536x1856x1120", "plain_blocked_2112x2304x1040",
        "plain_staged_2432x2176x1536",
    ),
    (
        "ampere5_1920x3328x1472_bfloat16", "ampere6_1000x1672x5000_bfloat16",
        "ampere2_1920x3328x1472_bfloat16", "ampere3_1920x3328x1472_bfloat16",
        "split_k_1x1152x1280x8192_128x128x64_s3_w4_bfloat16", "plain_fragments_2240x2368x1312",
        "plain_staged_1280x5504x640", "pyptx_gemm_highperf_ampere_2176x2816x768",
        "softmax_24000x512", "ampere8_1920x3328x1472_bfloat16",
    ),
    (
        "ampere4_2560_bfloat16", "ampere6_2560_bfloat16", "transpose_6144x4096_64",
        "pyptx_gemm_1024x1088x512", "hopper1_2944x3840x1856_bfloat16", "hopper9_3272x4168x2232_bfloat16",
    ),
    (
        "ampere9_1544x2376x1736_bfloat16", "ampere6_1544x2376x1736_bfloat16",
        "ampere3_1544x2376x1736_bfloat16", "ampere2_1544x2376x1736_bfloat16",
        "hopper2_4680x1224x1672_bfloat16", "hopper6_4680x1224x1672_bfloat16",
        "split_k_1x896x1408x9216_128x128x64_s3_w8_float16",
    ),
    (
        "cross_entropy_1800x50304_2048_w8", "column_sums_18432x3584_8x128_w4", "matvec_14000x6912_8x256_w4",
        "plain_softmax_5000x7000", "plain_heat_6944x5536", "ampere9_2304x2688x1216_bfloat16",
        "ampere8_1408x3712x832_bfloat16", "weights_1664x3584x1216_128x128x64_s3_w8_float16",
    ),
)  # fmt: skip
SECTIONS = (
    "SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
    "WarpStateStats", "SchedulerStats", "InstructionStats", "LaunchStats", "Occupancy", "SourceCounters",
)  # fmt: skip
SECONDS = 75  # time limit of one group


def launch(names) -> None:
    """Launches each kernel once, on random normal inputs."""
    import numpy as np

    from research.time.run import load
    from tirxlab.devices import driver

    rng = np.random.default_rng(1)
    noise = rng.standard_normal(1 << 22, dtype=np.float32)
    found = {s.name: s.artifact for path in SETS for s in load(path) if s.name in names}
    for name in names:
        artifact = found[name]
        kernel = driver.Kernel(artifact)
        api, pointers = kernel.driver, {}
        for buffer in artifact.buffers:
            data = as_bytes(noise, buffer)
            pointers[buffer.name] = int(driver.call(api.cuMemAlloc, data.nbytes))
            driver.call(api.cuMemcpyHtoD, pointers[buffer.name], data.ctypes.data, data.nbytes)
        kernel.launch(pointers)
        driver.call(api.cuCtxSynchronize)
        for pointer in pointers.values():
            driver.call(api.cuMemFree, pointer)
        print(name, flush=True)


def as_bytes(noise, buffer):
    """The initial contents of a buffer, as bytes."""
    import numpy as np

    count = math.prod(buffer.shape)
    if buffer.role != "in":
        return np.zeros(count * 8, np.uint8)
    values = np.resize(noise, count)
    if buffer.dtype == "bfloat16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    if buffer.dtype == "int8":
        return np.clip(values * 32, -127, 127).astype(np.int8)
    if "int" in buffer.dtype:  # indices into a table
        return np.zeros(count, buffer.dtype)
    return values.astype({"float16": np.float16, "float32": np.float32}[buffer.dtype])


def watched(folder: Path, number: int) -> None:
    """Runs ncu on one group and keeps its two pages."""
    report = folder / f"group-{number}"
    command = ["ncu", "--clock-control", "none", "-f", "-o", str(report), "--warp-sampling-interval", "0"]
    command += [part for section in SECTIONS for part in ("--section", section)]
    command += [sys.executable, "-m", "research.time.counters", "--launch", str(number), str(folder)]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        print(f"group {number}: rc {done.returncode}", done.stdout[-1500:], done.stderr[-500:], flush=True)
    except subprocess.TimeoutExpired:
        print(f"group {number}: not ready in {SECONDS} s", flush=True)
        return
    found, whole = report.with_suffix(".ncu-rep"), True
    pages = {"counters": ["--page", "raw"], "source": ["--page", "source", "--print-source", "sass"]}
    for name, options in pages.items():
        page = subprocess.run(["ncu", "-i", str(found), "--csv", *options], capture_output=True)
        print(name, len(page.stdout), page.stderr[-300:], flush=True)
        (folder / f"{name}-{number}.csv.gz").write_bytes(gzip.compress(page.stdout))
        whole = whole and page.returncode == 0
    if whole:
        found.unlink()
    print(f"group {number}: {time.monotonic() - start:.0f} s", flush=True)


def ports(folder: Path) -> None:
    """Builds and runs the micro-benchmarks."""
    binary = Path("/tmp") / "ports"
    source = binary.with_suffix(".cu")
    source.write_text(packed.read(HERE / "ports.cu.xz"))
    command = ["nvcc", "-O3", "-std=c++17", "-arch=sm_90a", str(source), "-o", str(binary)]
    subprocess.run(command, check=True)
    with (folder / "ports.jsonl").open("w") as out:
        try:
            subprocess.run([str(binary)], stdout=out, timeout=40)
        except subprocess.TimeoutExpired:
            print("ports: not ready in 40 s", flush=True)
    print("ports:", len((folder / "ports.jsonl").read_text().splitlines()), "lines", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("groups", nargs="*", type=int, default=range(len(KERNELS)))
    parser.add_argument("--launch", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.launch is not None:
        launch(KERNELS[given.launch])
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    if len(given.groups) == len(KERNELS):
        ports(given.folder)
    for number in given.groups:
        if time.monotonic() - start < 170:
            watched(given.folder, number)
    print(f"{time.monotonic() - start:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
