"""A slice of the TIRx library that needs neither TVM nor torch; the manifest has the results of all of it."""

from __future__ import annotations

import csv
import hashlib
import io
import statistics
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ptxsim
from ptxsim.forecasting import chip
from research import packed
from research.store import load

HERE = Path(__file__).resolve().parents[1] / "tirx_kernels"
MANIFEST = HERE / "manifest.json.xz"
SLICE = load(HERE / "slice.tar.xz")


@pytest.fixture
def report(tool):
    return tool("report")


@pytest.fixture
def manifest(report):
    return report.manifest(MANIFEST)


def test_the_slice_is_what_the_manifest_names(manifest):
    for name, text in SLICE.items():
        assert hashlib.sha256(text).hexdigest()[:8] in manifest[name.removesuffix(".ptx")]["ptx"]


def test_no_wrong_number_is_called_clean(manifest):
    assert not [name for name, row in manifest.items() if row["right"] is False and row["verdict"] == "clean"]


def test_rmsnorm():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(5, 128)).astype(np.float16), rng.normal(size=128).astype(np.float16)
    out = np.zeros_like(x)
    result = ptxsim.load(SLICE["rmsnorm.ptx"].decode()).launch(
        "rmsnorm_kernel", grid=152, block=32, shared_bytes=1024, args=[x, out, weight, 5]
    )
    wide = x.astype(np.float32)
    want = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * weight.astype(np.float32)
    np.testing.assert_allclose(out.astype(np.float32), want, rtol=2e-3, atol=1e-3)
    assert result.verdict == "clean"


def test_the_gemm_with_cluster_launch_control_lowers():
    text = SLICE["fp16_bf16_gemm.ptx"].decode()
    assert "clusterlaunchcontrol.try_cancel" in text and ptxsim.load(text).programs


def test_predicted_times_are_in_the_half_that_their_names_say():
    rows = list(csv.DictReader(io.StringIO(packed.read(HERE / "library_b200.csv.xz"))))
    for row in rows:
        if row["half"] in ("new", "seen", "fresh"):
            continue
        first = hashlib.sha256(f"{row['kernel']} {row['config']}".encode()).digest()[0]
        assert row["half"] == ("fit" if first % 2 else "unseen")
    launch = 1e6 * chip("b200", "kernel").launch
    predicted = [float(row["model_us"]) + launch * int(row["launches"]) for row in rows]
    published = [float(row["published_us"]) for row in rows]
    errors: dict[str, list[float]] = {}
    for row, ours, theirs in zip(rows, predicted, published, strict=True):
        if theirs > 10:
            errors.setdefault(row["half"], []).append(abs(ours / theirs - 1))
    for half in ("fit", "unseen", "new"):
        assert statistics.mean(errors[half]) <= 0.15


STOPPED = """
import json, sys, time
from pathlib import Path
launch = {"verdict": "review", "findings": []}
Path(sys.argv[1]).write_text(json.dumps({"label": "small", "runs": [launch], "configs": []}))
time.sleep(60)
"""


def test_a_run_that_is_stopped_keeps_its_launches_and_says_so(tool, tmp_path):
    script, out = tmp_path / "stopped.py", tmp_path / "row.json"
    script.write_text(STOPPED)
    row = tool("run").one([str(script), str(out)], out, seconds=5)
    assert row["runs"][0]["verdict"] == "review" and row["error"] == "not done after 5 s"
    told = tool("report")._ran(row)
    assert (told["ran"], told["right"], told["error"]) == ("small", None, "not done after 5 s")


def test_a_row_of_before_is_not_taken_for_that_of_a_process_that_died(tool, tmp_path):
    script, out = tmp_path / "dies.py", tmp_path / "row.json"
    script.write_text("raise SystemExit('out of luck')")
    out.write_text('{"right": true, "runs": [], "configs": []}')
    row = tool("run").one([str(script), str(out)], out, seconds=30)
    assert "right" not in row and "out of luck" in row["error"]


def test_a_build_that_is_stopped_after_its_first_configuration_has_not_built(tool):
    kernel = {"sha256": "0" * 64, "lowers": ""}
    stopped = {"configs": [{"label": "small", "kernels": [kernel]}], "error": "not done after 600 s"}
    told = tool("report")._built(stopped)
    assert not told["builds"] and told["why not"] == "not done after 600 s"


def test_a_build_that_launches_knows_the_tensors_whose_addresses_were_asked(tool, tmp_path, monkeypatch):
    device, simulators = SimpleNamespace(), []
    fakes = {
        "capture": {"Kept": SimpleNamespace, "patch_tvm": lambda *_: None},
        "cpu_torch": {"as_cuda": lambda _: nullcontext(device)},
        "hooks": {"connect": lambda _, simulator: simulators.append(simulator)},
    }
    for name, content in fakes.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    for name in ("TVM_FFI_DISABLE_TORCH_C_DLPACK", "TIRX_PREPARE_NUM_SMS", "TIRX_PREPARE_CUDA_ARCH"):
        monkeypatch.setenv(name, "")
    build_one = tool("build_one")
    monkeypatch.setattr(build_one, "everything", lambda *_: None)
    build_one.main("a.kernel", "sm_100a", tmp_path / "row.json")
    assert device.on_address == simulators[0].note


