"""The report page in headless Chromium: the script under the policy, by keyboard, at a phone's width."""

import json
import os
import re
import shutil
import subprocess
from html import escape, unescape

import pytest
from test_report import full_page, timeline

from tirxlab.cli.report.model import Page
from tirxlab.cli.report.page import render
from tirxlab.cli.report.timelines import run_of

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason=f"no Chromium: none of {', '.join(NAMES)} is on PATH"
)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# A user's actions, and what the page then shows; runs after the page's own script.
STEPS = """
<script>
const chart = document.querySelector(".chart"), about = document.querySelector(".about"), seen = {};
const bars = () => chart.querySelectorAll("rect.bar").length;
const press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
const span = () => [...chart.querySelectorAll("text.tick")].map((tick) => tick.textContent).join();
seen.bars = bars(); seen.arrows = chart.querySelectorAll(".arrow").length;
seen.focus = [chart.tabIndex, chart.getAttribute("role"), about.getAttribute("aria-live")];
press("ArrowRight"); seen.first = about.textContent;
press("ArrowUp"); seen.up = about.textContent;
press("Enter"); seen.cause = about.textContent;
press("Backspace"); seen.effect = about.textContent;
for (let i = 0; i < 5; i++) press("+");
seen.zoomed = span(); press("0"); seen.whole = span();
press("a"); press("Escape"); seen.quiet = chart.querySelectorAll(".arrow").length;
const box = chart.getBoundingClientRect(), bar = chart.querySelector("rect.load").getBoundingClientRect();
chart.dispatchEvent(new PointerEvent("pointermove", {pointerType: "mouse", bubbles: true,
  clientX: bar.left + bar.width / 2, clientY: bar.top + 3}));
seen.tip = chart.querySelector(".tip").hidden ? "" : chart.querySelector(".tip").textContent;
seen.wide = [document.documentElement.scrollWidth, window.innerWidth];
const said = document.createElement("pre");
said.id = "seen"; said.textContent = JSON.stringify(seen); document.body.append(said);
</script></body>"""


def dumped(page: str, folder, *options: str) -> tuple[str, str]:
    """(the document after its scripts, what the browser logged)."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    quiet = [
        "--headless",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder / 'profile'}",
    ]
    log = ["--enable-logging=stderr", "--virtual-time-budget=3000", "--dump-dom"]
    command = [CHROMIUM, *root, *quiet, *options, *log, file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def seen(page: Page, folder, width: int = 1200, *options: str) -> dict:
    """The results of STEPS in a frame of this width: a window of Chromium has 500 pixels at least."""
    made = POLICY.sub("", render(page)).replace("</body>", STEPS)  # the policy forbids a test's script, too
    frame = f'<iframe width="{width}" height="640" srcdoc="{escape(made)}"></iframe>'
    take = "document.body.append(document.querySelector('iframe').contentDocument.getElementById('seen'))"
    document, log = dumped(f"{frame}<script>onload = () => {take}</script>", folder, *options)
    assert not log
    return json.loads(unescape(re.search(r'<pre id="seen">(.*?)</pre>', document, re.DOTALL)[1]))


def a_page() -> Page:
    page = Page("Check", "good", "right")
    page.runs = [run_of(timeline(), "step 7", "for k in range(K_TILES):\n    load(k)")]
    return page


def test_the_script_runs_under_the_policy_and_nothing_else_does(tmp_path):
    document, log = dumped(render(full_page("<script>document.title = 'no'</script>")), tmp_path)
    assert log == "" and document.count('class="bar ') == 2 and "<title>no" not in document


def test_the_policy_stops_a_script_that_is_not_the_pages_own(tmp_path):
    made = render(a_page()).replace("</body>", "<script>document.title = 'no'</script></body>")
    document, log = dumped(made, tmp_path)
    assert "<title>no" not in document and "Content Security Policy" in log


@pytest.mark.parametrize("options", [(1200,), (320, "--blink-settings=preferredColorScheme=0")])
def test_the_timeline_is_used_by_keyboard_and_pointer(tmp_path, options):
    said = seen(a_page(), tmp_path, *options)
    assert said["bars"] == 2 and said["arrows"] == 1 and said["quiet"] == 0
    assert said["focus"] == [0, "application", "polite"]
    load, wait = "TMA loads: load: A to tma2mma[0]", "waits for tma2mma[0]"
    assert said["first"].startswith(load) and "line 2: load(k)" in said["first"]
    assert wait in said["up"] and f"ended by {load}" in said["up"] and "line 1: for k" in said["up"]
    assert said["cause"].startswith(load) and wait in said["effect"].splitlines()[0]
    assert said["zoomed"] != said["whole"] and said["tip"].startswith(load)
    assert said["wide"][0] <= said["wide"][1]


def test_a_page_of_hostile_texts_fits_a_phone(tmp_path):
    long = "<b>" + "averylongname" * 30 + "</b>"
    said = seen(full_page(long), tmp_path, 320)
    assert said["wide"][0] <= said["wide"][1] == 320
