"""A launch says the same, word for word, in however many processes its clusters run."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from ptx_samples import compile_ptx

import ptxsim
from ptxsim.grid import processes

BODIES = {  # what each CTA does to `out` -> the verdict
    "own tile": ("out[blockIdx.x * 32 + t] = t;", "clean"),
    "tiles of two CTAs": ("out[(blockIdx.x + 1) / 2 * 32 + t] = blockIdx.x + t;", "error"),
    "one word too far": (
        "out[blockIdx.x * 32 + t] = t; if (t == 31 && blockIdx.x) out[blockIdx.x * 32 + 32] = x;", "error",
    ),
    "reads its neighbour's": (
        "out[blockIdx.x * 32 + t] = out[(blockIdx.x ? (blockIdx.x + 1) % 9 : 0) * 32 + t] + 1;", "error",
    ),
    "all read one tile": ("out[blockIdx.x * 32 + 32 + t] = out[t];", "clean"),
    "atomics": ("atomicAdd(out, t);", "clean"),
    "atomics after a plain store": (
        "if (t == 0 && blockIdx.x == 3) out[0] = 5 + x; __syncthreads(); atomicAdd(out, 1);", "error",
    ),
    "one value": ("out[t] = 7;", "clean"),
    "one value that is loaded": ("out[t] = x + t;", "review"),
    "one value by two statements": (
        "if (blockIdx.x % 3) out[t] = x; else if (t < 8) out[2 * t] = out[64 + t] + 3;", "review",
    ),
    "one value but for one CTA": ("out[t] = x + (blockIdx.x == 7);", "error"),
    "zeros where zeros were, then others": ("out[t] = blockIdx.x < 7 ? x - 3 : x;", "error"),
    "past the end from the third CTA on": ("out[blockIdx.x * 128 + t] = t;", "error"),
    "stands still in the sixth CTA": (
        'if (blockIdx.x == 5) asm volatile("bar.sync 1, 64;"); out[blockIdx.x * 32 + t] = t;', "error",
    ),
    "prints": ('if (t == 0) printf("%d\\n", blockIdx.x); out[blockIdx.x * 32 + t] = t;', "clean"),
    "a sum that comes to what others store": (
        "if (blockIdx.x & 1) out[t] = x; else atomicMax(out + t, 3);", "error",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    """All kernels, `k0` for the first of BODIES: the compiler takes longer to start than to compile them."""
    heads = (f'extern "C" __global__ void k{n}(int* out, int x)' for n in range(len(BODIES)))
    bodies = (body for body, _ in BODIES.values())
    source = "".join(
        f"{head} {{ int t = threadIdx.x; {body} }}\n" for head, body in zip(heads, bodies, strict=True)
    )
    return ptxsim.load(compile_ptx(source, "sm_100a"))


@pytest.mark.parametrize("name", BODIES)
def test_the_same_is_told_in_any_number_of_processes(name, module, monkeypatch):
    monkeypatch.setattr(processes, "WORTHWHILE", 0.0)
    verdict, kernel, told = BODIES[name][1], f"k{[*BODIES].index(name)}", []
    for jobs in (1, 2, 5):
        out = np.zeros(10 * 32, np.int32)
        result = module.launch(kernel, grid=9, block=32, args=[out, 3], jobs=jobs)
        told.append(([str(f) for f in result.findings], result.printed, out.tolist()))
        assert result.verdict == verdict, told[-1][0]
    assert told[0] == told[1] == told[2]


def test_the_finding_names_both_ctas(monkeypatch):
    monkeypatch.setattr(processes, "WORTHWHILE", 0.0)
    source = (
        'extern "C" __global__ void k(int* out) { out[(blockIdx.x + 3) / 4 * 8 + threadIdx.x] = blockIdx.x; }'
    )
    result = ptxsim.load(compile_ptx(source, "sm_100a")).launch(
        "k", grid=8, block=8, args=[np.zeros(64, np.int32)], jobs=2, arg_names=["D"]
    )
    assert "of the grid (cta_id) both store it" in result.findings[0].message
    assert result.findings[0].message.startswith("D")


@pytest.mark.parametrize("checks", [False, True])
def test_many_short_runs_leave_no_clusters_behind(checks):
    """Clusters form reference cycles. Each run collects its own, without a full collection, which takes
    longer. A cluster without listeners is kept for the next run.
    """
    script = [sys.executable, "-c", COUNTED, SHORT, "checks" * checks]  # this process has too many objects
    more, full = subprocess.run(script, check=True, capture_output=True, text=True).stdout.split()
    assert int(more) <= 0 and int(full) <= 1


COUNTED = """
import gc, sys
import ptxsim
from ptxsim.machine.cluster import Cluster

def clusters():
    return sum(type(one) is Cluster for one in gc.get_objects())

def note(phase, about):
    if phase == "start" and about["generation"] == 2 and gc.get_freeze_count() == 0:
        full.append(about)

module, full, checks = ptxsim.load(sys.argv[1]), [], bool(sys.argv[2])
module.launch("k", block=32, checks=checks)
gc.collect()
before = clusters()
gc.callbacks.append(note)
for _ in range(24):
    module.launch("k", block=32, checks=checks)
print(clusters() - before, len(full))
"""
SHORT = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { bar.sync 0; ret; }\n"
