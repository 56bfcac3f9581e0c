"""What `check` found, for editors and CI: lines in gcc's format, GitHub annotations, or SARIF."""

from __future__ import annotations

import re
from pathlib import Path

from ptxsim import Finding
from tirxlab.cli.common import UserError
from tirxlab.cli.outcomes import numberless
from tirxlab.cli.runs import Outcome
from tirxlab.steps import sections

FORMATS = ("text", "gcc", "github", "sarif")
_PLACE = re.compile(r"^[^:\n]+\.py:(\d+): (.+)$", re.MULTILINE)


def check_format(name: str) -> str:
    if name not in FORMATS:
        raise UserError(f"--format takes {', '.join(FORMATS)} (got {name!r})")
    return name


def findings(outcomes: list[Outcome], path: Path) -> list[Finding]:
    """The distinct findings of some runs, with build failures and wrong results; each with a line number."""
    made: dict[tuple, Finding] = {}
    for outcome in outcomes:
        for one in _of(outcome, path):
            made.setdefault((one.kind, one.where["source_line"], numberless(one.message)), one)
    return list(made.values())


def _of(outcome: Outcome, path: Path) -> list[Finding]:
    at = f"step {outcome.step} at {outcome.size}, order {outcome.order}"
    if outcome.verdict == "not built":
        places = _PLACE.findall(outcome.message) or [("1", outcome.message.split("\n")[0])]
        return [_finding("build", "error", said, "", int(line), path) for line, said in places]
    found = [
        _finding(f["kind"], f["severity"], f["message"], f["hint"], f["where"].get("line") or 1, path)
        for f in outcome.findings
    ]
    if outcome.right is False and not any(one.severity == "error" for one in found):
        said = f"{outcome.mismatch.splitlines()[0] if outcome.mismatch else outcome.message} ({at})"
        found.append(_finding("result", "error", said, "", _def_line(path, outcome.step), path))
    return found


def _finding(kind: str, severity: str, message: str, hint: str, line: int, path: Path) -> Finding:
    return Finding(kind, severity, message, hint, {"source_file": str(path), "source_line": line}, {})


def _def_line(path: Path, step: int) -> int:
    before, text = "", path.read_text(encoding="utf-8")
    for number, part in sections(text).items():
        if number == step:
            return before.count("\n") + 1
        before += part
    return 1


def gcc(findings: list[Finding]) -> str:
    """`file:line:1: error: race: ...` and a note with the hint, as problem matchers expect."""
    lines = []
    for one in findings:
        where = f"{one.where['source_file']}:{one.where['source_line']}:1"
        level = {"error": "error", "review": "warning"}.get(one.severity, "note")
        lines.append(f"{where}: {level}: {one.kind}: {' '.join(one.message.split())}")
        if one.hint:
            lines.append(f"{where}: note: {' '.join(one.hint.split())}")
    return "\n".join(lines)


def rendered(name: str, outcomes: list[Outcome], path: Path) -> str:
    """The text in one of FORMATS other than the first."""
    from ptxsim import rendering as machine
    from tirxlab.version import lab_version

    found = findings(outcomes, path)
    if name == "gcc":
        return gcc(found)
    return (
        machine.github(found, str(path))
        if name == "github"
        else machine.sarif(found, str(path), lab_version())
    )
