"""Machine-readable findings: JSON, SARIF 2.1.0, and GitHub workflow annotations."""

from __future__ import annotations

import json

from ptxsim.report.findings import Finding

_LEVELS = {"error": "error", "review": "warning", "incomplete": "note"}


def plain(finding: Finding) -> dict:
    """A finding as plain data."""
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "hint": finding.hint,
        "count": finding.count,
        "where": {
            k: v for k, v in finding.where.items() if isinstance(v, (str, int, list, tuple, type(None)))
        },
    }


def launches_json(records: list) -> str:
    """All launches of a program, as `exec --json` writes them."""
    launches = [
        {
            "number": r.number,
            "kernel": r.kernel,
            "grid": r.grid,
            "block": r.block,
            "cluster": r.cluster,
            "verdict": r.verdict,
            "findings": [plain(f) for f in r.findings],
            "notes": r.notes,
            "same_as": r.same_as,
            "stats": {k: v for k, v in r.stats.items() if isinstance(v, int | float)},
        }
        for r in records
    ]
    return json.dumps({"launches": launches}, indent=1)


def location(finding: Finding, file: str) -> tuple[str, int]:
    """(file, line) in the source if that is known, else in the PTX."""
    where = finding.where
    if where.get("source_file"):
        return where["source_file"], where["source_line"]
    return file, where.get("ptx_line") or 1


def github(findings: list[Finding], file: str) -> str:
    """`::error file=..,line=..::message`, one line per finding."""
    lines = []
    for finding in findings:
        path, line = location(finding, file)
        text = f"{finding.kind}: {finding.message}".replace("%", "%25").replace("\n", "%0A")
        level = {"error": "error", "review": "warning"}.get(finding.severity, "notice")
        lines.append(f"::{level} file={path},line={line}::{text}")
    return "\n".join(lines)


def sarif(findings: list[Finding], file: str, version: str) -> str:
    """A SARIF log with one run."""
    results = []
    for finding in findings:
        path, line = location(finding, file)
        place = {"artifactLocation": {"uri": path}, "region": {"startLine": line}}
        text = finding.message + (f"\n{finding.hint}" if finding.hint else "")
        results.append(
            {
                "ruleId": finding.kind,
                "level": _LEVELS[finding.severity],
                "message": {"text": text},
                "locations": [{"physicalLocation": place}],
            }
        )
    rules = [{"id": kind} for kind in sorted({finding.kind for finding in findings})]
    driver = {"name": "ptxsim", "version": version, "rules": rules}
    log = {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json"}
    return json.dumps(log | {"runs": [{"tool": {"driver": driver}, "results": results}]}, indent=1)
