"""--report: one HTML file that loads nothing, escapes everything, and can be read without its script."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instructor.autograder.points import Grade, StepGrade
from ptxsim.trace.bands import arranged, arrows
from ptxsim.trace.schedule import LOADS, Costs, Event, Lane, Timeline
from tirxlab.cli.common import REFERENCE, ROOT
from tirxlab.cli.report import from_outcomes, from_scores, reading
from tirxlab.cli.report.drawings import roofline_svg, tiles_svg, zoom_svg
from tirxlab.cli.report.model import Card, Cell, Grid, Link, Page, Picture, Point, Roofline, SourceLine
from tirxlab.cli.report.page import render
from tirxlab.cli.report.ring import ring_svg
from tirxlab.cli.report.timelines import encoded, run_of
from tirxlab.cli.runs import Outcome
from tirxlab.explain.mismatch_map import mismatch_map
from tirxlab.steps import sections

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}\"'&\u2028</pre>"
VOID = {"meta", "img", "br", "link", "input", "hr"}
LOADS_FROM = {"src", "srcset", "data", "poster", "action", "formaction", "background", "xlink:href"}


class Reader(HTMLParser):
    """Elements with their attributes; raises where tags do not nest."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text, self.scripts = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] in ("script", "style") else self.text).append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())

    def named(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.elements if name == tag]


def timeline(name: str = "tma2mma[0]") -> Timeline:
    lanes = [Lane(0, "warp 0", f"warp 0 {name}", ("TMA",), 0.1, 0.9, {name: 90}), Lane(0, LOADS, LOADS, ())]
    load = Event(0, LOADS, "load", f"A to {name}", 512, begin=0, end=99, line=2)
    wait = Event(0, "warp 0", "wait", name, after=[0], phase=0, begin=1, end=99, line=1)
    return Timeline([load, wait], lanes, 99, Costs(), True)


def full_page(text: str) -> Page:
    """A page with `text` in place of every text."""
    wrong = np.zeros((256, 384), bool)
    wrong[3:9, 130:200] = True
    outcome = Outcome(5, "512", "sim", text, False, text, 1.0, text, mismatch=text)
    outcome.wrong = mismatch_map(wrong, wrong & (np.arange(384) < 150))
    link = Link(text, "docs/steps/step05.md")
    card = Card(text, text, text, text, text, [text], text, [SourceLine(3, text, True)], [link])
    return Page(
        text, "bad", text, [(text, text)], [Grid(text, [text], [[Cell(text, "bad")]])], [card],
        from_outcomes.wrong_maps([outcome]), [run_of(timeline(text), text, f"{text}\n{text}")],
        [Picture(text, text, f"<svg>{text}</svg>")],
        Roofline(text, 2250, 8.0, [Point(text, 700.0, 1400.0, 1500.0), Point(text, 90.0, 300.0)], text),
        [text], [link],
    )  # fmt: skip


