"""Runs the lab on a cloud B200 through Modal; install that with `pip install modal && modal setup`.

    modal run run_modal.py                           tests and speed of every written step; a score
    modal run run_modal.py --steps 1,3,5
    modal run -q run_modal.py --inspect 7 > v7.cu    the generated CUDA (no GPU is used for that)
    modal run run_modal.py --validate                the B200 against the simulator, into validate-b200.json
    modal run run_modal.py --help                    every option

Every step runs in its own container under a time limit: a step that hangs is killed, the others continue.
Steps that are still skeletons are not sent. `--validate` has not been run on a B200 yet. Without an account,
each function runs on this machine by `.local()`.
"""

import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

try:
    import modal
except ModuleNotFoundError:
    sys.exit("run_modal: Modal is not installed; run: pip install modal && modal setup")

INSIDE = not modal.is_local()
ROOT = Path("/lab") if INSIDE else Path(__file__).resolve().parent
SOURCES = [str(ROOT), *(str(ROOT / "packages" / name / "src") for name in ("tirxlab", "ptxsim"))]
sys.path[:0] = SOURCES

from tirxlab.cli.requirements import requirements  # noqa: E402  (needs the path set above)
from tirxlab.rubric import load_rubric  # noqa: E402
from tirxlab.steps import (  # noqa: E402
    STEPS,
    StepError,
    is_untouched,
    parse_size,
    read_text,
    refuse_syntax_errors,
    sections,
)

STEP_SECONDS = 600  # for the tests of one step; --limit changes it
FUNCTION_SECONDS = 3600  # Modal's own limit of run_step, which cannot change between calls
MARGIN = 120  # seconds of FUNCTION_SECONDS for starting pytest and for killing what hangs
AT_ONCE = 4  # containers with a B200 each; --at-once changes it
IGNORED = [".venv", ".git", "**/__pycache__", ".*_cache", ".hypothesis", "instructor", "research"]
CACHE = "/cache"

app = modal.App("tirx-gemm-lab")
volume = modal.Volume.from_name("tirx-gemm-lab-cache", create_if_missing=True)
image = modal.Image.debian_slim(python_version="3.12").env(
    {
        "LAB_CACHE": CACHE,
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": "/lab:/lab/packages/tirxlab/src:/lab/packages/ptxsim/src",
    }
)
if not INSIDE:  # the image is described here and only used there
    image = image.pip_install(*requirements(("cuda",))).add_local_dir(ROOT, "/lab", ignore=IGNORED)
on_b200: dict[str, Any] = {"image": image, "gpu": "B200", "volumes": {CACHE: volume}}


