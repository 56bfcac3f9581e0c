"""Runs the differential set on this machine's GPU: `python -m research.chip.run [SET] [--results DIR]`.

Needs numpy, ml-dtypes, cuda-bindings and a driver; no TVM, no torch. Each case starts from the stored inputs
and is compared with ptxsim's stored results. Prints the differences and writes DIR/<gpu>.json. Exit code 1 if
there are any.
"""

from __future__ import annotations

import argparse
import datetime
import json
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes  # noqa: F401
import numpy as np

from research.chip.case import Loaded, case_names, difference, load_set
from tirxlab.devices import driver

HERE = Path(__file__).parent
LIMIT, START_LIMIT = 20.0, 120.0  # seconds for a case, and until a worker answers
SENTINEL = 64  # bytes after each output that must not change


def run_case(case: Loaded) -> str:
    """The differences; "" if the chip agrees. Raises LaunchError if the driver reports a fault: then the
    context is lost.
    """
    api, call = driver.api(), driver.call
    kernel = driver.Kernel(case.artifact)
    pointers = {}
    for name, data in case.arrays.items():
        padded = np.concatenate([data, np.full(SENTINEL, 0xA5, np.uint8)])
        pointers[name] = int(call(api.cuMemAlloc, padded.nbytes))
        call(api.cuMemcpyHtoD, pointers[name], padded, padded.nbytes)
    kernel.launch(pointers)
    call(api.cuCtxSynchronize)
    wrong = []
    for name in case.expected:
        got = np.zeros(case.arrays[name].nbytes + SENTINEL, np.uint8)
        call(api.cuMemcpyDtoH, got, pointers[name], got.nbytes)
        wrong.append(difference(case, name, got[:-SENTINEL]))
        if (got[-SENTINEL:] != 0xA5).any():
            wrong.append(f"{name}: bytes behind the end were written")
    for pointer in pointers.values():
        call(api.cuMemFree, pointer)
    call(api.cuModuleUnload, kernel.module)
    return "; ".join(filter(None, wrong))


def gpu() -> dict:
    api = driver.api()
    name = driver.use_device(0)
    major, minor = driver.capability(api, 0)
    version = driver.call(api.cuDriverGetVersion)
    return {
        "gpu": name,
        "compute_capability": f"{major}.{minor}",
        "cuda_driver": f"{version // 1000}.{version % 1000 // 10}",
        "driver": _driver_version(),
        "date": datetime.date.today().isoformat(),
    }


def _driver_version() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        text = ""
    found = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", text)
    return found.group() if found else "unknown"


def work(path: Path, only: str) -> None:
    """The worker process: runs the cases whose names come on stdin, and prints one answer line for each."""
    cases = {case.name: case for case in load_set(path, only)[1]}
    print(json.dumps({"machine": gpu()}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            result = run_case(cases[name])
        except (driver.LaunchError, ValueError) as error:
            result = f"the driver reports {error}"
            if isinstance(error, driver.LaunchError) and error.code not in _LOAD_ERRORS:
                print(json.dumps({"name": name, "result": result}), flush=True)
                return  # the context is lost; a new worker continues
        print(json.dumps({"name": name, "result": result}), flush=True)


class Workers:
    """Feeds cases to a child process; one that dies or hangs is replaced."""

    def __init__(self, arguments: list[str]):
        self.command = [sys.executable, "-m", "research.chip.run", "--worker", *arguments]
        self.process, self.machine = None, {}

    def run(self, name: str) -> str:
        if self.process is None:
            self._start()
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        answer = self._read(LIMIT)
        if answer is None:
            hung = self.process.poll() is None
            self._drop()
            return f"hung: no end within {LIMIT:g} s" if hung else "the worker died"
        if self.process.poll() is not None or "driver reports" in answer["result"]:
            self._drop()
        return answer["result"]

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=_pump, args=(self.process.stdout, self.lines), daemon=True).start()
        first = self._read(START_LIMIT)
        if first is None:
            raise SystemExit("no usable GPU: the worker did not start")
        self.machine = first["machine"]

    def _read(self, seconds: float) -> dict | None:
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return None
        return json.loads(line) if line else None

    def _drop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = None


def _pump(pipe, lines: queue.Queue) -> None:
    for line in pipe:
        lines.put(line)
    lines.put("")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", nargs="?", type=Path, default=HERE / "set.tar.xz")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.set, options.only)
        return 0
    about, names = case_names(options.set, options.only)
    workers, start = Workers([str(options.set), "--only", options.only]), time.perf_counter()
    results = {}
    for name in names:
        results[name] = workers.run(name)
        if results[name]:
            print(f"differs: {name}: {results[name]}", flush=True)
    report(options.results, workers.machine, about, results, time.perf_counter() - start)
    return 1 if any(results.values()) else 0


def report(folder: Path, machine: dict, about: dict, results: dict[str, str], seconds: float) -> None:
    """The summary line, the rows that no case covers, and the result file."""
    equal = sum(not r for r in results.values())
    for row in about["uncovered"]:
        print(f"no case: {row}")
    print(
        f"{machine['gpu']}: {equal} of {len(results)} cases equal, {len(results) - equal} differ, "
        f"{seconds:.0f} s; "
        f"{len(about['uncovered'])} of {about['rows']} rows of the instruction table have no case"
    )
    folder.mkdir(parents=True, exist_ok=True)
    differences = {name: result for name, result in results.items() if result}
    data = {**machine, "cases": len(results), "equal": equal, **about, "differences": differences}
    file = folder / f"{machine['gpu'].lower().replace(' ', '-')}.json"
    file.write_text(json.dumps(data, indent=1) + "\n")
    print(f"wrote {file}")


_LOAD_ERRORS = {
    "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_INVALID_VALUE",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_INVALID_IMAGE",
}

if __name__ == "__main__":
    sys.exit(main())
