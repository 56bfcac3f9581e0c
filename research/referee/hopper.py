"""Hopper kernels, right and with planted mistakes, under NVIDIA's compute-sanitizer on a GPU.

    python -m research.referee.hopper make         needs TVM: builds hopper.tar.xz
    python -m research.referee.hopper run [DIR [TEXT ..]]     on a Hopper GPU with compute-sanitizer

Rung 1 with the mistakes of research/chip/negative.py, which change its source; three later rungs with the
operators of research/mutation/ptx_operators.py, each at its first place in the PTX.
"""

from __future__ import annotations

import concurrent.futures
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from research import packed, store
from research.chip import negative
from research.chip.launches import solution
from tirxlab.artifact import Artifact

HERE = Path(__file__).parent
FILE = HERE / "hopper.tar.xz"
LOG = HERE / "results" / "sanitizer-log.json.xz"
FIRST = "Hopper GEMM 256x256x512"
SIZE = (256, 256, 256)
RUNGS = {2: "ring", 5: "store", 7: "cluster"}
PLANTED = (
    "no CTA barrier",
    "no cluster barrier",
    "no arrival",
    "no announcement",
    "half the bytes",
    "no copy",
    "no proxy fence",
    "no wait for a group",
    "no group",
    "no wgmma fence",
    "a wait that passes",
    "the other parity",
    "one arrival more expected",
    "one arrival fewer expected",
    "one group more under way",
)
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
LIMIT, JOBS = 45, 8  # seconds a run may take, runs at a time


def make() -> None:
    from research.mutation.ptx_operators import mutants
    from tirxlab.steps import load_kernels
    from tracks.hopper.reference import RUNGS as LADDER

    kernels, files = load_kernels(solution("hopper")), {}
    for number, word in RUNGS.items():
        artifact = getattr(kernels, LADDER[number - 1].builder)(*SIZE).artifact
        name = f"Hopper rung {number} ({word}) {'x'.join(map(str, SIZE))}"
        artifact = replace(artifact, cubin=b"", cuda="")
        files[f"{name}.lab"] = artifact.to_bytes()
        first: dict[str, str] = {}
        for mutant in mutants(artifact.ptx):
            first.setdefault(mutant.operator, mutant.text)
        files |= {f"{name}: {o}.ptx": first[o].encode() for o in PLANTED if o in first}
    store.save(FILE, files)


def cases() -> dict[str, Artifact]:
    """All kernels, by `kernel: mistake`."""
    found, first = {}, store.load(negative.FILE)
    for number, (bug, entry) in enumerate(json.loads(first["index.json"]).items()):
        if entry["track"] == "hopper":
            key = f"{FIRST}: {'as it is' if bug.startswith('none') else bug}"
            found[key] = Artifact.from_bytes(first[f"{number}.lab"])
    files = store.load(FILE)
    for name in sorted(files):  # NAME.lab comes before its mistakes, NAME: MISTAKE.ptx
        if name.endswith(".lab"):
            kernel, rung = name.removesuffix(".lab"), Artifact.from_bytes(files[name])
            found[f"{kernel}: as it is"] = rung
        else:
            found[name.removesuffix(".ptx")] = replace(rung, ptx=files[name].decode())
    return found


def arrays(key: str, artifact: Artifact) -> tuple[list[np.ndarray], np.ndarray]:
    """(A, B, D, the expected D)."""
    from tracks.common import inputs
    from tracks.hopper.reference import RUNGS as LADDER
    from tracks.hopper.reference import TRACK

    if key.startswith(FIRST):
        data = negative.arrays(artifact, "hopper")
        return data, negative.reference("hopper", *data[:2])
    a, b = inputs(TRACK, SIZE, LADDER[1])
    d = artifact.buffers[2]
    return [a, b, np.full(d.shape, np.nan, d.dtype)], a.astype(np.float32) @ b.astype(np.float32).T


