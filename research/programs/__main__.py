"""Programs of other people under `ptxsim exec`: fetch, build, run in both orders, compare, write a table.

    python -m research.programs FOLDER [--only PATTERN] [--orders program,adverse] [--manifest FILE]
                                       [--table table.csv] [--again]

FOLDER keeps clones and builds. The manifest says where each program comes from, how it is built, what is
made smaller, and what it prints when it is right. Nothing of the programs is kept in this repository.
The table is written after every run; a row that it has is not run again unless --again says so.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
COLUMNS = (
    "name",
    "order",
    "built",
    "loaded",
    "ran",
    "right",
    "verdict",
    "launches",
    "accusations",
    "seconds",
    "why",
)


@dataclass
class Program:
    name: str
    source: str  # key of [sources]
    files: list[str]
    right: str = ""  # a regular expression in what it prints; "" where the exit code says it
    wrong: str = ""  # one that must not be there
    flags: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    edits: list[list[str]] = field(default_factory=list)  # [file, old, new]: sizes
    arch: str = "compute_90a"
    code: int = 0  # exit code when it is right
    accused: str = ""  # why an `error` on it is deserved
    timeout: int = 300


def manifest(path: Path = HERE / "manifest.toml") -> tuple[dict, list[Program]]:
    data = tomllib.loads(path.read_text())
    return data["sources"], [Program(**entry) for entry in data["program"]]


def clone(folder: Path, source: dict) -> Path:
    """The source at its commit, from the network or from a clone that is there."""
    place = folder / source["repository"].replace("/", "+")
    if not place.exists():
        url = f"https://github.com/{source['repository']}"
        subprocess.run(["git", "clone", "-q", "--filter=blob:none", url, str(place)], check=True)
        subprocess.run(["git", "-C", str(place), "checkout", "-q", source["commit"]], check=True)
    return place


def build(program: Program, root: Path, out: Path) -> str:
    """Compiles with `ptxsim nvcc`; what went wrong, or ""."""
    work = out / "source"
    shutil.rmtree(work, ignore_errors=True)
    for file, old, new in program.edits:
        target = work / file
        if not target.exists():
            shutil.copytree((root / file).parent, target.parent, dirs_exist_ok=True)
        text = target.read_text()
        if old not in text:
            return f"{file} holds no {old!r}"
        target.write_text(text.replace(old, new))
    files = [str(work / f if (work / f).exists() else root / f) for f in program.files]
    flags = [flag.replace("{root}", str(root)) for flag in program.flags]
    flags += [] if any(flag.startswith("-std") for flag in flags) else ["-std=c++17"]
    arch = ["-gencode", f"arch={program.arch},code={program.arch}"]
    command = [
        sys.executable,
        "-m",
        "ptxsim",
        "nvcc",
        *arch,
        "-w",
        *flags,
        *files,
        "-o",
        str(out / "a.out"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return "nvcc takes more than 15 minutes"
    lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
    return "" if done.returncode == 0 else (lines or ["?"])[0][:200]


def run(program: Program, root: Path, out: Path, order: str) -> dict:
    report, start = out / f"{order}.json", time.monotonic()
    report.unlink(missing_ok=True)
    args = [arg.replace("{root}", str(root)) for arg in program.args]
    command = [
        sys.executable,
        "-m",
        "ptxsim",
        "exec",
        "--order",
        order,
        "--json",
        str(report),
        str(out / "a.out"),
        *args,
    ]
    where = root / Path(program.files[0]).parent
    code, text, told = limited(command, program.timeout, where)
    (out / f"{order}.out").write_text(text + told)
    launches = json.loads(report.read_text())["launches"] if report.exists() else []
    return judge(program, code, text, told, launches) | {"seconds": round(time.monotonic() - start, 1)}


def limited(command: list[str], seconds: int, where: Path) -> tuple[int, str, str]:
    """(exit code, stdout, stderr); after so many seconds 124, and all processes of the command are ended."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=where, start_new_session=True, **pipes) as process:
        try:
            told = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            told, code = process.communicate(), 124
    return code, *(text.decode("utf-8", "replace") for text in told)


