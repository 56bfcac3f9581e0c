"""Run the lab on a cloud B200 through Modal; install it with `pip install modal && modal setup`.

    modal run run_modal.py [--step 1,3,5]            tests on the B200; exit status 1 if one fails
    modal run run_modal.py --inspect 7 --size 2048   the generated CUDA (no GPU is used for that)
    modal run run_modal.py --validate                the B200 against the simulator, into validate-b200.json

Every step runs in its own container under a time limit: one that hangs is killed, the rest go on.
`--validate` has not been run on a B200 yet. Without an account, each function runs here by `.local()`.
"""

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
from pathlib import Path

try:
    import modal
except ModuleNotFoundError:
    sys.exit("run_modal: Modal is not installed; run: pip install modal && modal setup")

INSIDE = not modal.is_local()
ROOT = Path("/lab") if INSIDE else Path(__file__).resolve().parent
if INSIDE:
    sys.path.insert(0, str(ROOT))

from lab_cli.requirements import requirements  # noqa: E402  (needs the path set above)
from tirxlab.steps import STEPS, StepError, parse_size, read_text  # noqa: E402

STEP_SECONDS = 600  # for the tests of one step; --limit changes it
IGNORED = [".venv", ".git", "**/__pycache__", ".*_cache", ".hypothesis", "instructor", "dev"]
CACHE = "/cache"

app = modal.App("tirx-gemm-lab")
volume = modal.Volume.from_name("tirx-gemm-lab-cache", create_if_missing=True)
image = modal.Image.debian_slim(python_version="3.12").env({"LAB_CACHE": CACHE, "PYTHONUNBUFFERED": "1"})
if not INSIDE:  # the image is described here and only used there
    image = image.pip_install(*requirements(("cuda",))).add_local_dir(ROOT, "/lab", ignore=IGNORED)
on_b200 = {"image": image, "gpu": "B200", "volumes": {CACHE: volume}, "single_use_containers": True}


@app.function(timeout=3600, **on_b200)
def run_step(
    step: int, kernels: str, limit: float = STEP_SECONDS, device: str = "cuda", full: bool = True
) -> dict:
    """Run one step's tests on the text of a kernels file.

    Returns step, outcome ("passed", "failed", "hung", "broken"), counts by kind of result, seconds, and the
    end of pytest's output. A run over `limit` seconds is killed with everything that it started.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, report = Path(folder) / "gemm_kernels.py", Path(folder) / "report.xml"
        file.write_text(kernels, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", f"tests/test_step{step:02}.py", "-p", "no:cacheprovider"]
        command += ["--device", device, "--kernels", str(file), f"--junit-xml={report}", "--tb=short"]
        start = time.monotonic()
        status, output = run_limited(command + ["--full"] * full, limit)
        row = {"step": step, "seconds": round(time.monotonic() - start, 1), "output": output[-8000:]}
        counts = read_report(report)
    if status is None:
        return row | {"outcome": "hung", "counts": counts}
    outcome = {0: "passed", 1: "failed"}.get(status, "broken")
    return row | {"outcome": outcome, "counts": counts}


@app.function(image=image, cpu=2, timeout=300, volumes={CACHE: volume})
def inspect_step(step: int, size: str, view: str, kernels: str) -> str:
    """The text that inspect_cuda.py prints for a step of the text of a kernels file."""
    from inspect_cuda import inspect

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gemm_kernels.py"
        file.write_text(kernels, encoding="utf-8")
        return inspect(file, step, parse_size(size) if size else None, view)


@app.function(timeout=600, **on_b200)
def run_artifact(artifact: bytes, arrays: bytes, device: str = "cuda") -> dict:
    """Run a saved artifact on arrays (an .npz, by buffer name); its outputs as .npz, and the verdict."""
    import numpy as np

    from tirxlab.artifact import Artifact
    from tirxlab.devices import get_device

    loaded = Artifact.load(io.BytesIO(artifact))
    inputs = {name: value.copy() for name, value in np.load(io.BytesIO(arrays)).items()}
    run = get_device(device).run(loaded, inputs)
    return {"outputs": pack(run.outputs), "verdict": run.verdict, "seconds": run.seconds}


@app.local_entrypoint()
def main(
    step: str = "all",
    inspect: int = 0,
    size: str = "",
    view: str = "cuda",
    kernels: str = "",
    limit: float = STEP_SECONDS,
    validate: bool = False,
):
    """Run tests on a B200, or --inspect a step, or --validate the simulator; see the file's head."""
    try:
        text = read_text(Path(kernels) if kernels else ROOT / "gemm_kernels.py")
        if inspect:
            print(inspect_step.remote(inspect, size, view, text))
            return
        if validate:
            status = validate_all(run_artifact.remote, Path("validate-b200.json"))
        else:
            calls = [(number, text, limit) for number in chosen(step)]
            status = report_steps(calls, run_step.starmap(calls, return_exceptions=True))
    except StepError as error:
        sys.exit(f"run_modal: {error}")
    sys.exit(status)


