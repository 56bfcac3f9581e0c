"""Which part of an output was left unwritten: a repeating block is a thread's
share, a remainder is a loop's.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.checks.lifecycle.unwritten_outputs import marked_arrays, report_unwritten
from ptxsim.report.findings import Reporter


def said(written, also: str = ""):
    """The finding about a 512 x 384 output of which only the elements `written` (row, column) were stored."""
    output = np.full((512, 384), np.nan, np.float32)
    marked, reporter = marked_arrays({"D": output}), Reporter([])
    rows, columns = np.indices(output.shape)
    output[written(rows, columns)] = 0
    if also:
        reporter.add("out-of-bounds", "review", "stores outside", "", key=also).evidence["cause"] = also
    report_unwritten(marked, reporter, SimpleNamespace(by_row={}))
    return next((f for f in reporter.by_identity.values() if f.kind == "uninitialized"), None)


@pytest.mark.parametrize("share", [32, 64, 128])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("part", [0, 1])
def test_the_share_of_one_of_two_is_told_with_its_period(share, axis, part):
    finding = said(lambda *at: at[axis] // share % 2 != part)
    start, name = part * share, ("rows", "columns")[axis]
    if axis and share == 128 and part:  # 384 columns contain it only once
        assert finding.evidence["cause"] == "incomplete-output"
        return
    assert f", {name} {start} to {start + share - 1} of every {2 * share} (the first one" in finding.message
    assert finding.evidence["cause"] == "left-blocks"


def test_a_rest_is_told_without_a_period():
    finding = said(lambda rows, columns: rows < 256)
    assert ", rows 256 to 511 (the first one is D[256, 0])" in finding.message
    assert finding.evidence["cause"] == "first-tiles"


def test_stores_that_went_outside_come_first():
    assert said(lambda rows, columns: rows < 256, "useless-stores").evidence["cause"] == "stores-outside"


def test_other_patterns_have_no_words():
    finding = said(lambda rows, columns: (rows < 256) | (columns < 128))
    assert "never written (the first one is D[256, 128])" in finding.message
    assert said(lambda rows, columns: rows >= 0) is None


def test_the_lines_that_store_the_output_are_named():
    text = (
        HEAD
        + """.visible .entry k(.param .b64 p) { .reg .b64 %a; .reg .b32 %v; .shared .b32 s;
        ld.param.b64 %a, [p]; mov.u32 %v, 0;
        st.shared.u32 [s], %v;
        st.global.u32 [%a], %v;
        ret; }"""
    )
    output = np.full(2, np.nan, np.float32)
    (found,) = ptxsim.load(text).launch("k", block=1, args=[output]).findings
    line = text.splitlines().index("        st.global.u32 [%a], %v;") + 1
    assert found.message.endswith(f"[1]); PTX line {line} stores it"), found.message
