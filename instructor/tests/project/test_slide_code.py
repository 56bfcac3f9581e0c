"""Every Python block on the slides is built: in the reference step that it is about, or as a kernel."""

import re
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tirxlab.steps import load_kernels, sections
from tirxlab.toolchain.build import build

ROOT = Path(__file__).resolve().parents[3]
SOLUTIONS = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
SIZES = {1: (128, 128, 64), 3: (256, 256, 64), 4: (256, 256, 64), 9: (512, 512, 64), 10: (512, 512, 64)}
SIZE = (256, 256, 64)
COMMIT, CAST = "pool.commit()", "Tx.cast(Dreg_16b[:], Dreg[:])"
VIEW = "Dreg_wg = Dreg.view(128, BLK_N, layout=ROW_PER_THREAD)"
# Heading -> (step, the line of the step after which the block is put, text to put before the block).
BEHIND = {
    "Proxies: two paths to the same bytes": (4, CAST, "row = Tx.meta_var(warp_id * 32 + lane_id)"),
    "Scopes: who executes a block together": (1, VIEW, ""),
    "In class: three wrong lines in step 3": (3, CAST, "k_st = Tx.meta_var(0)"),
    "Step 4: TMA loads": (4, COMMIT, ""),
    "Step 6: persistent CTAs": (6, COMMIT, ""),
    "Step 7: PipelineState": (7, COMMIT, ""),
    "Rules of tensor memory": (7, "mma2ld.wait(0, wb_phase.phase)", ""),
    "Step 9: whose barrier?": (9, COMMIT, ""),
    "Step 10: the epilogue in chunks": (10, "mma2ld.wait(wg_id, wb_phase.phase)", ""),
}
# Heading -> (step, the lines of the step that the block replaces).
INSTEAD = {
    "Layouts say where elements are": (1, r"^ *(Dreg|Dreg_wg) = [^\n]*\n"),
    "Step 1: what the skeleton gives you": (
        1,
        r"^ *if warp_id == 0:\n *Tx.ptx.tcgen05.alloc.*?TMEM_LAYOUT\n *\)\n",
    ),
    "Step 3: a grid of tiles": (3, r"^ *(bx, by|m_st|n_st) = [^\n]*\n"),
}
ALONE = "TIRX: Python that is parsed, not run"
# What a slide leaves out -> what is built instead.
LEFT_OUT = {
    "A[...]": "A[:, :]",
    "\n    ...": "\n    Tx.cuda.cta_sync()",
    "        ...  ": "        Tx.ptx.fence.mbarrier_init()  ",
    "(BLK_M * BLK_K + BLK_N * BLK_K) * 2": "size = Tx.meta_var((BLK_M * BLK_K + BLK_N * BLK_K) * 2)",
    "tma_phase": "shown_phase",
    "tma2mma_cta0": "shown_cta0",
}


def blocks() -> list[tuple[str, str]]:
    """(heading, code) of all Python blocks."""
    found = []
    for source in sorted((ROOT / "slides").glob("lecture*.typ")):
        for page in re.split(r"^= ", source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            codes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
            found += [(page.split("\n")[0], code) for code in codes]
    return found


def behind(part: str, line: str, code: str) -> str:
    """A step with the code after the first line that begins so, at the same indentation."""
    found = re.search(rf"^( *){re.escape(line)}.*\n", part, re.MULTILINE)
    assert found, f"the step has no line {line}"
    return part[: found.end()] + indent(code, found[1]) + part[found.end() :]


def instead(part: str, lines: str, code: str) -> str:
    """A step with the code in place of the first of these lines, and without the others."""
    form = re.compile(lines, re.MULTILINE | re.DOTALL)
    found = form.search(part)
    assert found, f"the step has no lines {lines}"
    depth = re.match(" *", found[0])[0]
    return part[: found.start()] + indent(code, depth) + form.sub("", part[found.end() :])


def whole(code: str) -> str:
    head = "from tirxlab import SwizzleMode, Tx, tma_shared_layout\n\n\ndef hgemm_v1(M, N, K):\n"
    layout = 'A_LAYOUT = tma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (128, 64))\n'
    return head + indent(layout + code, "    ") + "    return kernel\n"


def written(heading: str, code: str) -> tuple[int, str]:
    """(step, a kernels file with the block in it)"""
    for out, filled in LEFT_OUT.items():
        code = code.replace(out, filled)
    if heading == ALONE:
        return 1, whole(code)
    parts = sections(SOLUTIONS.read_text(encoding="utf-8"))
    if heading in BEHIND:
        step, line, first = BEHIND[heading]
        parts[step] = behind(parts[step], line, dedent(f"{first}\n{code}"))
    else:
        step, lines = INSTEAD[heading]
        parts[step] = instead(parts[step], lines, code)
    return step, "".join(parts.values())


def test_every_block_has_a_place_and_no_place_is_left_over():
    assert {heading for heading, _ in blocks()} == {*BEHIND, *INSTEAD, ALONE}


@pytest.mark.parametrize("number", range(len(blocks())))
def test_code_on_slides_is_built(number, tmp_path):
    heading, code = blocks()[number]
    step, text = written(heading, code)
    (tmp_path / "k.py").write_text(text)
    make = getattr(load_kernels(tmp_path / "k.py"), f"hgemm_v{step}")
    assert build(make(*SIZES.get(step, SIZE)), use_cache=False).ptx


def test_the_copy_that_the_slide_about_layouts_speaks_of_is_built(tmp_path):
    source = (ROOT / "slides" / "lecture1.typ").read_text(encoding="utf-8")
    (call,) = re.findall(r"`(Tx\.copy\(Dreg_wg, .*?\))`", source)
    text, given = SOLUTIONS.read_text(encoding="utf-8"), "Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])"
    assert given in text
    (tmp_path / "k.py").write_text(text.replace(given, call, 1))
    assert build(load_kernels(tmp_path / "k.py").hgemm_v1(*SIZES[1]), use_cache=False).ptx