def one(key: str) -> str:
    """Launches a kernel once in this process: `right`, or how wrong D is. Raises LaunchError if the chip
    faults.
    """
    from tirxlab.devices import driver

    artifact = cases()[key]
    data, expected = arrays(key, artifact)
    api, call = driver.api(), driver.call
    kernel = driver.Kernel(artifact)
    pointers = {
        b.name: int(call(api.cuMemAlloc, x.nbytes)) for b, x in zip(artifact.buffers, data, strict=True)
    }
    raw = {b.name: x.reshape(-1).view(np.uint8) for b, x in zip(artifact.buffers, data, strict=True)}
    for name, pointer in pointers.items():
        call(api.cuMemcpyHtoD, pointer, raw[name], raw[name].nbytes)
    kernel.launch(pointers)
    call(api.cuCtxSynchronize)
    last = artifact.buffers[2].name
    call(api.cuMemcpyDtoH, raw[last], pointers[last], raw[last].nbytes)
    return negative.judge(data[2].astype(np.float32), expected)


def under(tool: str, key: str) -> dict:
    """The report of a tool ("" for none) on one launch."""
    command = [sys.executable, "-m", "research.referee.hopper", "one", key]
    if tool:
        extra = ["--racecheck-report", "all"] if tool == "racecheck" else []
        command = ["compute-sanitizer", "--tool", tool, *extra, "--print-limit", "5", *command]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
        return {"said": _said(text), "result": "hung", "seconds": LIMIT}
    lines = [line for line in done.stdout.splitlines() if not line.startswith("=====")]
    result = lines[-1] if lines else (done.stderr.strip() or "?").splitlines()[-1].rpartition(".")[2]
    return {
        "said": _said(done.stdout),
        "result": result[:120],
        "seconds": round(time.perf_counter() - start, 1),
    }


def _said(text: str) -> str:
    """The first report in a log."""
    lines = [line.strip("= ").strip() for line in text.splitlines() if line.startswith("=====")]
    skip = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application", "Program hit")
    return next((line for line in lines if line and not line.startswith(skip)), "")[:160]


def log() -> dict[str, dict[str, dict]]:
    """kernel: mistake -> tool, or `alone` -> {said, result, seconds} of a launch."""
    return json.loads(packed.read(LOG))["kernels"] if LOG.exists() else {}


def words(entry: dict[str, dict]) -> str:
    """The reports of the four tools, as one cell."""
    said: dict[str, list[str]] = {}
    for tool in TOOLS:
        if entry[tool]["said"]:
            said.setdefault(entry[tool]["said"].partition(" at __shared__")[0], []).append(tool)
    hung = [tool for tool in TOOLS if entry[tool]["result"] == "hung"]
    ends = " under any of them" if len(hung) == len(TOOLS) else f" under {', '.join(hung)}"
    text = "; ".join(f"{', '.join(tools)}: {what.rstrip(' .')}" for what, tools in said.items()) or "nothing"
    return text + (f"; it never ended{ends}" if hung else "")


def run(folder: Path, only: list[str]) -> None:
    chosen = [key for key in cases() if not only or any(text in key for text in only)]
    jobs = [(tool, key) for key in chosen for tool in ("", *TOOLS)]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        said = list(pool.map(lambda job: under(*job), jobs))
    table: dict[str, dict] = {}
    for (tool, key), what in zip(jobs, said, strict=True):
        table.setdefault(key, {})[tool or "alone"] = what
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    said_version = json.dumps(version.strip().splitlines()[-1] if version else "")
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in table.items())
    folder.mkdir(parents=True, exist_ok=True)
    text = f'{{"version": {said_version},\n"kernels": {{\n{rows}\n}}}}\n'
    packed.write(folder / LOG.name, text)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "make":
        make()
    elif what == "one":
        print(one(rest[0]))
    else:
        run(Path(rest[0]) if rest else HERE / "results", rest[1:])