@app.function(timeout=FUNCTION_SECONDS, single_use_containers=True, **on_b200)
def run_step(
    step: int, kernels: str, limit: float = STEP_SECONDS, device: str = "cuda", full: bool = True
) -> dict:
    """Runs one step's tests on the text of a kernels file.

    Returns step, outcome ("passed", "failed", "hung", "broken"), counts by kind of result, speeds by size
    (measured and reference TFLOP/s), seconds, and the end of pytest's output. A run over `limit` seconds is
    killed with everything that it started.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, report = Path(folder) / "gemm_kernels.py", Path(folder) / "report.xml"
        file.write_text(kernels, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", f"tests/test_step{step:02}.py", "-p", "no:cacheprovider"]
        command += ["--device", device, "--kernels", str(file), f"--junit-xml={report}", "--tb=short"]
        start = time.monotonic()
        status, output = run_limited(command + ["--full"] * full, limit)
        row = {"step": step, "seconds": round(time.monotonic() - start, 1), "output": output[-8000:]}
        row |= {"counts": read_report(report), "speeds": read_speeds(report)}
    if status is None:
        return row | {"outcome": "hung"}
    return row | {"outcome": {0: "passed", 1: "failed"}.get(status, "broken")}


@app.function(image=image, cpu=2, timeout=300, volumes={CACHE: volume})
def inspect_step(step: int, size: str, view: str, kernels: str) -> str:
    """The text that inspect_cuda.py prints for a step of `kernels`, the text of a kernels file."""
    from inspect_cuda import inspect

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gemm_kernels.py"
        file.write_text(kernels, encoding="utf-8")
        return inspect(file, step, parse_size(size) if size else None, view)


@app.function(timeout=600, max_containers=1, **on_b200)
def run_artifact(artifact: bytes, arrays: bytes, device: str = "cuda") -> dict:
    """Runs a saved artifact on arrays (an .npz, by buffer name); returns outputs (.npz), verdict, seconds."""
    import numpy as np

    from tirxlab.artifact import Artifact
    from tirxlab.devices import get_device

    loaded = Artifact.from_bytes(artifact)
    inputs = {name: value.copy() for name, value in np.load(io.BytesIO(arrays)).items()}
    run = get_device(device).run(loaded, inputs)
    return {"outputs": pack(run.outputs), "verdict": run.verdict, "seconds": run.seconds}


def options() -> argparse.ArgumentParser:
    """Every option; `modal run run_modal.py --help` shows this."""
    parser = argparse.ArgumentParser(
        prog="modal run run_modal.py",
        description="Run the tests of your kernels on a cloud B200, or one of the other actions.",
        epilog="Write `modal run -q run_modal.py ..` where the output goes into a file.",
    )
    add = parser.add_argument
    add("--steps", default="all", metavar="S", help="steps to run: 3, or 1,3,5 [all that are written]")
    add("--kernels", default="", metavar="FILE", help="the kernels file [gemm_kernels.py]")
    most = f"at most {FUNCTION_SECONDS - MARGIN} [{STEP_SECONDS}]"
    add("--limit", type=float, default=STEP_SECONDS, metavar="SECONDS", help=f"kills a longer step; {most}")
    at_once = f"B200s in use at the same time [{AT_ONCE}]"
    add("--at-once", type=int, default=AT_ONCE, metavar="N", help=at_once)
    add("--inspect", type=int, default=0, metavar="STEP", help="print the step's code instead; needs no GPU")
    add("--size", default="", metavar="SIZE", help="for --inspect: 1024 or MxNxK")
    add("--view", default="cuda", metavar="VIEW", help="for --inspect: cuda, ptx, sass or regs [cuda]")
    validation = "compare every step on one B200 with the simulator here, into validate-b200.json"
    add("--validate", action="store_true", help=validation)
    return parser


if not INSIDE and {"-h", "--help"} & set(sys.argv[1:]) and "run" in sys.argv[1:]:
    options().print_help()  # Modal's own help does not explain the options
    sys.exit(0)


@app.local_entrypoint()
def main(*arguments: str):
    """Runs tests on a B200, or --inspect a step, or --validate the simulator; see `options`."""
    given = options().parse_args(arguments)
    try:
        text = read_text(Path(given.kernels) if given.kernels else ROOT / "gemm_kernels.py")
        if given.inspect:
            print(inspect_step.remote(given.inspect, given.size, given.view, text))
            return
        if given.validate:
            status = validate_all(run_artifact.remote, Path("validate-b200.json"))
        else:
            status = run_tests(given, text)
    except StepError as error:
        sys.exit(f"run_modal: {error}")
    sys.exit(status)


def run_tests(given: argparse.Namespace, text: str, starmap=None) -> int:
    """Runs the written steps on B200s, at most `at_once` at a time, and reports; returns the exit status."""
    check_numbers(given.limit, given.at_once)
    steps, left = written(chosen(given.steps), text)
    starmap = starmap or (lambda calls: run_step.starmap(calls, return_exceptions=True))
    calls, results = [(step, text, given.limit) for step in steps], []
    for first in range(0, len(calls), given.at_once):
        results += starmap(calls[first : first + given.at_once])
    return report_steps(calls, results, left)


def check_numbers(limit: float, at_once: int) -> None:
    """Raises StepError if Modal's own limit would come first, or if no container may run."""
    most = FUNCTION_SECONDS - MARGIN
    if not 1 <= limit <= most:
        raise StepError(f"--limit {limit:g}: write seconds from 1 to {most}; Modal stops a step after that")
    if at_once < 1:
        raise StepError(f"--at-once {at_once}: write how many B200s may run at the same time, 1 or more")


