"""./lab show: facts about a kernel, from its artifact and record, and the picture made of them."""

import re
import xml.etree.ElementTree as xml

import numpy as np
import pytest

from ptxsim.trace.schedule import Costs
from tirxlab.cli.common import REFERENCE
from tirxlab.cli.trace_run import traced_run
from tirxlab.explain.picture import draw
from tirxlab.explain.picture import svg as shapes
from tirxlab.explain.picture.facts import structure
from tirxlab.explain.picture.tiles import owners, stored

K = ["--kernels", str(REFERENCE)]
SVG = "{http://www.w3.org/2000/svg}"


def facts_of(step: int, size: tuple[int, int, int]):
    done, artifact = traced_run(REFERENCE, step, size, "program", Costs())
    return structure(artifact, done.trace), artifact


@pytest.fixture(scope="module")
def seven():
    return facts_of(7, (256, 256, 192))


@pytest.fixture(scope="module")
def ten():
    return facts_of(10, (512, 256, 128))


def row(facts, name: str, cta: int = 0):
    """(init, bytes, who signals and how, who waits)."""
    (barrier,) = [b for b in facts.barriers if (b.name, b.cta) == (name, cta)]
    signals = {f"{agent.cta} {agent.name}": how for agent, how in barrier.signals.items()}
    return barrier.slots, barrier.init, barrier.bytes, signals, {f"{a.cta} {a.name}" for a in barrier.waiters}


def test_the_barriers_of_step_7_are_those_of_its_page(seven):
    facts, _ = seven
    signals = {"0 WG1 warp 3": "arrives", "0 TMA loads": "bytes"}
    assert row(facts, "tma2mma") == (2, 1, 32768, signals, {"0 WG1 warp 0"})
    assert row(facts, "mma2tma") == (2, 1, 0, {"0 tensor core": "commit"}, {"0 WG1 warp 3"})
    assert row(facts, "mma2ld") == (1, 1, 0, {"0 tensor core": "commit"}, {"0 WG0"})
    assert row(facts, "ld2mma") == (1, 128, 0, {"0 WG0": "arrives"}, {"0 WG1 warp 0"})


def test_in_step_10_both_ctas_bring_bytes_and_both_write_backs_arrive(ten):
    facts, _ = ten
    slots, init, amount, signals, waiters = row(facts, "tma2mma")
    assert (slots, init, amount) == (4, 1, 2 * (2 * 128 * 64 + 128 * 64) * 2)
    assert signals == {"0 WG2 warp 3": "arrives", "0 TMA loads": "bytes", "1 TMA loads": "bytes"}
    assert waiters == {"0 WG2 warp 0", "0 WG2 warp 1"}
    assert row(facts, "ld2mma")[:2] == (2, 256)
    assert set(row(facts, "ld2mma")[3]) == {"0 WG0", "1 WG0", "0 WG1", "1 WG1"}
    assert row(facts, "mma2tma", 1)[4] == {"1 WG2 warp 3"}


def test_memory_has_its_stages_and_its_swizzle(seven):
    facts, artifact = seven
    blocks = {b.name: b for b in facts.memory}
    assert (blocks["Asmem"].parts, blocks["Asmem"].size, blocks["Asmem"].swizzle) == (
        2,
        2 * 128 * 64 * 2,
        128,
    )
    assert (blocks["Dsmem"].parts, blocks["Dsmem"].swizzle) == (1, 128)
    assert facts.shared_bytes == artifact.shared_bytes


def test_columns_of_tensor_memory_belong_to_their_consumer(ten):
    facts, _ = ten
    found = {(c.cta, c.first, c.count, c.issuer.name) for c in facts.columns}
    one, two = "WG2 warp 0", "WG2 warp 1"
    assert found == {(0, 0, 256, one), (1, 0, 256, one), (0, 256, 256, two), (1, 256, 256, two)}


def test_tiles_are_those_that_a_run_writes():
    _, artifact = facts_of(3, (256, 384, 64))
    A, B = np.ones((256, 64), np.float16), np.ones((384, 64), np.float16)
    assert owners(artifact, {"A": A, "B": B}).tolist() == [[0, 2, 4], [1, 3, 5]]


def test_the_order_of_a_cluster_is_that_of_its_stores():
    """Any cluster: CTA 5 of 148 has a second tile, CTA 147 has none."""
    size = (2048, 1280, 64)
    done, artifact = traced_run(REFERENCE, 6, size, "program", Costs(), cluster=5)
    A, B = np.ones((2048, 64), np.float16), np.ones((1280, 64), np.float16)
    found, order = owners(artifact, {"A": A, "B": B}), stored(done.trace, "D")
    assert set(order) == set(map(tuple, np.argwhere(found == 5).tolist())) and len(order) == 2
    assert found.min() == 0 and found.max() == 147 and (found == 147).sum() == 1
    said = "".join(xml.fromstring(draw.one(draw.tile_panel(found, 1, chosen=5, order=order))).itertext())
    assert "framed: CTA 5" in said and "1." in said and "2." in said and "grey" not in said


