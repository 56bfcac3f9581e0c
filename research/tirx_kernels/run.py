"""`python run.py build|run|second [--out FOLDER] [--seconds N] [KERNEL ..]`: the whole library, resumable.

`build` writes one JSON per kernel: which configurations give PTX, and whether ptxsim lowers it. `run` runs
the smaller configuration of each kernel that builds, `second` another one. A kernel that already has its file
is skipped. Each kernel runs in its own process with this time limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from catalogue import entries, first_of, second_of

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("build", "run", "second"))
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("/tmp/tirx-rows"))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--label", default="", help="run this configuration")
    args = parser.parse_intermixed_args()  # options may stand before the kernels
    for entry in entries():
        if entry.arch is None or (args.kernels and entry.name not in args.kernels):
            continue
        out = args.out / args.what / f"{entry.name}.json"
        if out.exists() and not args.kernels:
            continue
        out.parent.mkdir(parents=True, exist_ok=True)
        command = (build if args.what == "build" else run)(entry, args, out)
        if command:
            row = one(command, out, args.seconds)
            print(entry.name, told(row), flush=True)


def build(entry, args, out: Path) -> list[str]:
    return ["build_one.py", entry.module, entry.arch, str(out)]


def run(entry, args, out: Path) -> list[str] | None:
    """The command for the smaller configuration that built, or for the second one; None if there is none."""
    built = args.out / "build" / f"{entry.name}.json"
    rows = json.loads(built.read_text())["configs"] if built.exists() else []
    label = args.label or (second_of if args.what == "second" else first_of)(entry.name, rows)
    return ["run_one.py", entry.module, entry.arch, label, str(out)] if label else None


def one(command: list[str], out: Path, seconds: int) -> dict:
    """The row that a process of its own writes; if the process did not end well, the row says so."""
    out.unlink(missing_ok=True)
    path = f"{HERE}{os.pathsep}{HERE.parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    script, *rest = command
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / script), *rest],
            env={**os.environ, "PYTHONPATH": path}, timeout=seconds, capture_output=True, text=True,
        )  # fmt: skip
        problem = done.stderr[-800:] if done.returncode else ""
    except subprocess.TimeoutExpired:
        problem = f"not done after {seconds} s"
    row = json.loads(out.read_text()) if out.exists() else {"configs": [], "runs": []}
    if problem or not out.exists():
        out.write_text(json.dumps(row | {"error": problem or "no result"}))
    return json.loads(out.read_text())


def told(row: dict) -> str:
    """One line about a row."""
    if row.get("configs"):
        return "; ".join(
            f"{c['label']}: {c.get('error', '')[:80] or len(c['kernels'])}"
            f" {' '.join(k['lowers'][:80] for k in c['kernels'])}".strip()
            for c in row["configs"]
        )
    verdicts = ", ".join(
        f"{r['kernel']} {r['verdict'] or r['problem'][:80]} {r['seconds']} s" for r in row["runs"]
    )
    return f"right={row.get('right')} {verdicts} {row.get('error', '')[:160]}".strip()


if __name__ == "__main__":
    main()
