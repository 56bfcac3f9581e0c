"""ptxsim is independent: its package contains no word of the course, of its language or of its commands."""

from __future__ import annotations

import re

import pytest
from test_layers import ROOT

PACKAGE = ROOT / "packages" / "ptxsim" / "src" / "ptxsim"
WORDS = re.compile(
    r"\bTx\.|PipelineState|\bLAB_|\./lab\b|student|handout|\bcourse\b|gemm_kernels|(?i:\btirx)|\btirxlab|"
    r"move_to_next_stage|next_tile\(|remote_view|proxy_async|warpgroup_sync|\bwg_id|\bcta_id\(|init\(is_"
)
KERNELS = re.compile(r"\bc(ta|luster)_sync\b")  # the course's names for barriers; of events in traces for now
FILES = [
    p for p in sorted(PACKAGE.rglob("*")) if p.suffix in (".py", ".pyi", ".c", ".h", ".md")
]  # tables cite their sources


def test_the_package_speaks_of_no_course():
    found = {}
    for file in FILES:
        of_events = file.parts[len(PACKAGE.parts)] in ("trace", "timing")
        found[file.name] = [match[0] for match in WORDS.finditer(file.read_text(encoding="utf-8"))]
        found[file.name] += [] if of_events else KERNELS.findall(file.read_text(encoding="utf-8"))
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("text", ["Tx.copy(dst, src)", "$LAB_JOBS", "run ./lab check", "cta_sync()", "TIRX"])
def test_such_a_word_is_seen(text):
    assert WORDS.search(text) or KERNELS.search(text)
