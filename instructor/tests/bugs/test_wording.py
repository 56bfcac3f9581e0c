"""What a student reads first about a mistake: the cause, what to do about it, and the line where it is."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import BUGS, Bug, build_bug, matches, of_file, on_one_screen, replace, run_bug


@pytest.mark.parametrize("bug", of_file("wording"), ids=lambda bug: bug.name)
def test_the_first_finding_names_cause_remedy_and_line(bug):
    artifact = build_bug(bug)
    run = run_bug(bug, artifact)
    first = run.findings[0]
    assert matches(bug, first), [str(f).split("\n")[0] for f in run.findings]
    assert on_one_screen(run)
    assert bug.hint in first.hint
    text = artifact.source["text"].splitlines()[first.where["line"] - 1]
    assert text.strip().startswith(bug.statement)


def test_a_role_that_never_leaves_its_loop_holds_its_own_warp_only():
    bug = BUGS["next-tile-forgotten-by-tma"]
    (found,) = run_bug(bug, build_bug(bug)).findings
    assert found.kind == "deadlock"
    assert "WG0, WG1 warps 0-2" in found.message and "224 of 256 threads arrived" in found.message


def test_who_overwrites_is_the_one_to_wait_though_it_came_first():
    bug = BUGS["no-wait-ld2mma"]
    artifact = build_bug(bug)
    races = [f for f in run_bug(bug, artifact, "program").findings if f.kind == "race"]
    assert {f.evidence["first"]["kind"] for f in races} == {"mma", "ld"}  # either of the two came first
    for found in races:
        assert found.evidence["cause"] == "not-free" and "ld2mma[0] was not waited for" in found.message
        assert "Tx.gemm_async(" in artifact.source["text"].splitlines()[found.where["line"] - 1]


def test_tma_boxes_are_told_as_slices_rows_first():
    bug = BUGS["no-sync-after-the-k-loop"]
    wait = "Tx.ptx.mbarrier.try_wait(tma_bar.ptr_to([0]), phase)"
    bug = Bug("no-wait-tma", 4, bug.size, (replace(wait, "pass"),), "race", "tma_bar[0]", "")
    found = run_bug(bug, build_bug(bug)).findings
    assert any("TMA load of A[0:128, 64:128]" in f.message for f in found)
    pending = [f.message for f in found if f.kind == "async-pending"]
    assert all("never waited for" in m and "phase -1" not in m for m in pending) and pending
    assert "accesses)" in str(found[0])


def test_a_box_of_a_split_map_is_told_as_a_slice_of_the_matrix():
    from ptxsim.machine.tensor_map import TensorMap

    D = np.zeros((256, 256), np.float16)
    split = TensorMap(D, box=(64, 128, 2), dims=(64, 256, 4), strides=(512, 128), name="D")
    assert split.box_text((0, 128, 2)) == "D[128:256, 128:256]"
    assert split.box_text((0, 0, 3)) == "D at (0, 0, 3)"  # past the last column: no rectangle
    assert TensorMap(D, box=(64, 128), name="D").box_text((64, 128)) == "D[128:256, 64:128]"
