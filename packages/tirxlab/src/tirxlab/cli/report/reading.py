"""Pages of the handout inside a report, because a report may be mailed to where there is no lab.

A link of a Page names a file of the lab, or one section of it (`docs/debugging.md#deadlocks`). That text is
put folded at the report's end, without pictures and without links of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tirxlab.cli.common import ROOT
from tirxlab.cli.report.model import Link, Page

# Kind of finding -> (title, section of docs/debugging.md)
SECTIONS = {"deadlock": ("Deadlocks", "deadlocks"), "illegal": ("Crashes", "crashes")}
MEANING = ("What each finding means", "what-each-finding-means")
NUMBERS = ("Wrong numbers", "wrong-numbers")
_MARKS = re.compile(r"<!--.*?-->|</?details>\n?", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>")


@dataclass
class Reading:
    """A page or section, ready for the report."""

    anchor: str
    title: str
    file: str
    html: str


def step_links(steps: list[int]) -> list[Link]:
    """Links to the pages of steps, and to the table that all of them refer to."""
    pages = [Link(f"Step {n}", f"docs/steps/step{n:02}.md") for n in steps]
    return [Link("What orders what", "docs/handbook.md#what-orders-what"), *pages]


def finding_links(kind: str) -> list[Link]:
    """A link to the section of the handout on a kind of finding; "" is a wrong result."""
    title, anchor = NUMBERS if kind == "" else SECTIONS.get(kind, MEANING)
    return [Link(title, f"docs/debugging.md#{anchor}")]


def target(href: str) -> str:
    """The link's address inside the report: for a file of the lab, the anchor of its text."""
    return href if href.startswith("#") else "#read-" + re.sub(r"[^a-z0-9]+", "-", href.lower())


def readings(page: Page) -> list[Reading]:
    """The texts that the links of a page lead to, each once."""
    links = [link for card in page.cards for link in card.links] + page.links
    titles = {link.href: link.text for link in links if not link.href.startswith("#")}
    return [Reading(target(href), title, *_read(href)) for href, title in titles.items()]


def _read(href: str) -> tuple[str, str]:
    """(the file, the text of it or of its section as HTML)."""
    file, _, anchor = href.partition("#")
    text = (ROOT / file).read_text(encoding="utf-8")
    return file, _html(section(text, anchor) if anchor else text)


def section(text: str, anchor: str) -> str:
    """The part of a page below a heading, without the heading. KeyError if there is no such heading."""
    heads = list(re.finditer(r"^(#+) (.*)$", text, re.MULTILINE))
    for number, head in enumerate(heads):
        if slug(head[2]) == anchor:
            ends = (other.start() for other in heads[number + 1 :] if len(other[1]) <= len(head[1]))
            return text[head.end() : next(ends, len(text))]
    raise KeyError(anchor)


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^a-z0-9 -]", "", heading.strip().lower()).replace(" ", "-")


def _html(text: str) -> str:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    for name in ("link_open", "link_close", "image"):
        reader.add_render_rule(name, lambda *_: "")
    tokens = reader.parse(_SUMMARY.sub(r"**\1**", _MARKS.sub("", text)))
    kept = [token for token in tokens if not (token.type == "fence" and token.info == "mermaid")]
    for token in kept:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return reader.renderer.render(kept, reader.options, {})
