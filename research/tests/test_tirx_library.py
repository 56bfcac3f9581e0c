"""A slice of the TIRx library that needs neither TVM nor torch; the manifest says what all of it gave."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

import ptxsim
from research.store import load

HERE = Path(__file__).resolve().parents[1] / "tirx_kernels"
MANIFEST = {row["kernel"]: row for row in json.loads((HERE / "manifest.json").read_text())}
SLICE = load(HERE / "slice.tar.xz")


def test_the_slice_is_what_the_manifest_names():
    for name, text in SLICE.items():
        assert hashlib.sha256(text).hexdigest() in MANIFEST[name.removesuffix(".ptx")]["ptx"]


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
