"""Edits that may repair a step: which are made, in which order, and their wording. Nothing is built here."""

import ast
import contextlib
import os.path
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from tirxlab.checkout import ROOT, environment
from tirxlab.explain.repairs import Edit, Repair, alone, ranked, told
from tirxlab.explain.repairs.edits import Edits
from tirxlab.explain.repairs.fit import words
from tirxlab.explain.repairs.text import Builder
from tirxlab.steps import sections

REFERENCE = (ROOT / "instructor" / "solutions" / "gemm_kernels.py").read_text()
# step, what it should say, what a student wrote
SLIPS = [
    (7, "ld2mma.init(128)", "ld2mma.init(4)"),
    (8, "tma_load(k, tma_phase.stage)", "tma_load(k, 0)"),
    (8, "tma2mma.wait(mma_phase.stage, mma_phase.phase)", "tma2mma.wait(mma_phase.phase, mma_phase.stage)"),
    (5, "k + PIPE_DEPTH < K_TILES", "k + PIPE_DEPTH <= K_TILES"),
    (9, "TILE_BYTES = CTA_GROUP * (", "TILE_BYTES = ("),
    (10, "mma2tma.init(NUM_CONSUMER)", "mma2tma.init(1)"),
    (9, "(tile_scheduler.n_idx * CTA_GROUP + cbx) * BLK_N", "tile_scheduler.n_idx * CTA_GROUP * BLK_N"),
    (5, "Bsmem[stage, :, :], B[n_st : n_st + BLK_N,", "Bsmem[stage, :, :], B[m_st : m_st + BLK_M,"),
    (4, "                Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)\n", ""),
]


def made(step: int) -> str:
    """A file with the step and the one before it."""
    parts = sections(REFERENCE)
    return "".join(parts[number] for number in (0, step - 1, step))


def slipped(step: int, right: str, wrong: str) -> tuple[str, str]:
    """(the right text, the wrong one)."""
    text = made(step)
    at = text.index(right, text.index(f"def hgemm_v{step}("))
    return text, text[:at] + wrong + text[at + len(right) :]


def undone(edits, right: str, wrong: str) -> list[Edit]:
    """The edits that restore the right text, except for layout and brackets."""
    bare, at = re.sub(r"[\s()]", "", right), len(os.path.commonprefix([right, wrong]))
    near = [edit for edit in edits if all(start - 50 < at < end + 50 for start, end, _ in edit.splices)]
    return [edit for edit in near if re.sub(r"[\s()]", "", edit.applied(wrong)) == bare]


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip[2].strip() or "left out")
def test_the_edit_that_undoes_a_slip_is_among_them(slip):
    right, wrong = slipped(*slip)
    assert undone(Edits(Builder(wrong, slip[0])), right, wrong)


def test_what_a_finding_names_and_what_fits_the_file_comes_first():
    right, wrong = slipped(*SLIPS[0])
    line = wrong[: wrong.index("ld2mma.init(4)")].count("\n") + 1
    finding = {"message": f"ld2mma[0] runs ahead: it has init(4) (line {line})", "where": {"line": line}}
    assert undone(ranked(wrong, 7, [finding], "")[:10], right, wrong)


def test_most_edits_are_python_and_none_changes_nothing():
    text = made(2)
    edits = list(Edits(Builder(text, 2)))
    read = 0
    for edit in edits[::40]:
        changed = edit.applied(text)
        assert changed != text
        with contextlib.suppress(SyntaxError):
            ast.parse(changed)
            read += 1
    assert read > 0.9 * len(edits[::40])


def test_no_edit_makes_a_ring_of_one_stage():
    text = made(8)
    at = text.index("PIPE_DEPTH = 4", text.index("def hgemm_v8("))
    near = [edit for edit in Edits(Builder(text, 8)) if abs(edit.splices[0][0] - at) < 20]
    lines = [edit.applied(text)[at - 60 : at + 60] for edit in near]
    depths = {number for line in lines for number in re.findall(r"PIPE_DEPTH = (\d+)", line)}
    assert {"2", "3", "5"} <= depths and not depths & {"0", "1"}


def test_no_edit_stops_a_ring():
    """`(stage + BLK_K) % PIPE_DEPTH` is the same stage again; so is the result of dropping the step."""
    for step, moves in ((5, r"stage = \(stage \+ 1\) % \w+"), (8, r"tma_phase\.move_to_next_stage\(\)")):
        text = made(step)
        begin = text.index(f"def hgemm_v{step}(")
        assert len(re.findall(moves, text[begin:])) == 1
        text += sections(REFERENCE)[step + 1]  # which has a step of the same name
        for edit in (edit for edit in Edits(Builder(text, step)) if len(edit.splices) == 1):
            edited = edit.applied(text)
            end = edited.index(f"def hgemm_v{step + 1}(")
            assert re.search(moves, edited[begin - 50 : end]), edit