def judge(program: Program, code: int, text: str, told: str, launches: list) -> dict:
    verdicts = [launch["verdict"] for launch in launches]
    errors = [f for launch in launches for f in launch["findings"] if f["severity"] == "error"]
    refused = [f for launch in launches for f in launch["findings"] if "ptxsim cannot run" in f["message"]]
    own = int((re.findall(r"the program ended with (-?\d+)", told) or [code])[-1])
    said = not program.right or re.search(program.right, text)
    right = own == program.code and bool(said) and not (program.wrong and re.search(program.wrong, text))
    order = ("error", "incomplete", "review", "clean", "not checked")
    why = next((line for line in told.splitlines() if "cannot" in line or "error" in line), "")
    return {
        "loaded": "cannot be loaded" not in told and code != 2,
        "ran": not refused and code != 124,
        "right": right,
        "verdict": min(verdicts, key=order.index, default="none"),
        "launches": len(launches),
        "accusations": 0 if program.accused else len(errors),
        "why": (errors or refused)[0]["message"][:160].replace("\n", " ") if errors or refused else why[:160],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--orders", default="program,adverse")
    parser.add_argument("--manifest", type=Path, default=HERE / "manifest.toml")
    parser.add_argument("--table", type=Path, default=HERE / "table.csv")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    sources, programs = manifest(options.manifest)
    rows = known_rows(options.table)
    for program in programs:
        orders = [o for o in options.orders.split(",") if options.again or (program.name, o) not in rows]
        if not fnmatch.fnmatch(program.name, options.only) or not orders:
            continue
        for row in runs(program, sources[program.source], options.folder, orders):
            rows[row["name"], row["order"]] = row
            write_table(options.table, rows)
            print(" ".join(f"{key}={row.get(key)}" for key in COLUMNS if key != "built"), flush=True)
    print(summary(list(rows.values())))


def runs(program: Program, source: dict, folder: Path, orders: list[str]) -> Iterator[dict]:
    """One row for each order; the same row for all where the program cannot be built."""
    root = clone(folder, source).resolve()
    out = (folder / "built" / program.name).resolve()
    out.mkdir(parents=True, exist_ok=True)
    stamp, known = repr(program), out / "entry"
    current = (out / "a.out").exists() and known.exists() and known.read_text() == stamp
    problem = "" if current else build(program, root, out)
    known.write_text(stamp)
    for order in orders:
        row = {"why": problem} if problem else run(program, root, out, order)
        yield {"name": program.name, "order": order, "built": not problem} | row


def known_rows(table: Path) -> dict[tuple[str, str], dict]:
    """The rows of a table by (name, order)."""
    if not table.exists():
        return {}
    with table.open(newline="") as file:
        return {(row["name"], row["order"]): row for row in csv.DictReader(file)}


def write_table(table: Path, rows: dict[tuple[str, str], dict]) -> None:
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))


def summary(rows: list[dict]) -> str:
    """`60 programs of 9 sources: 60 load, 58 run, 58 right in both orders, 0 accused`."""
    names = {row["name"] for row in rows}
    by_name = {name: [row for row in rows if row["name"] == name] for name in names}
    counts = {
        key: sum(all(str(row.get(key)) == "True" for row in mine) for mine in by_name.values())
        for key in ("loaded", "ran", "right")
    }
    accused = sum(any(int(row.get("accusations") or 0) for row in mine) for mine in by_name.values())
    sources = {name.split("/")[0] for name in names}
    return (
        f"{len(names)} programs of {len(sources)} sources: {counts['loaded']} load, {counts['ran']} run, "
        f"{counts['right']} right in every order, {accused} accused"
    )


if __name__ == "__main__":
    main()