def test_the_row_is_written_after_each_launch(tool, tmp_path):
    ptx = tmp_path / "fill.ptx"
    ptx.write_text(
        ".version 8.7\n.target sm_100a\n.address_size 64\n"
        ".visible .entry fill(.param .u64 out)\n{\n.reg .b64 %rd;\nld.param.u64 %rd, [out];\n"
        "st.global.u32 [%rd], 7;\nret;\n}\n"
    )
    words = np.zeros(1, np.uint32)
    simulator = tool("on_ptxsim").Simulator()
    simulator.storages[words.ctypes.data] = (words.view(np.uint8), "words")
    seen = []
    simulator.after = lambda: seen.append([run.verdict for run in simulator.runs])
    kernel = SimpleNamespace(name="fill", ptx=ptx, digest="", launch=("blockIdx.x", "threadIdx.x"))
    for count in (1, 2):
        simulator.launch(kernel, (words.ctypes.data, 1, 1))
        assert seen[-1] == ["clean"] * count and words[0] == 7


RACE = (
    "review race: tensor memory, column 0: the read by tcgen05.ld (PTX line {}) after the write (PTX line {})"
)


def test_a_shorter_head_of_the_ptx_is_no_difference_and_another_finding_is(tool):
    before = {"verdict": "review", "right": True, "findings": [RACE.format(2564, 980)]}
    differences = tool("compare").differences
    assert not differences(before, before | {"findings": [RACE.format(1338, 54)]})
    moved = RACE.format(2564, 980).replace("column 0", "column 32")
    assert len(differences(before, before | {"findings": [moved]})) == 1
    assert differences(before, {"verdict": "error"}) == ["verdict: 'review' before, 'error' now"]


def ran(report, label: str, *messages: str, right: bool | None = True) -> dict:
    """The report's row of a run with these findings."""
    findings = [{"severity": "review", "kind": "race", "message": text} for text in messages]
    run = {"verdict": "review" if findings else "clean", "findings": findings}
    return report._ran({"label": label, "right": right, "runs": [run]})


def test_a_row_of_the_page_has_both_configurations_and_findings_are_told_once(report):
    other = {"label": "large", "runs": [], "error": "not done after 90 s"}
    first = "column 0: the read by thread 3 (PTX line 7)"
    rows = [
        {"kernel": "one"} | ran(report, "a", first) | {"second": {"config": "b"} | ran(report, "b")},
        {"kernel": "two"} | ran(report, "c", first.replace("3", "64"), right=None),
        {"kernel": "three"} | ran(report, "d", "another", right=False),
        {"kernel": "four"} | report._ran({}) | {"second": {"config": "large"} | report._ran(other)},
    ]
    page = report.page([report.filled({"ptx": ["0"]} | row) for row in rows]).splitlines()
    assert "- second: 2 kernels, 1 run, 1 judged, 1 right" in page
    assert page[page.index("|---|---|---|---|---|") + 1 :][:4] == [
        "| one | a | review 1 | b | clean |",
        "| two | c | review 1, not judged |  |  |",
        "| three | d | review 2, wrong numbers |  |  |",
        "",
    ]
    assert "1. review race: column N: the read by thread N (2)" in page
    assert "2. review race: another (1)" in page
    assert (
        page[-1]
        == "- Second configuration, not to its end: 0 as in the first; others: four (not done after 90 s)."
    )


def test_findings_that_were_cut_at_different_words_are_one_kind(report):
    text = "the read by thread {} " + "is not ordered " * 20
    rows = [{"kernel": str(n), "ptx": []} | ran(report, "a", text.format(n)) for n in (1, 10**9)]
    numbers, told = report.numbered(rows)
    assert set(numbers.values()) == {1} and len(numbers) == 2 and told[0].endswith(" .. (2)")
    rows[1]["findings"] = ["review race: the read by thread 1"]  # not shortened, so another kind
    assert len(report.numbered(rows)[1]) == 2


def test_the_manifest_leaves_out_what_its_reader_fills_in(report):
    row = (
        {"kernel": "one", "ptx": ["0"]}
        | ran(report, "a", "text")
        | {"second": {"config": "b"} | ran(report, "b")}
    )
    short = report.shortened(report.filled(row))
    assert "right" not in short and "ran" not in short["second"] and short["second"]["verdict"] == "clean"
    assert report.filled(short) == report.filled(row)
    unlike = report.filled(row | {"right": None, "builds": False, "second": row["second"] | {"ran": ""}})
    assert report.filled(report.shortened(unlike)) == unlike


def test_the_page_is_what_the_manifest_says(report, manifest):
    begin, end = report.MARKS
    text = (HERE.parents[1] / "docs" / "tirx-library.md").read_text()
    assert text.split(begin)[1].split(end)[0].strip() == report.page(list(manifest.values()))


def test_the_manifest_is_written_as_the_report_writes_it(report, manifest):
    assert packed.read(MANIFEST) == report.written(list(manifest.values()))


def test_the_second_configuration_is_not_the_first(tool, manifest):
    second = tool("catalogue").SECOND
    assert second.keys() <= manifest.keys()
    for kernel, (base, *ours) in second.items():
        assert (ours[0] if ours else base) != manifest[kernel]["ran"]
        assert not ours or ours[1]


def test_a_second_row_has_a_verdict_or_a_reason(manifest):
    rows = {name: row["second"] for name, row in manifest.items() if row.get("second")}
    for row in rows.values():
        assert row["verdict"] if row["ran"] else row["error"]
    assert not [n for n, row in rows.items() if row["right"] is False and row["verdict"] == "clean"]
