"""Compiled code on disk matches the current sources, whichever file has changed."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import ptxsim
from ptxsim.checks.race import shadow_access, shadow_order
from ptxsim.jit import code_cache, compiled
from ptxsim.units import registry

HELPER = """
from typing import NamedTuple
import numpy as np
from numba import njit
from numba.core import types
from numba.core.extending import intrinsic
FACTOR, TABLE = 3, np.array([10, 20])
class Pair(NamedTuple):
    first: int
    second: int
@intrinsic
def five(typingctx):
    def codegen(context, builder, signature, args):
        return context.get_constant(types.int64, 5)
    return types.int64(), codegen
@njit
def inner(x):
    return x + 1
@njit
def outer(x):
    return inner(x)
"""
USER = """
from helper import FACTOR, TABLE, Pair, five, outer
from ptxsim.jit.compiled import compiled
@compiled()
def run(pair):
    return later(pair.first) * FACTOR + TABLE[1] + five()
@compiled()
def later(x):
    return outer(x)
print(run(Pair(100, 200)))
print(sum(run.stats.cache_hits.values()))
"""
CHANGES = {  # change of the helper's file -> the result of run(Pair(100, 200))
    ("", ""): 328,
    ("FACTOR, TABLE = 3", "FACTOR, TABLE = 4"): 429,
    ("[10, 20]", "[10, 30]"): 338,
    ("return x + 1", "return x + 2"): 331,
    ("int64, 5", "int64, 6"): 329,
    ("first: int\n    second: int", "second: int\n    first: int"): 628,
}


def run_beside(folder) -> list[int]:
    """The output of another process that runs user.py."""
    path = os.pathsep.join([str(folder), *sys.path])
    environment = os.environ | {
        "PYTHONPATH": path,
        "PTXSIM_CACHE": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, folder / "user.py"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def test_a_change_anywhere_is_compiled_anew(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    for (old, new), value in CHANGES.items():
        (tmp_path / "helper.py").write_text(HELPER.replace(old, new))
        assert run_beside(tmp_path) == [value, 0], new
    (tmp_path / "helper.py").write_text("# other lines\n" + HELPER)
    assert run_beside(tmp_path) == [328, 1]


@pytest.mark.parametrize("inner", [shadow_access.touch_log, shadow_order.look])
def test_the_race_detector_is_made_anew_when_a_constant_changes(monkeypatch, inner):
    def digest():
        return compiled.digest.__wrapped__(shadow_access.touch_log.py_func)

    name = next(n for n in inner.py_func.__code__.co_names if n.isupper())
    before = digest()
    assert before == digest()
    monkeypatch.setitem(inner.py_func.__globals__, name, -1)
    assert before != digest()


def twice(x):
    return x + x


def test_signatures_do_not_share_a_file(monkeypatch, tmp_path):
    """As two processes would write that compile at the same time, each for its own types."""
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path)
    for value in (np.int64(1), np.float64(1.5)):
        assert compiled.compiled()(twice)(value) == 2 * value
    assert len(list(tmp_path.glob("*.code"))) == 2
    again = compiled.compiled()(twice)
    assert [again(np.float64(1.5)), again(np.int64(1))] == [3.0, 2]
    assert sum(again.stats.cache_hits.values()) == 2


def test_without_a_place_to_keep_it_code_runs_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path / "missing")
    assert compiled.compiled()(twice)(4) == 8


def test_a_damaged_file_is_written_again(monkeypatch, tmp_path):
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path)
    compiled.compiled()(twice)(1)
    (file,) = tmp_path.glob("*.code")
    whole = file.read_bytes()
    for damaged in (b"", whole[:100]):
        file.write_bytes(damaged)
        assert compiled.compiled()(twice)(1) == 2
        assert pickle.loads(file.read_bytes())


LOADED = """
import sys, ptxsim
ptxsim.warm_up()
print(int("numba.np.random.generator_core" in sys.modules))
"""


def test_kept_code_is_loaded_without_what_numba_compiles_with():
    """numba's registries take a quarter of a second, in every process that runs a kernel."""
    ptxsim.warm_up()  # now everything that it needs is cached
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_the_main_loop_is_the_same_whichever_unit_was_imported_first(monkeypatch):
    forms = list(registry.FAST_FORMS)
    calls, numbers = registry.fast_calls(), [registry.fast_number(form) for form, _ in forms]
    monkeypatch.setattr(registry, "FAST_FORMS", forms[::-1])
    assert registry.fast_calls() == calls and len(calls) > 2
    assert [registry.fast_number(form) for form, _ in forms] == numbers
