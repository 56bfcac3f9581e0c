"""`./lab check|trace|inspect|bench hopper|ampere [RUNG]`: what they print, and how they end on bad input."""

import json
import re

import pytest

from tirxlab.cli.app import main
from tirxlab.cli.common import ROOT, UserError
from tirxlab.cli.tracks import one_rung, rungs_of, source, track_of
from tirxlab.cli.tracks_plot import svg
from tirxlab.steps import UntouchedStep

ROW = {"dtype": "bfloat16", "spread": 0.01, "ms": 0.2, "clock_mhz": 1350, "watts": 690, "samples": 5}
ROWS = [
    {**ROW, "size": size, "rung": rung, "kernel": kernel, "tflops": rate, "ratio": 1.0}
    for size in ("2048", "4096")
    for rung, kernel, rate in ((None, "cublas", 600.0), (9, "build_gemm_curve", 650.0))
]


def lab(*arguments) -> int:
    return main(list(arguments))


def test_check_runs_a_rung_from_the_solution_and_says_so(capfd):
    assert lab("check", "hopper", "2", "--size", "128", "--order", "adverse", "--json") == 0
    printed = capfd.readouterr()
    (run,) = json.loads(printed.out)["runs"]
    assert (run["right"], run["verdict"]) == (True, "clean")
    assert "this is the solution" in printed.err


def with_mistake(tmp_path, track: str, builder: str, good: str, bad: str):
    """The solution with the first `good` of a builder (or of a helper) replaced."""
    text = (ROOT / f"instructor/solutions/{track}_kernels.py").read_text()
    head, mark, rest = text.partition(f"def {builder}(")
    assert mark and good in rest
    path = tmp_path / f"{track}_kernels.py"
    path.write_text(head + mark + rest.replace(good, bad, 1))
    return path


@pytest.mark.parametrize(
    "track, rung, builder, good, bad, said",
    [
        ("hopper", "1", "build_gemm_m64n64", "K // tile_k", "K // tile_k - 1", "lacks columns 48-63 of K"),
        ("hopper", "2", "build_gemm_ring", "k_st : k_st + BK]", "0 : BK]", "A times K tile 1 of B"),
        ("ampere", "8", "write_coalesced", "acc[i, j, r * 2], acc[i, j, r * 2 + 1]",
         "acc[i, j, r * 2 + 1], acc[i, j, r * 2]", "its columns are swapped: 0 holds 1, 1 holds 0"),
    ],
)  # fmt: skip
def test_check_says_what_wrong_numbers_hold_and_stops(track, rung, builder, good, bad, said, tmp_path, capfd):
    path = with_mistake(tmp_path, track, builder, good, bad)
    assert lab("check", track, rung, "--kernels", str(path), "--json") == 1
    printed = capfd.readouterr()
    runs = json.loads(printed.out)["runs"]
    assert [run["right"] for run in runs] == [True] * (len(runs) - 1) + [False]
    assert "elements are wrong" in runs[-1]["message"] and said in runs[-1]["message"]


def test_check_keeps_the_compilers_warnings_to_itself(tmp_path, capfd):
    path = with_mistake(tmp_path, "ampere", "write_coalesced", "with Tx.thread():", "with Tx.warp():")
    assert lab("check", "ampere", "8", "--size", "64", "--kernels", str(path)) == 1
    printed = capfd.readouterr()
    assert "never written" in printed.out and "UserWarning" not in printed.err


def test_a_kernel_with_other_parameters_is_told_at_its_line(tmp_path, capfd):
    path = with_mistake(
        tmp_path, "ampere", "build_gemm_ldmatrix", "A: Tx.Buffer((M, K)", "A: Tx.Buffer((K, M)"
    )
    assert lab("check", "ampere", "2", "--kernels", str(path)) == 1
    said = r"ampere_kernels\.py:\d+: the kernel takes A as \(136, 200\) bfloat16, and is called with A, \(200"
    assert re.search(said, capfd.readouterr().err)


def test_inspect_shows_a_rung(capfd):
    assert lab("inspect", "hopper", "5", "256", "--as", "regs") == 0
    assert "(2, 2, 1)" not in capfd.readouterr().out.splitlines()[0]


def test_trace_draws_a_rung(capfd):
    assert lab("trace", "hopper", "2", "--size", "128x128x256") == 0
    assert "Hopper rung 2 at 128x128x256" in capfd.readouterr().out


@pytest.mark.parametrize(
    "words, message",
    [
        (("check", "hopper", "12"), "not a rung of hopper"),
        (("check", "3", "2"), "write several steps as 1,2 and a size as --size 256"),
        (("check", "hopper", "2", "--kernels", "no.py"), "no such file"),
        (("check", "hopper", "2", "--size", "64x60x64"), "N must be a multiple of 8"),
        (("inspect", "hopper", "2", "64", "64"), "one argument too many"),
        (("inspect", "hopper", "2", "--as", "xml"), "no view 'xml'"),
        (("trace", "hopper", "2,3"), "one rung"),
        (("bench", "hopper", "--against", "mkl"), "takes cublas and pyptx"),
        (("bench", "ampere", "--dtype", "float16"), "takes bfloat16 or float32"),
        (("bench", "hopper", "--out", "x.png"), "must end in .svg or .json"),
        (("bench", "hopper", "--artifacts", "nowhere"), "no such folder"),
        (("bench", "hopper", "--rounds", "0"), "1 or more"),
    ],
)
def test_bad_input_is_one_line(words, message, capfd):
    assert lab(*words) == 2
    said = capfd.readouterr().err.strip().splitlines()
    assert message in said[-1]


def test_bench_without_such_a_gpu_is_one_line(capfd, monkeypatch):
    for have, text in (([], "there is none here"), ([(7, 5)], "this one has 7.5")):
        monkeypatch.setattr("tirxlab.devices.driver.capabilities", lambda have=have: have)
        assert lab("bench", "hopper") == 0
        assert capfd.readouterr().out.strip().endswith(text)


def test_bench_saves_artifacts_for_a_machine_without_tvm(tmp_path, capfd):
    assert lab("bench", "ampere", "2", "--size", "128", "--save", str(tmp_path)) == 0
    assert [f.name for f in tmp_path.iterdir()] == ["ampere2_128_bfloat16.lab"]


def test_rungs_are_named_by_number():
    track = track_of("hopper")
    assert [r.number for r in rungs_of(track, "3,2,3")] == [3, 2]
    assert one_rung(track, None) is track.rungs[-1] and len(rungs_of(track, None)) == len(track.rungs)
    with pytest.raises(UserError):
        rungs_of(track, "x")


def test_a_rung_that_is_written_nowhere():
    track = track_of("hopper")
    with pytest.raises(UntouchedStep, match="rung 3, build_gemm_wide, is not implemented yet"):
        source(track, track.rungs[2], ROOT / "tracks/hopper/kernels.py")


@pytest.mark.parametrize("rows", [ROWS, ROWS[:2]], ids=["curves", "bars"])
def test_the_plot_names_every_kernel(rows):
    made = svg({"track": "hopper", "gpu": "<NVIDIA>", "rows": rows})
    assert made.startswith("<svg") and "9 curve" in made and "cublas" in made and "&lt;NVIDIA&gt;" in made
