"""`python report.py ROWS [--manifest FILE] [--page FILE]`: a study's counts and manifest, one row per kernel.

ROWS is the folder that run.py filled; rows that it lacks stay as in the manifest. The manifest holds no PTX,
but the first DIGITS of the SHA-256 of each; it has each finding's text once, and omits fields that equal
DEFAULTS and, in a second configuration, fields that equal the first's. The page gets counts, a row per kernel
and the findings, each once, between its two marks.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from catalogue import entries

DIGITS = 8  # hexadecimal digits of a hash
SHOWN = 4  # findings of a kernel in the manifest
LENGTH = 200  # characters of a finding
CUT = " .."  # marks a shortened finding
MARKS = ("<!-- rows: begin -->", "<!-- rows: end -->")
RIGHT = {True: "", False: ", wrong numbers", None: ", not judged"}
DEFAULTS: dict[str, object] = {
    "arch": "sm_100a",
    "attempted": True,
    "builds": True,
    "why not": "",
    "lowers": True,
    "refused": [],
    "ran": "",
    "launches": 1,
    "verdict": "",
    "right": True,
    "judged by": "its own test",
    "error": "",
    "findings": [],
}
ALIKE = ("launches", "verdict", "judged by", "findings")  # usually equal in two configurations
_LINES = re.compile(r"\b(PTX )?lines? \d+(?:(?:, | and )\d+)*")
_PLACES = (  # the parts that differ between two findings of one kind
    (re.compile(r" \(line\)| of CTA \d+"), ""),
    (re.compile(r"\b_ptr\w*(?: \+ \d+ B)?"), "_ptr"),
    (re.compile(r"\b\d+\b"), "N"),
    (re.compile(r"\bWG\d\b"), "WG"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--manifest", type=Path)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    before = manifest(args.manifest) if args.manifest else {}
    found = [before.get(e.name, {}) | row(e, args.rows) for e in entries() if e.arch]
    if args.manifest:
        args.manifest.write_bytes(lzma.compress(written(found).encode(), preset=9 | lzma.PRESET_EXTREME))
    if args.page:
        begin, end = MARKS
        head, rest = args.page.read_text().split(begin)
        args.page.write_text(f"{head}{begin}\n{page(found)}\n{end}{rest.split(end)[1]}")
    for line in [*summary(found), *counts("second", seconds(found))]:
        print(line)


def read(path: Path):
    """The JSON in a file, which may be compressed; {} if there is none."""
    if not path.exists():
        return {}
    data = path.read_bytes()
    return json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)


def manifest(path: Path) -> dict[str, dict]:
    """The rows of a manifest by kernel, with all their fields."""
    kept = read(path)
    rows = [_with_findings(row, kept["findings"].__getitem__) for row in kept.get("kernels", [])]
    return {row["kernel"]: filled(row) for row in rows}


def written(rows: list[dict]) -> str:
    """The text of a manifest: findings, then a row per kernel, which refers to them by number."""
    numbers: dict[str, int] = {}
    short = [_with_findings(shortened(r), lambda text: numbers.setdefault(text, len(numbers))) for r in rows]
    parts = {"findings": list(numbers), "kernels": short}
    told = (
        f'"{name}": [\n' + ",\n".join(json.dumps(one, separators=(",", ":")) for one in part) + "\n]"
        for name, part in parts.items()
    )
    return "{\n" + ",\n".join(told) + "\n}\n"


def _with_findings(row: dict, told: Callable) -> dict:
    """A row whose findings, and those of its second configuration, are replaced by `told(finding)`."""
    found = {"findings": [told(f) for f in row["findings"]]} if "findings" in row else {}
    second = {"second": _with_findings(row["second"], told)} if row.get("second") else {}
    return row | found | second


def filled(row: dict) -> dict:
    whole, second = DEFAULTS | row, row.get("second")
    return whole | ({"second": _usual(whole, second) | second} if second else {})


def _usual(first: dict, second: dict) -> dict:
    """The default fields of a second configuration: it ran, with the same outcome as the first."""
    return DEFAULTS | {"ran": second["config"]} | {name: first[name] for name in ALIKE}


def shortened(row: dict) -> dict:
    """The row without the fields that `filled` can restore."""
    short = {k: v for k, v in row.items() if k not in DEFAULTS or v != DEFAULTS[k]}
    if second := row.get("second"):
        usual = _usual(row, second)
        short["second"] = {k: v for k, v in second.items() if k not in usual or v != usual[k]}
    return {"kernel": row["kernel"]} | short


def row(entry, rows: Path) -> dict:
    """The row of one kernel from ROWS."""
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
    """The first finding of each kind and severity, the most serious first."""
    every = [f for r in launches for f in r["findings"]]
    every.sort(key=lambda f: ("error", "incomplete", "review").index(f["severity"]))
    kinds: dict[tuple, str] = {}
    for f in every:
        kinds.setdefault((f["severity"], f["kind"]), plain(f"{f['severity']} {f['kind']}: {f['message']}"))
    return list(kinds.values())[:SHOWN]


def plain(finding: str) -> str:
    """A finding without line numbers, cut as in the manifest: headers of NVRTC move all lines."""
    return _LINES.sub("line", finding)[:LENGTH]


def summary(rows: list[dict]) -> list[str]:
    """Counts, for the kernels for sm_100a and for all."""
    ours = [r for r in rows if r["arch"] == "sm_100a"]
    return [*counts("sm_100a", ours), *counts("all", rows)]


def counts(name: str, rows: list[dict]) -> list[str]:
    """Two lines: how far the kernels came, and the verdicts."""
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
    """The second configurations that were tried, as rows of their own."""
    return [r["second"] | {"kernel": r["kernel"]} for r in rows if r.get("second")]


def page(rows: list[dict]) -> str:
    """Markdown: the counts, a row per kernel, the findings, and what is missing."""
    lines = [f"- {line.strip()}" for line in [*summary(rows), *counts("second", seconds(rows))]]
    numbers, told = numbered(rows)
    known = {(r["kernel"], r["error"]) for r in rows}
    stopped = [(r["kernel"], r["error"]) for r in seconds(rows) if not r["ran"]]
    others = [what for what in stopped if what not in known]
    same = f"{len(stopped) - len(others)} as in the first; others: {grouped(others)}"
    missed = [*missing(rows), f"- Second configuration, not to its end: {same}."]
    return "\n".join([*lines, "", *table(rows, numbers), "", *told, "", *missed])


def numbered(rows: list[dict]) -> tuple[dict[str, int], list[str]]:
    """The number of each first finding's kind, the most frequent first, and a line for each number."""
    firsts = [kind(r["findings"][0]) for r in [*rows, *seconds(rows)] if r["ran"] and r["findings"]]
    whole: dict[str, str] = {}  # a shortened finding is of the kind of one shortened later
    for text in sorted(set(firsts), key=len, reverse=True):
        longer = (w for w in whole.values() if text.endswith(CUT) and w.startswith(text.removesuffix(CUT)))
        whole[text] = next(longer, text)
    counted = Counter(whole[text] for text in firsts).most_common()
    numbers = {text: n for n, (text, _) in enumerate(counted, 1)}
    return (
        {text: numbers[longer] for text, longer in whole.items()},
        [f"{n}. {text} ({count})" for n, (text, count) in enumerate(counted, 1)],
    )