def test_cells_that_nobody_writes_are_grey():
    found = np.array([[0, -1], [1, 1]])
    panel = draw.one(draw.tile_panel(found, 2))
    assert "grey: written by nobody" in "".join(xml.fromstring(panel).itertext())


def places_of(root: xml.Element) -> dict[tuple[float, float], str]:
    """Position of each text of a row -> the text; a row that is used again shows it there too."""
    said, named = {}, {g.get("id"): g for g in root.iter(SVG + "g")}
    rows = [(g, 0.0) for g in root.iter(SVG + "g") if (g.get("transform") or "").startswith("translate(0 ")]
    uses = [(named[u.get("href", "")[1:]], float(u.get("y", ""))) for u in root.iter(SVG + "use")]
    for group, below in rows + uses:
        y = float(group.get("transform", "")[len("translate(0 ") : -1]) + below
        said |= {(float(text.get("x", "")), y): text.text for text in group.iter(SVG + "text")}
    return said


def test_rows_that_say_the_same_are_written_once_and_stand_in_each_place():
    board = np.array([[0, 0, 4], [0, 0, 4], [1, 1, 4], [0, 0, 4]])
    said = {cell: int(cluster) for cell, cluster in np.ndenumerate(board)}
    made = shapes.document(90, 120, shapes.labels(10, 0, 20, said, 10))
    wanted = {(20.0 + 20 * c, 13.0 + 20 * r): str(cluster) for (r, c), cluster in said.items()}
    assert places_of(xml.fromstring(made)) == wanted and made.count("<text") == 2 * 3
    assert 'font-size="10"' in made.split("<use")[0] and made.count("font-size") == 2


def test_each_cell_of_a_mosaic_lies_under_one_stroke_of_its_colour():
    board = np.array([[0, 0, 1, 0], [0, 1, 1, 1], [-1, 0, 0, -1]])
    looks = {
        (colour, 0.4): list(map(tuple, np.argwhere(board == n))) for n, colour in enumerate(("tma", "mma"))
    }
    root = xml.fromstring(shapes.document(9, 9, shapes.mosaic(0, 0, 2, 3, 4, looks)))
    found = np.full_like(board, -1)
    for number, colour in enumerate(("tma", "mma")):
        (path,) = [p for p in root.iter(SVG + "path") if p.get("stroke") == shapes.colour(colour)]
        for column, row, count in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d", "")):
            cells = found[int(row), int(column) : int(column) + int(count)]
            assert (cells == -1).all()
            cells[:] = number
    assert found.tolist() == board.tolist()


def test_shapes_of_one_look_are_a_group_below_all_text():
    parts = [
        shapes.text(0, 0, "a"),
        *(shapes.rect(0, y, 1, 1, fill) for y, fill in ((0, "light"), (2, "tma"), (4, "light"))),
        shapes.text(0, 9, "<b>"),
    ]
    root = xml.fromstring(shapes.document(9, 9, shapes.alike(parts)))
    back, light, blue, *texts = root
    assert back.tag == SVG + "rect" and light.get("fill") == shapes.PALETTE["light"]
    assert [path.get("d") for path in light] == ["M0 0h1v1h-1z", "M0 4h1v1h-1z"]
    assert blue.get("fill") == shapes.PALETTE["tma"] and [text.text for text in texts] == ["a", "<b>"]


def test_a_picture_is_well_formed_and_names_everything(seven):
    facts, _ = seven
    panels = [draw.memory_panel(facts.memory, facts.shared_bytes), draw.tmem_panel(facts)]
    tree = xml.fromstring(draw.page("step 7", [*panels, draw.barrier_panel(facts)]))
    said = "".join(tree.itertext())
    assert all(
        word in said for word in ("step 7", "Asmem", "tma2mma x 2", "init 128", "0-127: MMAs of WG1 warp 0")
    )


def test_show_writes_the_picture_and_prints_the_barriers(run, tmp_path):
    file = tmp_path / "five.svg"
    status, out, _ = run("show", "5", *K, "--size", "256x128x320", "--out", str(file))
    assert status == 0 and "tma_bar x 2" in out and f"written to {file}" in out
    assert "D: 2 cells of 128x128, written by 2 of 2 CTAs, 1 each" in out
    assert xml.parse(file).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["7", "--out", "x.png"], ".svg"),
        (["7", "--out", "nowhere/x.svg"], "there is no folder nowhere"),
        (["3", "--size", "256", "--cluster", "9"], "there is no cluster 9"),
        (["11"], "step 11"),
        (["3", "--size", "100"], "multiple of 128"),
    ],
)
def test_bad_input_is_one_line(run, arguments, words):
    status, out, err = run("show", *arguments, *K)
    assert status == 2 and words in err and err.count("\n") == 1 and out == ""