def chosen(text: str) -> list[int]:
    """`all` or `1,3,5` -> steps; StepError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if text != "all" and not all(part.isdigit() and int(part) in STEPS for part in parts):
        raise StepError(f"{text!r} is not a step: write 1 to 10, several as 1,3,5, or all")
    return list(STEPS) if text == "all" else list(dict.fromkeys(int(part) for part in parts))


def written(steps: list[int], text: str) -> tuple[list[int], list[int]]:
    """(steps worth a B200, steps that are missing or still skeletons); StepError if none is worth it."""
    refuse_syntax_errors(text, "the kernels file")
    there = sections(text)
    left = [step for step in steps if step not in there or is_untouched(text, step)]
    if len(left) == len(steps):
        raise StepError("none of these steps is implemented yet; nothing was sent")
    return [step for step in steps if step not in left], left


def run_limited(command: list[str], limit: float) -> tuple[int | None, str]:
    """Runs a command in ROOT: (exit status, output); status None if it was killed after `limit` seconds."""
    with tempfile.TemporaryFile() as log:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES)}
        child = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            kill_group(child)
        log.seek(0)
        return status, log.read().decode(errors="replace")


def kill_group(child: subprocess.Popen) -> None:
    """Ends a child and everything it started, which `start_new_session` put into one process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def read_report(file: Path) -> dict[str, int]:
    """Counts from a JUnit file; {} if pytest did not get as far as writing it."""
    if not file.exists():
        return {}
    suite = next(xml.parse(file).getroot().iter("testsuite"))
    counts = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    counts["passed"] = counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    return counts


def read_speeds(file: Path) -> dict[str, tuple[float, float]]:
    """Size -> (measured, reference) TFLOP/s, as the speed tests that passed recorded them."""
    found = {}
    for case in xml.parse(file).iter("testcase") if file.exists() else ():
        said = {item.get("name"): item.get("value", "") for item in case.iter("property")}
        if "tflops" in said:
            size = case.get("name", "").partition("[")[2].rstrip("]")
            found[size] = float(said["tflops"]), float(said["reference_tflops"])
    return found


def report_steps(calls: list[tuple], results, left: Sequence[int] = ()) -> int:
    """Prints what failed, a table, the speeds and the score; returns 0 if every step asked for passed.

    A result may be an exception from the cloud. `left`: steps that were not sent.
    """
    rows = []
    for (step, *_), result in zip(calls, results, strict=True):
        if isinstance(result, BaseException):
            text = f"{type(result).__name__}: {result}"
            result = {"step": step, "outcome": "broken", "seconds": 0.0, "counts": {}, "output": text}
        rows.append({"speeds": {}} | result)
        if result["outcome"] != "passed":
            print(f"---- step {step}: {result['outcome']}\n{result['output'].rstrip()}\n")
    print_table(rows)
    print_speeds(rows)
    print_sums(rows, left)
    return 0 if not left and all(row["outcome"] == "passed" for row in rows) else 1


def print_table(rows: list[dict]) -> None:
    """Prints outcome and counts of each step."""
    print(f"{'step':>4}  {'outcome':<8} {'passed':>6} {'failed':>6} {'skipped':>7} {'seconds':>8}")
    for row in rows:
        counts = {"passed": 0, "failures": 0, "errors": 0, "skipped": 0} | row["counts"]
        failed = counts["failures"] + counts["errors"]
        print(
            f"{row['step']:>4}  {row['outcome']:<8} {counts['passed']:>6} {failed:>6} {counts['skipped']:>7} "
            f"{row['seconds']:>8.1f}"
        )


def print_speeds(rows: list[dict]) -> None:
    """Prints measured and published TFLOP/s of every size that was fast enough."""
    lines = [(row["step"], size, *speeds) for row in rows for size, speeds in row["speeds"].items()]
    if lines:
        print(f"\n{'step':>4}  {'size':<16} {'TFLOP/s':>8} {'reference':>9} {'ratio':>6}")
    for step, size, measured, reference in lines:
        print(f"{step:>4}  {size:<16} {measured:>8.1f} {reference:>9.1f} {measured / reference:>6.2f}")


def print_sums(rows: list[dict], left: Sequence[int]) -> None:
    """Prints the score by the public rubric, the steps not sent, and the B200 time used."""
    points = load_rubric().points
    earned = sum(points[row["step"]] for row in rows if row["outcome"] == "passed")
    possible = sum(points[step] for step in [*(row["step"] for row in rows), *left])
    if left:
        print(f"\nnot sent, not implemented yet: step {', '.join(map(str, left))}")
    print(f"\n{earned} of {possible} points by the public rubric; techniques are not checked")
    seconds = sum(row["seconds"] for row in rows)
    print(f"{seconds:.0f} s of B200 in tests; starting the containers is billed too (modal.com/pricing)")


def pack(arrays: dict) -> bytes:
    """Arrays by name as .npz bytes (numpy arrays or tensors)."""
    import numpy as np

    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **{name: np.asarray(value) for name, value in arrays.items()})
    return out.getvalue()


