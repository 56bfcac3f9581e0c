"""Reads the project's pages: their commands, programs, inline commands, links, headings and findings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
STUDENTS = ("docs/handbook.md", "docs/steps/", "docs/debugging.md")  # pages that belong to the handout
ELSEWHERE = {"--device cuda": "cuda", "--scheduler": "dask"}  # part of a command: what it needs
SHELL = ("", "sh", "bash", "shell", "console")  # languages of blocks that may hold commands
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_FINDING = re.compile(r"<!-- finding: ([\w-]+) -->\n(?:```text\n(.*?)```\n)?", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_OURS = re.compile(r"([A-Z_]+=\S+ +)*(\./lab|python|python3|pytest|\.venv/bin/(python|pytest))( |$)")


@dataclass(frozen=True)
class Command:
    """A line that a page tells its reader to type, as it is written there."""

    page: str  # relative to ROOT
    text: str

    @property
    def kind(self) -> str:
        """run, cuda, modal or dask; "" for a line that is not about this project (git clone, docker, ...).

        In the project's own pages `./lab test` is the command that runs these tests; they cannot run it.
        """
        if not self.student and self.text in ("./lab test", "./lab test --all"):
            return ""
        if re.search(r"\bmodal (run|setup)\b", self.text):
            return "modal"
        if not _OURS.match(self.text):
            return ""
        return next((kind for part, kind in ELSEWHERE.items() if part in self.text), "run")

    @property
    def student(self) -> bool:
        return self.page.startswith(STUDENTS)


def pages() -> list[Path]:
    """README, CONTRIBUTING and everything under docs."""
    return [p for p in (ROOT / "README.md", ROOT / "CONTRIBUTING.md") if p.exists()] + sorted(
        (ROOT / "docs").rglob("*.md")
    )


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands() -> list[Command]:
    """All lines of shell blocks, and of README's first block, each text once, handout pages first."""
    found: dict[str, Command] = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        blocks = [body for _, language, body in _FENCE.findall(text) if language in SHELL]
        if page.name == "README.md":
            blocks.append(text.split("\n\n")[0])
        for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#( .*)?$", "", line).strip().removeprefix("$ ")
            if line and not line.startswith("#"):
                found.setdefault(line, Command(name_of(page), line))
    return list(found.values())


def programs() -> list[tuple[str, str]]:
    """(page, text) of the Python blocks that are whole programs: those that begin with utils."""
    return [
        (name_of(page), body)
        for page in pages()
        for _, language, body in _FENCE.findall(page.read_text(encoding="utf-8"))
        if language in ("py", "python") and body.startswith("from utils import")
    ]


def inline_commands() -> list[tuple[str, str]]:
    """(page, text) of each `./lab NAME ...` in running text."""
    return [
        (name_of(page), text)
        for page in pages()
        for text in re.findall(r"`(\./lab [a-z][^`\n]*)`", _prose(page))
    ]


def links(page: Path) -> list[str]:
    """Targets of all links that are not in a block."""
    return _LINK.findall(_prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors of a page: its headings, spelt as GitHub spells them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        same = sum(other == slug or re.fullmatch(rf"{slug}-\d+", other) is not None for other in found)
        found.add(f"{slug}-{same}" if same else slug)
    return found


def findings() -> list[tuple[str, str, str]]:
    """(page, bug, text or "") of each place that shows what the simulator prints."""
    return [
        (name_of(page), bug, said)
        for page in pages()
        for bug, said in _FINDING.findall(page.read_text(encoding="utf-8"))
    ]


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))
