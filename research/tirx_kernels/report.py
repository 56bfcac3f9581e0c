"""`python report.py ROWS [--manifest FILE] [--page FILE]`: counts of a study; its manifest, a row a kernel.

ROWS is the folder that run.py filled; what it lacks stays as the manifest has it. The manifest holds no PTX,
but the first DIGITS of the SHA-256 of each. The page gets the counts and tables between its two marks.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

from catalogue import entries

DIGITS = 16  # of a hash, hexadecimal
SHOWN = 4  # findings of a kernel in the manifest
MARKS = ("<!-- {}: begin -->", "<!-- {}: end -->")
RIGHT = {True: "yes", False: "no", None: "not judged"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--manifest", type=Path)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    before = {row["kernel"]: row for row in (read(args.manifest) if args.manifest else [])}
    found = [before.get(e.name, {}) | row(e, args.rows) for e in entries() if e.arch]
    if args.manifest:
        args.manifest.write_text(
            "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in found) + "\n]\n"
        )
    if args.page:
        text = args.page.read_text()
        for name, lines in (("rows", page(found)), ("second rows", second_page(found))):
            begin, end = (mark.format(name) for mark in MARKS)
            head, rest = text.split(begin)
            text = f"{head}{begin}\n{lines}\n{end}{rest.split(end)[1]}"
        args.page.write_text(text)
    for line in [*summary(found), *counts("second", seconds(found))]:
        print(line)


def read(path: Path):
    return json.loads(path.read_text()) if path.exists() else {}


def row(entry, rows: Path) -> dict:
    """What ROWS has of one kernel."""
    built, ran, second = (read(rows / what / f"{entry.name}.json") for what in ("build", "run", "second"))
    return (
        {"kernel": entry.name, "arch": entry.arch}
        | (_built(built) if built else {})
        | (_ran(ran) if ran else {})
        | ({"second": {"config": second["label"]} | _ran(second)} if second else {})
    )


def _built(built: dict) -> dict:
    configs = built.get("configs", [])
    kernels = [k for c in configs for k in c["kernels"]]
    problem = (
        built.get("import") or built.get("error") or "; ".join(c["error"] for c in configs if "error" in c)
    )
    return {
        "attempted": True,
        "configs": [c["label"] for c in configs],
        "ptx": sorted({k["sha256"][:DIGITS] for k in kernels}),
        "builds": bool(kernels) and not problem,
        "why not": _without_folders(problem)[:200],
        "lowers": bool(kernels) and not any(k["lowers"] for k in kernels),
        "refused": sorted({k["lowers"][:160] for k in kernels if k["lowers"]}),
    }


def _ran(ran: dict) -> dict:
    launches = ran.get("runs", [])
    done = [r for r in launches if r["verdict"]]
    return {
        "ran": ran.get("label", "") if done and len(done) == len(launches) else "",
        "launches": len(done),
        "verdict": worst([r["verdict"] for r in done]),
        "right": ran.get("right"),
        "judged by": ran.get("by", ""),
        "seconds": ran.get("seconds", 0),
        "error": _without_folders(ran.get("missing") or ran.get("error", ""))[:200],
        "findings": findings(done),
    }


def _without_folders(text: str) -> str:
    return re.sub(r"/\S*/", "", text)


def worst(verdicts: list[str]) -> str:
    order = ("error", "incomplete", "review", "not checked", "clean")
    return next((v for v in order if v in verdicts), "")


def findings(launches: list[dict]) -> list[str]:
    """The first of each kind and severity, the most serious first."""
    every = [f for r in launches for f in r["findings"]]
    every.sort(key=lambda f: ("error", "incomplete", "review").index(f["severity"]))
    kinds: dict[tuple, str] = {}
    for f in every:
        kinds.setdefault((f["severity"], f["kind"]), f"{f['severity']} {f['kind']}: {f['message'][:240]}")
    return list(kinds.values())[:SHOWN]


def summary(rows: list[dict]) -> list[str]:
    """Counts, of the kernels for sm_100a and of all."""
    ours = [r for r in rows if r["arch"] == "sm_100a"]
    return [*counts("sm_100a", ours), *counts("all", rows)]


def counts(name: str, rows: list[dict]) -> list[str]:
    """Two lines: how far they came, and the verdicts."""
    judged = [r for r in rows if r["ran"] and r["right"] is not None]
    found = {"kernels": len(rows)}
    if name != "second":
        found["attempted"] = sum(r["attempted"] for r in rows)
        found["give PTX"] = sum(bool(r["ptx"]) for r in rows)
        found["lower"] = sum(r["lowers"] for r in rows)
    found |= {
        "run": sum(bool(r["ran"]) for r in rows),
        "judged": len(judged),
        "right": sum(bool(r["right"]) for r in judged),
    }
    verdicts = Counter(r["verdict"] for r in rows if r["ran"])
    return [
        f"{name}: " + ", ".join(f"{v} {k}" for k, v in found.items()),
        "  verdicts: " + ", ".join(f"{v} {k}" for k, v in verdicts.most_common()),
    ]


def seconds(rows: list[dict]) -> list[dict]:
    """The second configurations that were tried, a row each."""
    return [r["second"] | {"kernel": r["kernel"]} for r in rows if r.get("second")]


def page(rows: list[dict]) -> str:
    """Markdown: the counts, a line for each kernel that ran, and what is missing."""
    lines = [f"- {line.strip()}" for line in summary(rows)]
    return "\n".join([*lines, "", *table(rows), "", *missing(rows)])


def second_page(rows: list[dict]) -> str:
    """The same of second configurations."""
    tried = seconds(rows)
    lines = [f"- {line.strip()}" for line in counts("second", tried)]
    stopped = [f"{r['kernel']} ({' '.join(r['error'].split())[:110]})" for r in tried if not r["ran"]]
    return "\n".join([*lines, "", *table(tried), "", f"- Not to the end: {'; '.join(stopped) or 'none'}."])


def table(rows: list[dict]) -> list[str]:
    """A line for each that ran."""
    lines = ["| kernel | configuration | verdict | right | first finding |", "|---|---|---|---|---|"]
    for row in rows:
        if row["ran"]:
            first = " ".join((row["findings"] or [""])[0].replace("|", "/").split())[:150]
            line = f"| {row['kernel']} | {row['ran']} | {row['verdict']} | {RIGHT[row['right']]} | {first} |"
            lines.append(line)
    return lines


def missing(rows: list[dict]) -> list[str]:
    def why(row, text: str) -> str:
        return f"{row['kernel']} ({' '.join(text.split())[:110]})"

    groups = {
        "Attempted, no PTX": [why(r, r["why not"] or "nothing was compiled") for r in rows if not r["ptx"]],
        "PTX that ptxsim refuses": [why(r, r["refused"][0]) for r in rows if r["refused"]],
        "Run, and not to its end": [
            why(r, r["error"]) for r in rows if r["ptx"] and not r["ran"] and r["error"]
        ],
        "Not run": [r["kernel"] for r in rows if r["ptx"] and not r["ran"] and not r["error"]],
    }
    return [f"- {name}: {'; '.join(found) or 'none'}." for name, found in groups.items()]


if __name__ == "__main__":
    main()