def chosen(text: str) -> list[int]:
    """`all` or `1,3,5` -> steps; StepError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if text != "all" and not all(part.isdigit() and int(part) in STEPS for part in parts):
        raise StepError(f"{text!r} is not a step: write 1 to 10, several as 1,3,5, or all")
    return list(STEPS) if text == "all" else [int(part) for part in parts]


def run_limited(command: list[str], limit: float) -> tuple[int | None, str]:
    """Run a command in ROOT: (exit status, output); status None if it was killed after `limit` seconds."""
    with tempfile.TemporaryFile() as log:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
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
    """End a child and all that it started, which `start_new_session` put into one process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def read_report(file: Path) -> dict[str, int]:
    """Counts of a JUnit file, {} if pytest did not get as far as writing it."""
    if not file.exists():
        return {}
    suite = next(xml.parse(file).getroot().iter("testsuite"))
    counts = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    counts["passed"] = counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    return counts


def report_steps(calls: list[tuple], results) -> int:
    """Print what failed and a table; 0 if every step passed. A result may be an exception of the cloud."""
    rows = []
    for (step, *_), result in zip(calls, results, strict=True):
        if isinstance(result, BaseException):
            text = f"{type(result).__name__}: {result}"
            result = {"step": step, "outcome": "broken", "seconds": 0.0, "counts": {}, "output": text}
        rows.append(result)
        if result["outcome"] != "passed":
            print(f"---- step {step}: {result['outcome']}\n{result['output'].rstrip()}\n")
    print(f"{'step':>4}  {'outcome':<8} {'passed':>6} {'failed':>6} {'skipped':>7} {'seconds':>8}")
    for row in rows:
        counts = {"passed": 0, "failures": 0, "errors": 0, "skipped": 0} | row["counts"]
        failed = counts["failures"] + counts["errors"]
        print(
            f"{row['step']:>4}  {row['outcome']:<8} {counts['passed']:>6} {failed:>6} {counts['skipped']:>7} "
            f"{row['seconds']:>8.1f}"
        )
    return 0 if all(row["outcome"] == "passed" for row in rows) else 1


def pack(arrays: dict) -> bytes:
    """Arrays by name as .npz bytes (numpy arrays or tensors)."""
    import numpy as np

    out = io.BytesIO()
    np.savez(out, **{name: np.asarray(value) for name, value in arrays.items()})
    return out.getvalue()


def validate_all(run_remote, target: Path, cases=None) -> int:
    """Run every case on the B200 and here on the simulator, compare, write `target`; 0 if all agree.

    Integer-valued inputs give sums that float32 holds exactly, so they must agree bit for bit; random ones to
    rtol 1e-3, atol 1e-2.
    """
    rows = []
    for step, size, values in cases if cases is not None else validation_cases():
        case = {"step": step, "size": size, "values": values}
        row = case | validate_one(run_remote, **case)
        rows.append(row)
        print(f"step {step:>2}  {'x'.join(map(str, size)):<15} {values:<8} {row['result']}", flush=True)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    target.write_text(json.dumps({"gpu": "B200", "when": when, "rows": rows}, indent=1) + "\n")
    wrong = sum(row["result"] != "equal" for row in rows)
    print(f"{len(rows) - wrong} of {len(rows)} cases agree; written to {target}")
    return 1 if wrong or not rows else 0


def validation_cases() -> list[tuple[int, tuple[int, int, int], str]]:
    """Every step at its public sizes up to 1024 and its uneven ones, on both kinds of values."""
    from tirxlab.rubric import load_rubric

    rubric, kinds = load_rubric(), ("integer", "random")
    return [(step, size, kind) for step in STEPS for size in rubric.quick_sizes(step) for kind in kinds]


def validate_one(run_remote, step: int, size: tuple[int, int, int], values: str) -> dict:
    """One artifact on both machines: {"result": "equal" | what differs, ...}."""
    import numpy as np

    artifact, arrays = make_case(step, size, values)
    remote = run_remote(artifact.to_bytes(), pack(arrays))
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
    """The reference artifact of a step (the student's where there is no reference) and its arrays."""
    import numpy as np

    from tirxlab.build import build
    from tirxlab.steps import builder

    reference = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
    artifact = build(builder(reference if reference.exists() else ROOT / "gemm_kernels.py", step)(*size))
    random = np.random.default_rng(step)
    fills = {"integer": lambda shape: random.integers(-2, 3, shape), "random": random.standard_normal}
    arrays = {}
    for buffer in artifact.buffers:
        fill = np.zeros if buffer.role == "out" else fills[values]
        arrays[buffer.name] = fill(buffer.shape).astype(buffer.dtype)
    return artifact, arrays
