"""A cluster that repeats an earlier one is only compared with it; faults are found as before."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from ptx_samples import compile_ptx

import ptxsim
from ptxsim.grid import processes
from ptxsim.grid.repeats import runner
from research.truth import compared_clusters as bench

OWN = "out[blockIdx.x * 64 + t] = "
LATER = {  # what CTAs from number 3 on do instead of the others' instructions -> kind of the finding, if any
    "nothing else": (f"{OWN} t;", None),
    "two warps store the same words": (
        "out[blockIdx.x * 64 + (blockIdx.x >= 3 ? t % 32 : t)] = t;", "race",
    ),
    "one stores another's tile": ("out[(blockIdx.x == 4 ? 2 : blockIdx.x) * 64 + t] = t;", "race"),
    "they read what their other warp writes": (
        f"int* p = blockIdx.x >= 3 ? out : in; int v = p[blockIdx.x * 64 + (t ^ 32)]; {OWN} v;", "race",
    ),
    "they read what an earlier one wrote": (
        f"int* p = blockIdx.x >= 3 ? out : in; int v = p[t]; {OWN} v;", "race",
    ),
    "they use another thread's shared word": (
        f"s[blockIdx.x >= 3 ? t ^ 32 : t] = t; {OWN} s[t];", "race",
    ),
    "they read shared words that nobody wrote": (f"s[t] = t; {OWN} s[blockIdx.x >= 3 ? t + 64 : t];", "un"),
    "they store outside": ("out[(blockIdx.x >= 5 ? 1 << 20 : blockIdx.x * 64) + t] = t;", "out"),
    "they do not come to the barrier": (
        f"if (blockIdx.x < 3 || t < 32) asm volatile(\"bar.sync 1, 64;\"); {OWN} t;", "deadlock",
    ),
    "they leave out a barrier": (
        f"s[t] = t; if (blockIdx.x < 3) __syncthreads(); {OWN} s[t ^ 32];", "race",
    ),
    "they add to what they find": (
        f"int* p = blockIdx.x >= 3 ? out : in; int v = p[blockIdx.x * 64 + t] + 1; {OWN} v;", None,
    ),
    "a longer loop": (f"int v = 0; for (int i = 0; i < blockIdx.x; i++) v += in[i * 64 + t]; {OWN} v;", None),
}  # fmt: skip


def launched(body: str, order: str, jobs: int = 1):
    start = 'extern "C" __global__ void k(int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x;'
    text = f"{start} {body} }}"
    given, out = np.arange(512, dtype=np.int32), np.full(512, 7, np.int32)
    result = ptxsim.load(compile_ptx(text, "sm_100a")).launch(
        "k", grid=8, block=64, args=[given, out], order=order, jobs=jobs
    )
    return result, out


@pytest.fixture
def ends(monkeypatch) -> Counter:
    """Counts how comparable clusters ended: compared, or run again."""
    seen, repeats = Counter(), runner.Runner._repeats

    def noted(self, index: int) -> bool:
        same = repeats(self, index)
        seen["compared" if same else "again"] += 1
        return same

    monkeypatch.setattr(runner.Runner, "_repeats", noted)
    return seen


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("name", LATER)
def test_what_only_later_clusters_do_is_found(name, order, ends, monkeypatch):
    body, kind = LATER[name]
    result, out = launched(body, order)
    assert ends["compared"] > 0 or name == "a longer loop"
    monkeypatch.setattr(processes, "WORTH_COMPARING", 10**9)
    expected, all_checked = launched(body, order)
    assert [str(f) for f in result.findings] == [str(f) for f in expected.findings]
    assert [f.where for f in result.findings] == [f.where for f in expected.findings]
    assert result.stats | {"seconds": 0} == expected.stats | {"seconds": 0}
    assert (out == all_checked).all()
    kinds = [f.kind for f in result.findings]
    assert kinds and all(k.startswith(kind) for k in kinds) if kind else result.verdict == "clean"


@pytest.mark.parametrize("name", LATER)
def test_so_it_is_by_several_processes(name, monkeypatch):
    monkeypatch.setattr(processes, "WORTHWHILE", 0.0)
    result, out = launched(LATER[name][0], "program", jobs=2)
    alone, same = launched(LATER[name][0], "program")
    assert result.verdict == alone.verdict and {f.kind for f in result.findings} == {
        f.kind for f in alone.findings
    }
    assert alone.verdict == "error" or (out == same).all()


def test_only_the_first_of_equal_clusters_is_checked(ends):
    launched(LATER["nothing else"][0], "program")
    assert ends == {"compared": 7}


def test_a_cluster_may_go_any_way_that_one_went_before(ends):
    body = f"int v = 0; for (int i = 0; i < blockIdx.x % 2; i++) v += in[t]; {OWN} v;"
    launched(body, "program")
    assert ends == {"again": 1, "compared": 6}


def test_where_all_clusters_differ_none_is_compared_for_long(ends):
    body = f"int v = 0; for (int i = 0; i < blockIdx.x; i++) v += in[i * 64 + t]; {OWN} v;"
    launched(body, "program")
    assert ends == {"again": runner.MOST_MISSES}


_BARRIER = "__shared__ unsigned long long b[2]; unsigned a = (unsigned)__cvta_generic_to_shared(b); "
_INIT = 'asm volatile("mbarrier.init.shared.b64 [%0], 2;" :: "r"(a)); '
_ARRIVE = 'asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(a)); '
REVIEWED = f"{_BARRIER} if (t == 0) {{ {_INIT} {_ARRIVE} }} {OWN} t;"  # left in the middle of a phase


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_reviews_count_in_clusters_that_are_only_compared(order, ends, monkeypatch):
    result, out = launched(REVIEWED, order)
    assert result.verdict == "review" and ends == {"compared": 7}
    monkeypatch.setattr(processes, "WORTH_COMPARING", 10**9)
    expected, all_checked = launched(REVIEWED, order)
    assert [str(f) for f in result.findings] == [str(f) for f in expected.findings]
    assert [f.where for f in result.findings] == [f.where for f in expected.findings]
    assert (out == all_checked).all()


@pytest.mark.parametrize("more", [f"if (t == 0) {{ {_ARRIVE} {_ARRIVE} }}", "s[t] = s[63 - t];"])
def test_a_later_cluster_with_another_finding_is_checked(more, monkeypatch):
    body = f"{REVIEWED} if (blockIdx.x > 4) {{ {more} }}"
    result, _ = launched(body, "program")
    monkeypatch.setattr(processes, "WORTH_COMPARING", 10**9)
    expected, _ = launched(body, "program")
    assert [str(f) for f in result.findings] == [str(f) for f in expected.findings]
    assert [f.where for f in result.findings] == [f.where for f in expected.findings]


@pytest.mark.parametrize(
    "body",
    [
        f"atomicAdd(in, 1); {OWN} t;",
        f"static __device__ int n[64]; n[t] = t; {OWN} n[t];",
        "out[t] = out[t] + 1;",
    ],
    ids=["atomics", "module variables", "in place"],
)
def test_clusters_that_share_more_than_arguments_are_all_checked(body, ends):
    launched(body, "program")
    assert not ends["compared"]


def test_two_names_of_one_array_are_not_compared(ends):
    body = "out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];"
    text = f'extern "C" __global__ void k(int* in, int* out) {{ {body} }}'
    both = np.zeros(1024, np.int32)
    ptxsim.load(compile_ptx(text, "sm_100a")).launch("k", grid=8, block=64, args=[both[:600], both[500:]])
    assert not ends


@pytest.mark.parametrize("seed", sorted({*range(41)} - {24}))  # 24 is a loop of 50,000 barriers
def test_one_value_that_differs_in_later_clusters(seed):
    rng = random.Random(seed)
    base = rng.choice(bench.rules()) if seed % 2 else bench.random_kernel(9_000_000 + seed)
    ptx = bench.changed(base.ptx, rng) or base.ptx
    try:
        one, two = bench.both(base, ptx, rng.choice(("program", "adverse")))
    except ptxsim.PtxError:
        pytest.skip("the changed text is refused")
    assert one == two
