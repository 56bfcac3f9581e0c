"""`ptxsim run --report FILE`: one HTML page without scripts for one launch: verdicts, findings, timeline."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ptxsim.driver.telling import amount
from ptxsim.driver.telling import shape as shape_text
from ptxsim.report.findings import CLEAN, Finding
from ptxsim.report.formats import location
from ptxsim.trace.drawing import svg
from ptxsim.version import VERSION

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  color: #212529; background: #fff }
table { border-collapse: collapse }
td, th { padding: .2rem .8rem; border: 1px solid #ced4da; text-align: left }
pre { background: #f1f3f5; padding: .6rem; overflow-x: auto } .here { background: #ffe066 }
.error { color: #c92a2a } .review { color: #b35c00 } .incomplete { color: #495057 } .clean { color: #2b8a3e }
section { border-left: 4px solid #ced4da; padding-left: 1rem; margin: 1.5rem 0 } .picture { overflow-x: auto }
"""
_AROUND = 3  # lines of the source before and after


def page(file: str, kernel: str, shape: dict, orders: list, results: list, wrong: list[str]) -> str:
    """The page of a launch that ran in one or more orders; `wrong`: one line per array with wrong values."""
    launch = ", ".join(f"{name} {shape_text(shape[name])}" for name in ("grid", "block", "cluster"))
    told = f"{file}: {launch}, {shape['shared_bytes']} B of dynamic shared memory"
    head = f"<h1>{escape(kernel)}</h1><p>{escape(told)}</p>"
    findings = {str(f): f for result in results for f in result.findings}
    parts = [head, verdicts(orders, results), *(f"<p class='error'>{escape(w)}</p>" for w in wrong)]
    parts += [section(f, file) for f in findings.values()]
    parts += [f"<p class='clean'>Clean: {escape(CLEAN)}</p>"] if not findings else []
    timeline = results[0].trace
    if timeline is not None:
        parts.append(f"<h2>First cluster</h2><div class='picture'>{svg(timeline, kernel)}</div>")
    title = f"<meta charset='utf-8'><title>{escape(kernel)}</title><style>{_STYLE}</style>"
    return (
        f"<!doctype html><html lang='en'>{title}<body>{''.join(parts)}<p>ptxsim {VERSION}</p></body></html>\n"
    )


def verdicts(orders: list, results: list) -> str:
    """The table of verdicts, one row per order."""
    rows = "".join(
        f"<tr><td>{order}</td><td class='{r.verdict}'>{r.verdict}</td>"
        f"<td>{amount(r.stats['warp_instructions'])}</td><td>{r.stats['seconds']:.1f} s</td>"
        f"<td>{escape('; '.join(r.notes))}</td></tr>"
        for order, r in zip(orders, results, strict=True)
    )
    names = ("order", "verdict", "warp instructions", "simulated in", "notes")
    return f"<table><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>{rows}</table>"


def section(finding: Finding, file: str) -> str:
    """A finding, with the source lines around it if the file can be read."""
    first, *rest = str(finding).splitlines()
    told = f"<h3 class='{finding.severity}'>{escape(first)}</h3>"
    told += f"<p>{'<br>'.join(escape(line.strip()) for line in rest)}</p>"
    return f"<section>{told}{excerpt(*location(finding, file))}</section>"


def excerpt(path: str, line: int) -> str:
    """The lines of a file around `line`; "" if the file cannot be read."""
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    shown = []
    for number in range(max(line - _AROUND, 1), min(line + _AROUND, len(lines)) + 1):
        text = escape(f"{number:5} {lines[number - 1]}")
        shown.append(f"<span class='here'>{text}</span>" if number == line else text)
    return f"<pre>{chr(10).join(shown)}</pre>"