def validate_all(run_remote, target: Path, cases=None) -> int:
    """Runs every case on the B200 and here on the simulator, compares, writes `target`; 0 if all agree.

    Integer-valued inputs give sums that float32 holds exactly, so they must agree bit for bit; random ones to
    rtol 1e-3, atol 1e-2. Results are written after each case, so that an aborted run loses nothing.
    """
    cases = validation_cases() if cases is None else cases
    print(
        f"{len(cases)} cases, one after the other, on one B200 that you pay for until the last one is done;"
    )
    print("kernels are built and simulated here meanwhile. How long that takes has not been measured.")
    rows, when = [], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for number, (step, size, values) in enumerate(cases, 1):
        case = {"step": step, "size": size, "values": values}
        rows.append(case | validate_one(run_remote, **case))
        where = f"step {step:>2}  {'x'.join(map(str, size)):<15} {values:<8}"
        print(f"[{number}/{len(cases)}] {where} {rows[-1]['result']}", flush=True)
        target.write_text(json.dumps({"gpu": "B200", "when": when, "rows": rows}, indent=1) + "\n")
    wrong = sum(row["result"] != "equal" for row in rows)
    kernels = sum(row.get("seconds_b200", 0.0) for row in rows)
    print(f"{len(rows) - wrong} of {len(rows)} cases agree; written to {target}")
    print(f"{kernels:.1f} s in kernel runs on the B200; the container was up, and billed, for longer")
    return 1 if wrong or not rows else 0


def validation_cases() -> list[tuple[int, tuple[int, int, int], str]]:
    """Every step at its public sizes up to 1024 and its uneven ones, with both kinds of values."""
    rubric, kinds = load_rubric(), ("integer", "random")
    return [(step, size, kind) for step in STEPS for size in rubric.quick_sizes(step) for kind in kinds]


def validate_one(run_remote, step: int, size: tuple[int, int, int], values: str) -> dict:
    """Runs one artifact on both machines: {"result": "equal" | what differs, ...}."""
    import numpy as np

    artifact, arrays = make_case(step, size, values)
    try:
        remote = run_remote(artifact.to_bytes(), pack(arrays))
    except Exception as error:  # from the cloud, or a kernel that hangs there: the other cases still run
        return {"result": f"failed on the B200: {type(error).__name__}: {error}"}
    local = run_artifact.local(artifact.to_bytes(), pack(arrays), device="sim")
    row = {"seconds_b200": remote["seconds"], "verdict_sim": local["verdict"]}
    theirs, ours = np.load(io.BytesIO(remote["outputs"])), np.load(io.BytesIO(local["outputs"]))
    if set(theirs) != set(ours) or not set(ours):
        return row | {"result": f"outputs {sorted(theirs)} on the B200, {sorted(ours)} on the simulator"}
    for name in ours:
        tolerances = {"rtol": 0, "atol": 0} if values == "integer" else {"rtol": 1e-3, "atol": 1e-2}
        wrong = ~np.isclose(theirs[name].astype("f4"), ours[name].astype("f4"), equal_nan=True, **tolerances)
        if wrong.any():
            first = tuple(map(int, np.argwhere(wrong)[0]))
            numbers = f"{theirs[name][first]} on the B200, {ours[name][first]} on the simulator"
            return row | {"result": f"{int(wrong.sum())} elements of {name} differ, first {first}: {numbers}"}
    return row | {"result": "equal"}


def make_case(step: int, size: tuple[int, int, int], values: str):
    """The reference artifact of a step (the student's if there is no reference) and its arrays."""
    import numpy as np

    from tirxlab.sandbox import artifact_of

    reference = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
    artifact = artifact_of(reference if reference.exists() else ROOT / "gemm_kernels.py", step, size)
    random = np.random.default_rng(step)
    fills: dict[str, Callable] = {
        "integer": lambda shape: random.integers(-2, 3, shape),
        "random": random.standard_normal,
    }
    arrays = {}
    for buffer in artifact.buffers:
        fill = np.zeros if buffer.role == "out" else fills[values]
        arrays[buffer.name] = fill(buffer.shape).astype(buffer.dtype)
    return artifact, arrays


if __name__ == "__main__":  # Modal imports this file; a person has left out `modal run`
    sys.exit(f"run_modal: Modal starts this file: modal run run_modal.py {' '.join(sys.argv[1:])}".rstrip())
