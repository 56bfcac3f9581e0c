"""Tensor copies drawn for a chip: ptxsim has an error for those at which an H200 stops, and for no others."""

import json
import random

from research import store
from research.chip import tensor_copies


def test_what_is_drawn_is_judged_as_the_chip_did(tmp_path):
    file = tmp_path / "copies.tar.xz"
    tensor_copies.make(file, seed=7, count=60)  # raises if a verdict is not the one of its kind
    files = store.load(file)
    cases = json.loads(files["index.json"])
    assert {case["kind"] for case in cases} == set(tensor_copies.KINDS)
    assert all(len(files[f"{n}.bin"]) > 0 for n in range(60))


def test_the_summary_counts_by_kind_and_lists_what_differs():
    draw = random.Random(3)
    cases = [tensor_copies.drawn(draw) for _ in range(50)]
    said = ["" if case["kind"] == "legal" else "CUDA_ERROR_ILLEGAL_INSTRUCTION" for case in cases]
    good = tensor_copies.summary(cases, said)
    assert sum(good["counts"].values()) == 50 and good["differ"] == []
    first = next(n for n, case in enumerate(cases) if case["kind"] == "legal")
    said[first] = "3 of 64 B differ"
    assert [row["chip"] for row in tensor_copies.summary(cases, said)["differ"]] == ["3 of 64 B differ"]
