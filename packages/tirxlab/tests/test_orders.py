"""One table of what orders what: the handbook, the slides and the bug corpus agree with it."""

import csv
import re
from pathlib import Path

import pytest
from corpus import BUGS

from instructor.figures.tables import FIGURES
from tirxlab.explain.orders import load_orders, markdown

ROOT = Path(__file__).resolve().parents[3]
ORDERS = load_orders()
# Rows without a mistake: in no step do threads read what TMA loaded; the last row needs nothing in between.
WITHOUT_MISTAKE = {
    ("TMA load writes SMEM", "threads read it"),
    ("tensor core writes TMEM", "tensor core adds to it"),
}


def test_the_handbook_shows_the_table():
    text = (ROOT / "docs" / "handbook.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- orders: begin -->\n(.*?)\n<!-- orders: end -->", text, re.DOTALL)
    assert shown == markdown()


def test_the_slides_show_the_table():
    file = ROOT / "slides" / "figures" / "orders.csv"
    assert file.read_text(encoding="utf-8") == FIGURES["orders.csv"]()
    with file.open(encoding="utf-8", newline="") as rows:
        assert list(csv.reader(rows)) == [[o.first, o.then, o.between] for o in ORDERS]
    slices = re.findall(
        r"#orders\((\d+), (\d+)\)", (ROOT / "slides" / "lecture1.typ").read_text(encoding="utf-8")
    )
    assert [row for a, b in slices for row in range(int(a), int(b))] == list(range(len(ORDERS)))


def test_no_two_rows_are_about_the_same():
    pairs = [(order.first, order.then) for order in ORDERS]
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: f"{order.first} - {order.then}")
def test_the_simulator_reports_who_leaves_out_a_part(order):
    """The corpus runs each of these mistakes and requires its finding
    (instructor/tests/bugs/test_bugs.py).
    """
    assert set(order.left_out) <= set(BUGS)
    assert {BUGS[name].severity for name in order.left_out} <= {"error", "review"}
    assert bool(order.left_out) != ((order.first, order.then) in WITHOUT_MISTAKE)
