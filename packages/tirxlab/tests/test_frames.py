"""The frames that TVM gets: those that it would request, with a line looked up only when it is read."""

import inspect
import os
import subprocess
import sys

from instructor.solutions import gemm_kernels
from tirxlab import steps
from tirxlab.builders import compile_ahead
from tirxlab.checkout import ROOT, environment
from tirxlab.dialect.frames import Inspect
from tirxlab.steps import load_kernels
from tirxlab.toolchain.build import draft

SIZE = 128, 128, 64


def test_they_are_those_of_inspect():
    ours, theirs = Inspect("inspect").stack(), inspect.stack()
    assert [one.frame for one in ours] == [one.frame for one in theirs]
    told = ("filename", "function", "code_context")
    assert [[getattr(one, name) for name in told] for one in ours[1:]] == [
        [getattr(one, name) for name in told] for one in theirs[1:]
    ]


def test_a_build_looks_up_few_lines(monkeypatch):
    asked = []
    usual = inspect.getframeinfo
    monkeypatch.setattr(inspect, "getframeinfo", lambda *a, **k: asked.append(a) or usual(*a, **k))
    assert draft(gemm_kernels.hgemm_v1(*SIZE)).cuda
    assert len(asked) < 60  # with all that TVM requests: 289


def test_copies_of_a_process_find_a_file_compiled(tmp_path):
    path = tmp_path / "gemm_kernels.py"
    path.write_text("raise SystemExit  # nothing is run ahead\n")
    compile_ahead(path)
    text = "def hgemm_v1(M, N, K):\n    return M\n"
    path.write_text(text)
    compile_ahead(path)
    before = steps.code_of.cache_info().misses
    pid = os.fork()
    if pid == 0:
        found = load_kernels(path, text=text).hgemm_v1(7, 1, 1) == 7
        os._exit(0 if found and steps.code_of.cache_info().misses == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_file_that_cannot_be_read_is_told_where_it_is_loaded(tmp_path):
    path = tmp_path / "gemm_kernels.py"
    for text in ("def (:\n", "\0", "(" * 5000):
        path.write_text(text)
        compile_ahead(path)


FIRST = """
import sys
from tirxlab.toolchain.lean_tvm import import_tvm
import_tvm()
from tirxlab.sandbox.first_kernel import build_first
from tirxlab.toolchain.build import draft
build_first()
there = set(sys.modules)
from instructor.solutions import gemm_kernels
draft(gemm_kernels.hgemm_v1(128, 128, 64))
print(sorted(name for name in set(sys.modules) - there if name.split(".")[0] in ("tvm", "cuda", "tirxlab")))
"""


def test_after_a_kernel_of_ours_a_build_loads_nothing_more():
    command = [sys.executable, "-c", FIRST]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=ROOT)
    assert said.stdout == "[]\n"
