"""Refreshes the findings shown in README and docs: runs `./lab check --no-trials` on the mistake each names.

    python instructor/figures/findings.py [NAME ..]       only these; no name: all

A place in a page is `<!-- finding: NAME -->`, with or without a fenced block after it; NAME is a bug of
instructor/tests/bugs. The block becomes what the command prints about the reference with that one mistake
in it: the finding that the corpus expects, and "..." for others before and after it. If the simulator reports
something else, the block is removed, so that no page shows what is not printed, and the exit status is 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "instructor" / "tests" / "bugs"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACE = r"<!-- finding: ({}) -->\n(?:```text\n.*?```\n)?"  # of one name
SECONDS = 300  # for one run
LINES = 14  # shown for one mistake


def all_bugs() -> dict[str, object]:
    """The corpus by name."""
    sys.path.insert(0, str(CORPUS))
    from corpus import BUGS

    return BUGS


def said_about(bug) -> str:
    """The expected finding, out of what `./lab check` prints about the bug; "" if it is not there."""
    from corpus import bug_source

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gemm_kernels.py"
        file.write_text(bug_source(bug))
        size = "x".join(map(str, bug.size))
        command = [sys.executable, "-m", "tirxlab.cli", "check", str(bug.step), "--size", size]
        command += ["--order", str(bug.order), "--kernels", str(file), "--device", "sim", "--no-trials"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    if "Traceback" in done.stderr or done.returncode not in (0, 1):
        sys.exit(f"{bug.name}: {' '.join(command)} does not run:\n{done.stderr[-2000:]}")
    lines = [line[2:] for line in done.stdout.splitlines() if line.startswith("  ")]
    expected = f"{bug.severity}: {bug.kind}: ", f"also: {bug.kind}: "
    of_kind = [i for i, line in enumerate(lines) if line.startswith(expected)]
    named = [i for i in of_kind if bug.names in lines[i]] or of_kind  # in TIRX words the name may be another
    start = named[0] if named else None
    if start is None:
        return ""
    begins = [
        i for i, line in enumerate(lines) if re.match(r"(error|review|incomplete|also): |\d+ of \d+ ", line)
    ]
    end = min([i for i in begins if i > start], default=len(lines))
    return "...\n" * (begins[0] < start) + shown(lines[start:end]) + "...\n" * (end < len(lines))


def shown(lines: list[str]) -> str:
    """LINES lines or so, none of them longer than a screen is wide, without the solution's own text."""
    lines = [re.sub(r"^(\s*at gemm_kernels\.py:\d+): .*", r"\1: ...", line) for line in lines]
    folded = [
        part
        for line in lines
        for part in textwrap.wrap(line, 116, subsequent_indent=" " * (indent(line) + 4)) or [""]
    ]
    if len(folded) > LINES:  # the first lines, and all of the hint
        hint = next((i for i, line in enumerate(folded) if line.startswith("  hint: ")), len(folded))
        folded = [*folded[: LINES - len(folded) + hint], "  ...", *folded[hint:]]
    return "\n".join(folded) + "\n"


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def refresh(page: Path, bugs: dict, names: list[str]) -> list[str]:
    """Runs the mistakes that a page names and rewrites the page; returns those not reported as expected."""
    failed = []
    for name in re.findall(PLACE.format(r"[\w-]+"), page.read_text(), re.DOTALL):
        if names and name not in names:
            continue
        said = said_about(bugs[name])
        failed += [] if said else [name]
        print(f"{page.relative_to(ROOT)}: {name}: {'refreshed' if said else 'NOT AS EXPECTED'}", flush=True)
        block = f"<!-- finding: {name} -->\n" + (f"```text\n{said}```\n" if said else "")
        text = re.sub(PLACE.format(name), block.replace("\\", r"\\"), page.read_text(), flags=re.DOTALL)
        page.write_text(text)
    return failed


def main(names: list[str]) -> int:
    bugs = all_bugs()
    failed = [name for page in PAGES for name in refresh(page, bugs, names)]
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