def kind(finding: str) -> str:
    """The first line of a finding without numbers, names of arrays and CTAs."""
    text = plain(finding)
    if len(text) == LENGTH and "\n" not in text:
        text = text.rsplit(" ", 1)[0] + CUT
    text = text.partition("\n")[0]
    for pattern, instead in _PLACES:
        text = pattern.sub(instead, text)
    return text


def table(rows: list[dict], numbers: dict[str, int]) -> list[str]:
    """A line for each kernel that ran: its configurations, verdicts and numbers of first findings."""
    lines = ["| kernel | configuration | verdict | second configuration | verdict |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [cell for one in (row, row.get("second")) for cell in _told(one, numbers)]
        if any(cells):
            lines.append("| " + " | ".join([row["kernel"], *cells]) + " |")
    return lines


def _told(row: dict | None, numbers: dict[str, int]) -> tuple[str, str]:
    if not row or not row["ran"]:
        return "", ""
    number = f" {numbers[kind(row['findings'][0])]}" if row["findings"] else ""
    return row["ran"], f"{row['verdict']}{number}{RIGHT[row['right']]}"


def missing(rows: list[dict]) -> list[str]:
    without = [r for r in rows if not r["ptx"]]
    unrun = [r for r in rows if r["ptx"] and not r["ran"]]
    groups = {
        "Attempted, no PTX": [(r["kernel"], r["why not"] or "nothing was compiled") for r in without],
        "PTX that ptxsim refuses": [(r["kernel"], plain(r["refused"][0])) for r in rows if r["refused"]],
        "Run, and not to its end": [(r["kernel"], r["error"]) for r in unrun if r["error"]],
        "Not run": [(r["kernel"], "") for r in unrun if not r["error"]],
    }
    return [f"- {name}: {grouped(found)}." for name, found in groups.items()]


def grouped(found: list[tuple[str, str]]) -> str:
    """Kernels with their reasons, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for kernel, reason in found:
        reasons.setdefault(" ".join(reason.split())[:110], []).append(kernel)
    told = [", ".join(kernels) + f" ({reason})" * bool(reason) for reason, kernels in reasons.items()]
    return "; ".join(told) or "none"


if __name__ == "__main__":
    main()
