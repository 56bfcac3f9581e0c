"""The tracks: the students' files are up to date with the solutions, which are right under every order."""

import subprocess
import sys

import numpy as np
import pytest

from instructor.solutions.hopper_kernels import build_gemm_m64n64
from instructor.tracks import FILES, ROOT, differing
from tirxlab.steps import load_kernels
from tracks.ampere.reference import TRACK as AMPERE
from tracks.common import inputs, run_checked
from tracks.hopper.reference import TRACK as HOPPER


def solution(track):
    return ROOT / f"instructor/solutions/{track.name}_kernels.py"


def test_students_files_are_up_to_date():
    assert differing() == []


@pytest.mark.parametrize("order", ["program", "adverse", 1])
@pytest.mark.parametrize("size", [(64, 64, 64), (128, 192, 80)], ids=str)
@pytest.mark.parametrize("track", [AMPERE, HOPPER], ids=["ampere", "hopper"])
def test_solutions(track, size, order):
    assert run_checked(track, size, order, solution(track)) == []


LADDERS = [(track, rung) for track in (AMPERE, HOPPER) for rung in track.rungs[1:]]
CASES = [(track, rung, *rung.cases[-1], "adverse") for track, rung in LADDERS]
MORE = [
    (track, rung, size, options, order)
    for track, rung in LADDERS
    for size, options in rung.cases
    for order in ("program", "adverse", 1)
    if (track, rung, size, options, order) not in CASES
]


def name_of(value):
    return getattr(value, "name", None) or getattr(value, "builder", None) or str(value)


@pytest.mark.parametrize("track, rung, size, options, order", CASES, ids=name_of)
def test_rungs(track, rung, size, options, order):
    assert run_checked(track, size, order, solution(track), rung, **options) == []


@pytest.mark.slow  # two minutes
@pytest.mark.parametrize("track, rung, size, options, order", MORE, ids=name_of)
def test_rungs_at_other_sizes_and_orders(track, rung, size, options, order):
    assert run_checked(track, size, order, solution(track), rung, **options) == []


LAST = [(track, track.rungs[-1]) for track in (AMPERE, HOPPER)]
OTHERS = [pytest.param(*pair, marks=pytest.mark.slow) for pair in LADDERS if pair not in LAST]


@pytest.mark.parametrize("track, rung", [*LAST, *OTHERS], ids=name_of)
def test_rungs_neither_spill_nor_outgrow_the_chip(track, rung):
    """At 4096, in each type: no spills, at most 227 KB of shared memory."""
    make = getattr(load_kernels(solution(track)), rung.builder)
    artifact = make(4096, 4096, 4096, **rung.variants[0]).artifact
    assert (artifact.spills, artifact.stack) == (0, 0) and artifact.shared_bytes <= 227 << 10


@pytest.mark.parametrize("track, rung", LADDERS, ids=name_of)
def test_rungs_refuse_what_does_not_fit(track, rung):
    make = getattr(load_kernels(solution(track)), rung.builder)
    for size, name in (((0, 64, 64), "M"), ((64, 60, 64), "N"), ((64, 64, 12), "K")):
        with pytest.raises(ValueError, match=f"{name} must be a multiple of"):
            make(*size)
    with pytest.raises(ValueError, match="must be"):
        make(64, 64, 64, **{next(iter(rung.variants[0])): "float64"})


@pytest.mark.parametrize("tile_k", [32, 64])
def test_hopper_with_longer_slices(tile_k):
    a, b = inputs(HOPPER, (64, 128, 192))
    d = build_gemm_m64n64(64, 128, 192, tile_k=tile_k)(a, b)
    assert np.allclose(d, HOPPER.reference(a, b), atol=1e-5)


@pytest.mark.parametrize("track", [AMPERE, HOPPER], ids=["ampere", "hopper"])
def test_shapes_that_do_not_fit(track):
    builder = getattr(load_kernels(solution(track)), track.builder)
    for size, name in (((65, 64, 64), "M"), ((64, 0, 64), "N"), ((64, 64, 24), "K")):
        with pytest.raises(ValueError, match=f"{name} must be a multiple of"):
            builder(*size)


def test_an_untouched_file_says_so():
    for student in FILES.values():
        command = [sys.executable, student.parent / "run.py", "--sizes", "64"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2 and "is not implemented yet" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_script_prints_one_line_per_size_and_framework():
    script = [sys.executable, ROOT / "tracks/hopper/run.py", "--frameworks", "numpy"]
    options = ["--kernels", solution(HOPPER), "--sizes", "64", "64x128x96"]
    done = subprocess.run([*script, *options], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert [line.startswith("[numpy OK  ] M=   64") for line in lines] == [True, True]


LATE = {  # what shows only once a ring is used again, or a group of tiles is left
    "no wait in every other round": (HOPPER, "ring", "    empty.wait(", "    if k % 2 == 0: empty.wait("),
    "another stage is released": (HOPPER, "persistent", "empty.ptr_to([last])", "empty.ptr_to([ring.stage])"),
    "no tile after the first ones": (AMPERE, "swizzle", "prefetch(k % STAGES, k + STAGES)", "pass"),
    "a tile in another stage": (AMPERE, "one_barrier", "prefetch(free, k", "prefetch(stage, k"),
    "groups of tiles": (HOPPER, "blocks", "meta_var(place(tile,", "meta_var(place(tile % (16 * NT),"),
}


@pytest.mark.parametrize("mistake", LATE)
def test_a_rungs_sizes_show_what_goes_wrong_late(mistake, tmp_path):
    track, name, good, bad = LATE[mistake]
    rung = next(rung for rung in track.rungs if rung.builder == f"build_gemm_{name}")
    head, mark, rest = solution(track).read_text().partition(f"def {rung.builder}(")
    assert good in rest
    file = tmp_path / "kernels.py"
    file.write_text(head + mark + rest.replace(good, bad, 1))
    late = reversed(rung.cases)
    assert any(run_checked(track, size, "program", file, rung, **options) for size, options in late)


BUGS = {
    "the last tile is not waited for": ("wait_group(0)", "wait_group(STAGES - 1)"),
    "no barrier before the prefetch": (
        "Tx.cuda.cta_sync()  # every warp has read this stage: now it may be overwritten",
        "pass",
    ),
    "no barrier behind the wait": (
        "Tx.cuda.cta_sync()  # a thread waits for its own copies only; the others' are there now too",
        "pass",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_broken_pipeline_does_not_pass(bug, tmp_path):
    """The tail's wait and both barriers are needed: without one, some order shows it."""
    text = solution(AMPERE).read_text()
    good, bad = BUGS[bug]
    assert text.count(good) == 1
    file = tmp_path / "kernels.py"
    file.write_text(text.replace(good, bad))
    assert any(run_checked(AMPERE, (64, 64, 128), order, file) for order in ("adverse", "program", 1, 2, 3))