def policy_of(page: Reader) -> str:
    (found,) = [m["content"] for m in page.named("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    return found


def test_hostile_text_stays_text():
    made = render(full_page(HOSTILE))
    page = Reader(made)
    assert len(page.named("script")) == 2  # the data and the page's own
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    assert all(attributes["src"].startswith("data:image/svg+xml;base64,") for attributes in page.named("img"))
    assert "alert(1)" in page.said and "49" not in page.said.replace("{{ 7 * 7 }}", "")
    data = json.loads(next(text for text in page.scripts if text.startswith("[{")))
    assert HOSTILE in data[0]["texts"] and data[0]["lines"]["1"].startswith("</script>")


@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_any_text_gives_a_page_that_nests(text):
    page = Reader(render(full_page(text)))
    assert len(page.named("script")) == 2 and len(page.named("svg")) == 3


def test_a_page_loads_nothing_and_lets_nothing_else_run():
    made = render(full_page("x"))
    page = Reader(made)
    for tag, attributes in page.elements:
        for name in LOADS_FROM & set(attributes):
            assert attributes[name].startswith("data:image/svg+xml"), (tag, name)
        assert tag not in ("link", "iframe", "object", "embed", "base", "form"), tag
        assert "style" not in attributes  # the policy would drop it
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", made)
    assert policy_of(page).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy_of(page)


def hanging() -> Outcome:
    outcome = Outcome(5, "512", "sim", "program", None, "error", 1.0, "error: deadlock: it hangs")
    outcome.findings = [finding("deadlock", 3)]
    return outcome


def test_what_a_mailed_page_links_to_is_in_it():
    page = from_outcomes.outcome_page("Check", "./lab check 5", REFERENCE, [hanging()])
    made = Reader(render(page))
    places = {attributes["id"] for _, attributes in made.elements if "id" in attributes}
    leads = {attributes["href"] for attributes in made.named("a")}
    assert {"#read-docs-debugging-md-deadlocks"} <= leads <= {"#" + place for place in places}
    assert {"read-docs-steps-step05-md", "read-docs-handbook-md-what-orders-what"} <= places
    assert "phase that never completes" in made.said  # of docs/debugging.md
    assert "mermaid" not in made.said and "<!--" not in made.said


def test_every_section_that_a_report_may_name_is_there():
    names = [reading.MEANING[1], reading.NUMBERS[1], *[anchor for _, anchor in reading.SECTIONS.values()]]
    text = (ROOT / "docs" / "debugging.md").read_text()
    for name in names:
        part = reading.section(text, name)
        assert part.strip() and "\n## " not in part
    with pytest.raises(KeyError):
        reading.section(text, "no-such-section")


def waits(who: str, what: str) -> dict:
    return {"who": who, "line": 7, "for": what, "state": "it is in phase 0, 0/1 arrived", "kind": "mbarrier"}


@pytest.mark.parametrize("count", range(1, 8))
def test_a_ring_of_waits_is_drawn_with_its_last_arrow_back(count):
    names = [f"WG{n} (a role with a long name, as clusters have them, {HOSTILE})" for n in range(count)]
    outcome = hanging()
    ring = {"waits": [waits(who, f"{who}'s barrier") for who in names], "cycle": names, "cause": "ring"}
    outcome.findings[0]["evidence"] = ring
    page = from_outcomes.outcome_page("Check", "./lab check 5", REFERENCE, [outcome])
    (card,) = page.cards
    assert [one.who for one in card.ring] == names
    made = ring_svg(card.ring)
    Reader(made)
    assert made.count('class="group"') == made.count('class="back"') == count and "<script" not in made
    rows = [int(y) for y in re.findall(r'<text class="[a-z-]+" x="\d+" y="(\d+)"', made)]
    assert all(b - a >= 13 for a, b in zip(rows, rows[1:], strict=False))  # no two lines of text overlap
    assert rows[-1] < int(re.search(r'height="(\d+)" role', made)[1])


def test_a_deadlock_without_a_ring_draws_none():
    page = from_outcomes.outcome_page("Check", "./lab check 5", REFERENCE, [hanging()])
    assert page.cards[0].ring == [] and 'ring-of-waits"' not in render(page)


def finding(kind: str, line: int, severity: str = "error") -> dict:
    about = {"kind": kind, "severity": severity, "message": f"{kind} happened", "hint": "look there"}
    return about | {"where": {"line": line}, "evidence": {}, "count": 2}


def test_a_finding_shows_the_lines_around_its_own():
    outcome = Outcome(5, "512", "sim", "adverse", False, "error", 1.0, "error: race: ..")
    outcome.findings = [finding("race", 40), finding("deadlock", 41), finding("mbarrier", 42)]
    page = from_outcomes.outcome_page("Check", "./lab check 5", REFERENCE, [outcome])
    (card,) = page.cards
    assert (card.severity, card.kind, card.message) == ("error", "race", "race happened (2 accesses)")
    assert [line.number for line in card.source] == list(range(37, 44))
    (marked,) = [line for line in card.source if line.marked]
    assert marked.text == REFERENCE.read_text().splitlines()[39].strip() and marked.number == 40
    assert card.also == ["deadlock: deadlock happened (line 41)", "mbarrier: mbarrier happened (line 42)"]
    page = Reader(render(page))
    assert "race happened (2 accesses)" in page.said and "0 of 1 runs right" in page.said


def test_the_same_message_at_another_size_is_told_once():
    made = [
        Outcome(5, size, "sim", "program", False, "error", 1.0, f"D is wrong at {size}")
        for size in ("128", "256")
    ]
    page = from_outcomes.outcome_page("Check", "./lab check 5", REFERENCE, made)
    assert len(page.cards) == 1 and len(page.grids[0].rows) == 2


# ---- where D is wrong ----


@settings(max_examples=30)
@given(st.integers(1, 700), st.integers(1, 700), st.integers(0, 2**32 - 1))
def test_a_map_counts_every_wrong_element_once(rows, columns, seed):
    random = np.random.default_rng(seed)
    wrong = random.random((rows, columns)) < random.choice([0.001, 0.5])
    wrong[random.integers(rows), random.integers(columns)] = True
    unwritten = wrong & (random.random((rows, columns)) < 0.5)
    found = mismatch_map(wrong, unwritten)
    assert sum(map(sum, found.counts)) == wrong.sum() and sum(map(sum, found.unwritten)) == unwritten.sum()
    part = np.array([list(map(int, row)) for row in found.zoom])
    r, c = found.zoom_row, found.zoom_column
    here = np.s_[r : r + part.shape[0], c : c + part.shape[1]]
    assert ((part > 0) == wrong[here]).all() and ((part == 2) == unwritten[here]).all() and part.any()


def test_a_large_map_stays_small():
    wrong = np.ones((16384, 16384), bool)
    found = mismatch_map(wrong, ~wrong)
    assert len(found.counts) == 64 and found.cell == 256 and len(found.zoom) == 128
    assert len(tiles_svg(found)) < 1_000_000
    board = np.indices((128, 128)).sum(0) % 2 == 0
    assert len(zoom_svg(mismatch_map(board, ~board & False))) < 400_000


def test_the_map_of_a_run_is_kept_and_json_does_not_grow(run, tmp_path):
    parts = sections(REFERENCE.read_text())
    parts[3] = parts[3].replace("range(K_TILES)", "range(K_TILES - 1)", 1)
    file, target = tmp_path / "gemm_kernels.py", tmp_path / "page.html"
    file.write_text("".join(parts.values()))
    size = ["--size", "256x128x192"]
    status, out, err = run("check", "3", "--kernels", str(file), *size, "--json", "--report", str(target))
    assert status == 1 and "report written to" in err.replace("\n", " ")
    (one, *_) = json.loads(out)["runs"]
    assert "wrong" not in one and "mismatch" not in one and one["right"] is False
    page = Reader(render_target(target))
    assert "lacks K tile 2" in page.said and "step 3 at 256x128x192" in page.said
    assert len(page.named("svg")) == 2 and len(page.named("script")) == 2


def render_target(path) -> str:
    return path.read_text(encoding="utf-8")


# ---- timelines and roofline ----


def test_a_timeline_keeps_its_bars_arrows_and_source_lines():
    made = timeline()
    data = encoded(made, arranged(made), "first\nsecond")
    assert [bar[:4] for bar in data["bars"]] == [[1, 0, 0, 99], [0, 0, 1, 99]]
    assert data["arrows"] == [[0, 1]] and len(arrows(made)) == 1
    assert data["lines"] == {1: "first", 2: "second"} and data["left_out"] == 0


def test_a_long_timeline_is_cut_and_says_so():
    events = [Event(0, LOADS, "load", "A", begin=i, end=i + 1) for i in range(50)]
    made = Timeline(events, [Lane(0, LOADS, LOADS, ())], 50, Costs(), True)
    data = encoded(made, arranged(made), "", most=20)
    assert len(data["bars"]) == 20 and data["left_out"] == 30
    assert max(bar[2] for bar in data["bars"]) == 19


def test_a_roofline_places_a_compute_bound_kernel_right_of_the_ridge():
    roof = Roofline("B200", 2250, 8.0, [Point("step 8", 1000.0, 991.0, 990.0), Point("step 1", 10.0, 3.0)])
    made = roofline_svg(roof)
    dots = [tuple(map(float, m)) for m in re.findall(r'class="dot" cx="([\d.]+)" cy="([\d.]+)"', made)]
    ridge = float(re.search(r'class="roof" d="M[\d.,]+ L([\d.]+),', made)[1])
    assert dots[0][0] > ridge > dots[1][0] and dots[0][1] < dots[1][1] and made.count('class="ring"') == 1


def test_predict_writes_a_page_with_a_roofline_and_nanoseconds(run, tmp_path):
    target = tmp_path / "page.html"
    arguments = ["predict", "4", "512", "--kernels", str(REFERENCE), "--report", str(target)]
    status, out, _ = run(*arguments)
    page = Reader(target.read_text(encoding="utf-8"))
    assert status == 0 and out.split(" ms,")[0].split()[-1] in page.said
    assert "predicted, not measured" in page.said and "Critical path" in page.said
    dots = [circle for circle in page.named("circle") if circle["class"] == "dot"]
    assert len(dots) == 1 and "TB/s" in page.said
    data = json.loads(next(text for text in page.scripts if text.startswith("[{")))
    assert data[0]["unit"] == "ns" and data[0]["arrows"]


# ---- grades ----


def test_a_grade_page_says_no_more_than_the_terminal():
    step = StepGrade(5, "Pipelining", 10, "wrong", hints=["wrong at a size that the course keeps to itself"])
    step.runs = [{"size": "4097x13x77", "seed": 987654321, "order": "adverse"}]
    grade = Grade("ada", "f" * 64, "0.1.0", "sim", [step], artifacts={"step5-4097x13x77.lab": b""})
    text = "5 0 / 8\n0 of 8 points"
    made = render(from_scores.grade_page(grade, text))
    page = Reader(made)
    assert "0 of 8 points" in page.said and "keeps to itself" in page.said
    assert not re.search("4097|987654321|adverse", made)


@pytest.mark.parametrize("name, words", [("x.pdf", "must end in .html"), ("no/x.html", "there is no folder")])
def test_a_page_that_cannot_be_written_is_said_before_any_run(run, tmp_path, name, words):
    for command in (["check", "1"], ["score"], ["demo"], ["grade", str(REFERENCE)]):
        status, out, err = run(*command, "--report", str(tmp_path / name))
        assert status == 2 and words in err and err.count("\n") == 1 and out == ""
