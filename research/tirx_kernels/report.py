"""`python report.py ROWS [--manifest FILE]`: counts of a study, and its manifest: one row a kernel.

ROWS is the folder that run.py filled. The manifest holds no PTX, but the SHA-256 of each.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

from catalogue import entries

SHOWN = 4  # findings of a kernel in the manifest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--manifest", type=Path)
    args = parser.parse_args()
    found = [row(entry, args.rows) for entry in entries() if entry.arch]
    if args.manifest:
        args.manifest.write_text(json.dumps(found, indent=1) + "\n")
    for line in summary(found):
        print(line)


def read(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def row(entry, rows: Path) -> dict:
    """What is known of one kernel."""
    built, ran = read(rows / "build" / f"{entry.name}.json"), read(rows / "run" / f"{entry.name}.json")
    configs = built.get("configs", [])
    kernels = [k for c in configs for k in c["kernels"]]
    problem = (
        built.get("import") or built.get("crash") or "; ".join(c["error"] for c in configs if "error" in c)
    )
    launches = ran.get("runs", [])
    done = [r for r in launches if r["verdict"]]
    return {
        "kernel": entry.name,
        "arch": entry.arch,
        "attempted": bool(built),
        "configs": [c["label"] for c in configs],
        "ptx": sorted({k["sha256"] for k in kernels}),
        "builds": bool(kernels) and not problem,
        "why not": _without_folders(problem)[:200],
        "lowers": bool(kernels) and not any(k["lowers"] for k in kernels),
        "refused": sorted({k["lowers"][:160] for k in kernels if k["lowers"]}),
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
    lines = []
    for name, chosen in (("sm_100a", [r for r in rows if r["arch"] == "sm_100a"]), ("all", rows)):
        judged = [r for r in chosen if r["ran"] and r["right"] is not None]
        counts = {
            "kernels": len(chosen),
            "attempted": sum(r["attempted"] for r in chosen),
            "give PTX": sum(bool(r["ptx"]) for r in chosen),
            "lower": sum(r["lowers"] for r in chosen),
            "run": sum(bool(r["ran"]) for r in chosen),
            "judged": len(judged),
            "right": sum(bool(r["right"]) for r in judged),
        }
        lines.append(f"{name}: " + ", ".join(f"{v} {k}" for k, v in counts.items()))
        verdicts = Counter(r["verdict"] for r in chosen if r["ran"])
        lines.append("  verdicts: " + ", ".join(f"{v} {k}" for k, v in verdicts.most_common()))
    return lines


if __name__ == "__main__":
    main()
