"""Programs of other projects under `ptxsim exec`: runs prebuilt executables in both orders, and judges them.

    python -m research.programs FOLDER [--only PATTERN] [--orders program,adverse] [--manifest FILE]
                                       [--table FILE] [--again]

FOLDER/NAME is the executable of program NAME of the manifest, built as its own project describes, but with
`ptxsim nvcc` in place of nvcc so that it contains PTX. The manifest says where each comes from, and what it
prints when it is right. The table is written after every run; an order that it already has is run again only
with --again. Orders with the same outcome share a row, with the seconds of each.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import io
import itertools
import json
import os
import re
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

from research import packed

HERE = Path(__file__).parent
MANIFEST, TABLE = HERE / "manifest.toml.xz", HERE / "table.csv.xz"
STAGES = ("", "built", "loaded", "ran", "right")  # of a program; a row has the last that it reached
FACTS = ("verdict", "launches", "accusations", "seconds", "why")
COLUMNS = ("name", "order", "reached", *FACTS)
SHARED = ("order", "seconds")  # fields with a word for each of the orders that had the same outcome


@dataclass
class Program:
    name: str
    source: str  # key of [sources]; by default the part of the name before the slash
    right: str = ""  # regular expression for its output; "" if the exit code decides
    wrong: str = ""  # regular expression that must not match
    args: list[str] = field(default_factory=list)
    code: int = 0  # exit code of a right run
    accused: str = ""  # why an `error` on it is deserved
    timeout: int = 300


def manifest(path: Path = MANIFEST) -> tuple[dict, list[Program]]:
    data = tomllib.loads(packed.read(path) if path.suffix == ".xz" else path.read_text())
    programs = data["program"].items()
    return data["sources"], [
        Program(name, **{"source": name.split("/")[0]} | told) for name, told in programs
    ]


def run(program: Program, built: Path, order: str) -> dict:
    report, start = built.with_name(f"{built.name}.{order}.json"), time.monotonic()
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "ptxsim", "exec", "--order", order, "--json", str(report)]
    code, text, told = limited([*command, str(built), *program.args], program.timeout, built.parent)
    launches = json.loads(report.read_text())["launches"] if report.exists() else []
    return judge(program, code, text, told, launches) | {"seconds": round(time.monotonic() - start, 1)}


def limited(command: list[str], seconds: int, where: Path) -> tuple[int, str, str]:
    """(exit code, stdout, stderr); after the time limit 124, with all processes of the command ended."""
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
    passed = {
        "loaded": "cannot be loaded" not in told and code != 2,
        "ran": not refused and code != 124,
        "right": own == program.code and said and not (program.wrong and re.search(program.wrong, text)),
    }
    order = ("error", "incomplete", "review", "clean", "not checked")
    why = next((line for line in told.splitlines() if "cannot" in line or "error" in line), "")
    return {
        "reached": ["built", *itertools.takewhile(passed.get, passed)][-1],
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
    parser.add_argument("--manifest", type=Path, default=MANIFEST)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    _, programs = manifest(options.manifest)
    rows = known_rows(options.table)
    for program in programs:
        orders = [o for o in options.orders.split(",") if options.again or (program.name, o) not in rows]
        if not fnmatch.fnmatch(program.name, options.only) or not orders:
            continue
        for row in runs(program, options.folder, orders):
            rows[row["name"], row["order"]] = row
            write_table(options.table, rows)
            print(
                " ".join(f"{column}={row.get(column)}" for column in COLUMNS),
                flush=True,
            )
    print(summary(list(rows.values())))


def runs(program: Program, folder: Path, orders: list[str]) -> Iterator[dict]:
    """One row for each order; the same row for all if the program has not been built."""
    built = (folder / program.name).resolve()
    for order in orders:
        row = run(program, built, order) if built.exists() else {"reached": "", "why": "not built"}
        yield {"name": program.name, "order": order} | row


def known_rows(table: Path) -> dict[tuple[str, str], dict]:
    """The rows of a table by (name, order)."""
    if not table.exists():
        return {}
    return {
        (row["name"], order): row | {"order": order, "seconds": seconds}
        for row in csv.DictReader(io.StringIO(packed.read(table), newline=""))
        for order, seconds in zip(*(row[c].split(" ") for c in SHARED), strict=True)
    }


def write_table(table: Path, rows: dict[tuple[str, str], dict]) -> None:
    alike: dict[tuple[str, ...], list[dict]] = {}
    for key in sorted(rows):
        told = {column: str(rows[key].get(column, "")) for column in COLUMNS}
        alike.setdefault(tuple(told[c] for c in COLUMNS if c not in SHARED), []).append(told)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for told in alike.values():
        joined = {column: " ".join(row[column] for row in told) for column in SHARED}
        writer.writerow(told[0] | joined)
    packed.write(table, text.getvalue())


def summary(rows: list[dict]) -> str:
    """`60 programs of 9 sources: 60 load, 58 run, 58 right in both orders, 0 accused`."""
    names = {row["name"] for row in rows}
    by_name = {name: [row for row in rows if row["name"] == name] for name in names}
    least = [min(STAGES.index(row["reached"]) for row in mine) for mine in by_name.values()]
    loaded, ran, right = (sum(n >= STAGES.index(stage) for n in least) for stage in STAGES[-3:])
    accused = sum(any(int(row.get("accusations") or 0) for row in mine) for mine in by_name.values())
    sources = {name.split("/")[0] for name in names}
    return (
        f"{len(names)} programs of {len(sources)} sources: {loaded} load, {ran} run, "
        f"{right} right in every order, {accused} accused"
    )


if __name__ == "__main__":
    main()
