"""The table of the Gluon kernels in README.md, from what each tool printed.

python -m research.referee.gluon_page PTXSIM CONSAN ALONE     files with the lines of gluon.py's commands
python -m research.referee.gluon_page                         rewrites the table from results/gluon.json.xz
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from research import packed

HERE = Path(__file__).parent
KEPT = HERE / "results" / "gluon.json.xz"
TOOLS = ("ptxsim", "consan", "alone")
_PLACE = re.compile(r"(<!-- gluon: begin -->\n).*(<!-- gluon: end -->)", re.S)


def merged(files: list[Path]) -> dict[str, dict[str, dict]]:
    """case -> tool -> its row; raises ValueError if a tool lacks a case."""
    rows = [dict(line_item for line in _lines(path) for line_item in line.items()) for path in files]
    if len({frozenset(row) for row in rows}) != 1:
        raise ValueError("the files do not contain the same cases")
    return {case: {tool: row[case] for tool, row in zip(TOOLS, rows, strict=True)} for case in rows[0]}


def _lines(path: Path):
    return (json.loads(line) for line in path.read_text().splitlines() if line.startswith("{"))


def found(tool: str, row: dict) -> bool:
    """Whether the tool reported something; a wrong result or a launch that hangs is not a report."""
    return row["verdict"] == "error" if tool == "ptxsim" else bool(row["said"])


def table(cases: dict[str, dict[str, dict]]) -> str:
    right = [rows for case, rows in cases.items() if case.endswith(": none")]
    wrong = [rows for case, rows in cases.items() if not case.endswith(": none")]
    words = [
        f"{name} finds {sum(found(tool, rows[tool]) for rows in wrong)}, "
        f"false alarms {sum(found(tool, rows[tool]) for rows in right)}"
        for tool, name in (("ptxsim", "ptxsim"), ("consan", "ConSan"))
    ]
    lines = [f"{len(wrong)} mistakes in {len(right)} kernels: {'; '.join(words)}.", ""]
    lines += ["| kernel | planted mistake | ptxsim | first finding | Triton ConSan | H200 alone |"]
    lines += ["|" + "---|" * 6]
    last = ""
    for case, rows in cases.items():
        kernel, _, mistake = case.partition(": ")
        ours, theirs, chip = rows["ptxsim"], rows["consan"], rows["alone"]
        said = theirs["said"][:55] or ("nothing; it never ended" if theirs["result"] == "hung" else "nothing")
        did = "the launch fails" if chip["result"] == "failed" else chip["result"]
        first = ours["said"].partition("\n")[0][:55]
        cells = ("" if kernel == last else kernel, mistake, ours["verdict"], first, said, did)
        last = kernel
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """README.md's text with the new table."""
    new = table(json.loads(packed.read(KEPT)))
    return _PLACE.sub(lambda m: f"{m[1]}{new}\n{m[2]}", text)


def main(*files: str) -> None:
    if files:
        packed.write(KEPT, json.dumps(merged([Path(f) for f in files]), indent=1))
    readme = HERE / "README.md"
    readme.write_text(page(readme.read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])