def test_no_edit_makes_a_test_that_never_comes_true():
    """`if k == K_TILES:` in the loop over K disabled a surplus wait."""
    line = "                        phase_mma = phase_mma ^ 1\n"
    extra = "                        if k == K_TILES - 1:\n                            tma_load(k, 0)\n"
    _, wrong = slipped(5, line, line + extra)
    edited = [edit.applied(wrong) for edit in Edits(Builder(wrong, 5))]
    assert any("if k == K_TILES - 2:" in text for text in edited)
    assert not any("if k == K_TILES:" in text for text in edited)


def test_a_name_that_a_branch_has_made_a_constant_is_not_put_in():
    """Where warp_id is 0, `warp_id * n` is 0: a loop bound built this way passed, and was a riddle."""
    text = made(5)
    bound = "range(K_TILES)"
    at = text.index(bound, text.index("def hgemm_v5("))
    wrong = text[:at] + "range(K_TILES + 1 * PIPE_DEPTH)" + text[at + len(bound) :]
    edits = [edit.applied(wrong) for edit in Edits(Builder(wrong, 5))]
    bounds = {bound for edited in edits for bound in re.findall(r"range\((K_TILES [^\n]*)\):", edited)}
    assert "K_TILES + 0 * PIPE_DEPTH" in bounds
    assert not any("warp_id" in bound for bound in bounds)


def test_nothing_is_moved_to_where_it_is_never_executed():
    extra = "                if warp_id == 2:\n                    ld2mma.arrive(0)\n"
    right, wrong = slipped(
        7, "                if warp_id == 3:\n", extra + "                if warp_id == 3:\n"
    )
    dead = re.compile(
        r"if warp_id == 3:\n(?:                    .*\n|\n)*?                    +if warp_id == 2:"
    )
    assert undone(Edits(Builder(wrong, 7)), right, wrong)
    for edit in (one for one in Edits(Builder(wrong, 7)) if one.family == "moved"):
        assert not dead.search(edit.applied(wrong)), edit


def test_a_loop_over_tiles_is_made_no_test():
    text, loop = made(6), "while tile_scheduler.valid():"
    at = text.index(loop, text.index("def hgemm_v6("))
    near = [edit.applied(text) for edit in Edits(Builder(text, 6)) if edit.splices[0][0] == at]
    assert not [changed for changed in near if changed.startswith("if tile_scheduler.valid():", at)]


def test_a_repair_is_said_with_its_line():
    right, wrong = slipped(*SLIPS[0])
    repair = Repair.of(undone(Edits(Builder(wrong, 7)), right, wrong)[0], wrong)
    assert repair.said == f"with `ld2mma.init(128)` instead of `ld2mma.init(4)` in line {repair.line}"
    assert told([repair, repair]).startswith("tried: either with `ld2mma.init(128)`")
    assert told([repair]).endswith("all runs of this step are right")
    assert told([replace(repair, review=True)]).endswith("are right; what is under review stays")


def test_a_line_that_only_goes_deeper_is_shown_with_its_depth():
    text = "if a:\n    b()\nc()\n"
    repair = Repair.of(Edit("moved", ((14, 18, "    c()\n"),)), text)
    assert repair.said == "with line 3 as below\n  - c()\n  +     c()"


def test_a_line_that_moves_far_is_shown_without_what_lies_between():
    between = "".join(f"b{n}()\n" for n in range(9))
    text = f"a()\n{between}c()\n"
    repair = Repair.of(Edit("moved", ((0, 4, ""), (len(text), len(text), "a()\n"))), text)
    assert repair.said == "with lines 1 to 11 as below\n  - a()\n    b0()\n    ..\n    c()\n  + a()"


def test_words_know_depth_and_no_comments():
    assert words("if a:  # why\n    b(1)\n") == ["if", "a", ":", "\n<", "b", "(", "1", ")", "\n>"]


def test_other_builders_are_left_out_of_what_is_built():
    text = made(4)
    assert alone(text, 4).count("\n") == text.count("\n")
    assert "def hgemm_v4" in alone(text, 4) and "def hgemm_v3" not in alone(text, 4)


def test_a_step_without_a_def_of_its_own_has_no_edits():
    assert ranked("def tile(M, N, K):\n    return 1\n\n\nhgemm_v1 = tile\n", 1, [], "") == []


def test_the_order_of_edits_does_not_depend_on_how_python_hashes():
    code = (
        "import sys; from tirxlab.explain.repairs.edits import Edits; "
        "from tirxlab.explain.repairs.text import Builder; "
        "print([one.splices for one in Edits(Builder(sys.stdin.read(), 2))])"
    )
    orders = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=made(2),
            env=environment() | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "2")
    }
    assert len(orders) == 1
