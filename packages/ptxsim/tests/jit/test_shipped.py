"""Code that a wheel includes is used on processors that can run it, and on no others."""

import os
import subprocess
import sys

import pytest
from llvmlite import binding

from ptxsim.jit import code_cache, shipped

USER = """
import pathlib, sys
from ptxsim.jit import shipped
from ptxsim.jit.compiled import compiled
if len(sys.argv) > 2:
    shipped.folder, shipped.usable = lambda: pathlib.Path(sys.argv[1]), lambda: sys.argv[2] == "usable"
@compiled()
def scaled(x):
    return x * FACTOR
FACTOR = int(sys.argv[3])
print(scaled(2), sum(scaled.stats.cache_hits.values()))
"""
RUNS_HERE = binding.get_process_triple() == shipped.TRIPLE and all(
    binding.get_host_cpu_features().get(one) for one in shipped.NEEDS
)


def run(folder, state: str, factor: int, **more: str) -> list[int]:
    """The output of a process with an empty cache: the value, and the number of functions that it found."""
    (folder / "user.py").write_text(USER)
    environment = os.environ | {"PTXSIM_CACHE": str(folder / f"cache-{state}-{factor}"), **more}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, folder / "user.py", folder / "shipped", state, str(factor)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(not RUNS_HERE, reason="needs a processor that runs what is shipped")
def test_what_is_shipped_is_found_where_nothing_else_differs(tmp_path):
    made_for = {"NUMBA_CPU_NAME": shipped.PROCESSOR, "NUMBA_CPU_FEATURES": ""}
    assert run(tmp_path, "unusable", 3, PTXSIM_CACHE=str(tmp_path / "shipped"), **made_for) == [6, 0]
    assert run(tmp_path, "usable", 3) == [6, 1]
    assert run(tmp_path, "usable", 4) == [8, 0]  # made of other sources
    assert run(tmp_path, "unused", 3) == [6, 0]


@pytest.mark.parametrize(("there", "triple", "lacks", "usable"), [
    (True, shipped.TRIPLE, "", True),
    (False, shipped.TRIPLE, "", False),
    (True, "aarch64-unknown-linux-gnu", "", False),
    (True, shipped.TRIPLE, "avx2", False),
])  # fmt: skip
def test_who_can_use_it(monkeypatch, tmp_path, there, triple, lacks, usable):
    monkeypatch.setattr(shipped, "folder", lambda: tmp_path if there else tmp_path / "missing")
    monkeypatch.setattr(binding, "get_process_triple", lambda: triple)
    monkeypatch.setattr(
        binding, "get_host_cpu_features", lambda: {one: one != lacks for one in shipped.NEEDS}
    )
    assert shipped.usable.__wrapped__() is usable


MISFITS = [
    ("", [], "", ""),
    ("numba-1-cpython-0", [], "", "it was made for numba-1-cpython-0, but this is HERE"),
    ("numba-1-cpython-0", ["HERE"], "", ""),
    ("", ["HERE"], "avx2", "it was made for x86-64-v3, and this processor lacks avx2"),
]


@pytest.mark.parametrize(("other", "here", "lacks", "said"), MISFITS)
def test_who_cannot_use_it_is_told_why_it_compiles(monkeypatch, tmp_path, capsys, other, here, lacks, said):
    own = shipped.folder().name
    for name in [other] * bool(other) + [own] * len(here):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(shipped, "folder", lambda: tmp_path / own)
    monkeypatch.setattr(shipped, "usable", shipped.usable.__wrapped__)
    monkeypatch.setattr(binding, "get_process_triple", lambda: shipped.TRIPLE)
    monkeypatch.setattr(
        binding, "get_host_cpu_features", lambda: {one: one != lacks for one in shipped.NEEDS}
    )
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path)
    monkeypatch.delenv(code_cache.ANNOUNCED, raising=False)
    module = code_cache.import_generated(f"answer = {len(said)}\n", slow=True)
    del sys.modules[module.__name__]
    why = "; the code in this release cannot be used: " + said.replace("HERE", own) if said else ""
    assert capsys.readouterr().err == code_cache.FIRST_RUN + why + "\n"


@pytest.mark.parametrize("usable", [True, False])
def test_a_first_run_with_shipped_code_is_not_cold(monkeypatch, tmp_path, usable):
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(shipped, "usable", lambda: usable)
    assert code_cache.is_cold() is not usable


CALLED = """
from ptxsim.checks.race import clock_rows, shadow_access
from ptxsim.grid.repeats import global_rows
called = [clock_rows.release_rows_into, shadow_access.touch_spans, global_rows._separate]
print(*(bool(one.signatures) for one in called))
"""


def test_what_is_shipped_covers_a_kernel_of_many_ctas():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PTXSIM_JOBS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", shipped.EXERCISE + CALLED], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "True True True\n"), done.stderr
