"""A slice of the TIRx library that needs neither TVM nor torch; the manifest says what all of it gave."""

from __future__ import annotations

import csv
import hashlib
import json
import statistics
from pathlib import Path

import numpy as np

import ptxsim
from ptxsim.forecasting import chip
from research.store import load

HERE = Path(__file__).resolve().parents[1] / "tirx_kernels"
MANIFEST = {row["kernel"]: row for row in json.loads((HERE / "manifest.json").read_text())}
SLICE = load(HERE / "slice.tar.xz")


def test_the_slice_is_what_the_manifest_names():
    for name, text in SLICE.items():
        assert hashlib.sha256(text).hexdigest()[:16] in MANIFEST[name.removesuffix(".ptx")]["ptx"]


def test_no_wrong_number_is_called_clean():
    assert not [name for name, row in MANIFEST.items() if row["right"] is False and row["verdict"] == "clean"]


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
    rows = list(csv.DictReader((HERE / "library_b200.csv").open()))
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
