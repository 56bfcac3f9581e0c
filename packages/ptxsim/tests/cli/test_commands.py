"""`ptxsim run`, `show`, `predict`: their output, their exit codes, and one line for bad input."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxsim.cli.app import main
from ptxsim.cli.nvcc import linked, rewritten
from ptxsim.cli.specs import argument
from ptxsim.driver.telling import short
from ptxsim.jit import code_cache

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
SCALE = """.visible .entry {name}(.param .u64 a, .param .u64 b, .param .f32 f) {{
  .shared .align 4 .b8 tile[128];
  .reg .b64 %a, %b, %o; .reg .b32 %t, %s, %u; .reg .f32 %x, %f;
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.f32 %f, [f];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %a, %a, %o; add.u64 %b, %b, %o;
  mov.u32 %s, tile; mad.lo.u32 %u, %t, 4, %s; xor.b32 %s, %u, 64;
  ld.global.f32 %x, [%a]; mul.f32 %x, %x, %f; st.shared.f32 [%u], %x;
  {barrier}
  ld.shared.f32 %x, [%s]; st.global.f32 [%b], %x; ret;
}}
"""
GOOD = HEAD + SCALE.format(name="scale", barrier="bar.sync 0;")
RACE = HEAD + SCALE.format(name="scale", barrier="")


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """command(words ..) -> (exit code, stdout, stderr), in a folder with files;
    compiling is not announced.
    """
    monkeypatch.setenv(code_cache.ANNOUNCED, "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.ptx").write_text(GOOD)
    (tmp_path / "race.ptx").write_text(RACE.replace("%s, %u, 64", "%s, %u, 128").replace("[128]", "[256]"))
    (tmp_path / "two.ptx").write_text(GOOD + SCALE.format(name="other", barrier="bar.sync 0;"))
    a = np.arange(32, dtype=np.float32)
    np.save("a.npy", a)
    np.save("right.npy", 2 * np.roll(a, 16))

    def run(*words: str):
        monkeypatch.setattr(sys, "argv", ["ptxsim", *words])
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return end.value.code or 0, told.out, told.err

    return run


ARGS = ("a.npy", "zeros:f32:32", "f32:2", "--block", "32")


def test_run_checks_saves_and_compares(command):
    code, out, err = command(
        "run",
        "good.ptx",
        *ARGS,
        "--orders",
        "program,adverse,5",
        "--check-against",
        "1=right.npy",
        "--out",
        "1=b.npy",
    )
    assert (code, err) == (0, "") and out.count(": clean, ") == 3
    assert np.array_equal(np.load("b.npy"), np.load("right.npy"))


def test_run_tells_wrong_numbers(command):
    code, _, err = command("run", "good.ptx", *ARGS, "--check-against", "1=a.npy")
    assert code == 1 and "argument 1: " in err and "first (0,): 32.0, not 0.0" in err


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_run_tells_a_race_in_every_format(command, form):
    two_warps = ("random:f32:64", "zeros:f32:64", "1.5", "--block", "64")
    code, out, _ = command(
        "run", "race.ptx", *two_warps, *(["--json"] if form == "json" else ["--format", form])
    )
    assert code == 1
    if form == "sarif":
        (result, *_) = json.loads(out)["runs"][0]["results"]
        assert result["ruleId"] == "race" and result["level"] == "error"
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] > 3
    elif form == "json":
        (run,) = json.loads(out)["runs"]
        assert run["verdict"] == "error" and run["findings"][0]["kind"] == "race"
    else:
        assert out.startswith("::error file=race.ptx,line=" if form == "github" else "error: race: ")


def test_run_writes_a_timeline(command, tmp_path):
    assert command("run", "good.ptx", *ARGS, "--trace", "t.json")[0] == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_run_writes_a_page(command, tmp_path):
    (tmp_path / "bad.ptx").write_text(GOOD.replace("bar.sync 0;", ""))
    for file, code, verdict in (("good.ptx", 0, "clean"), ("bad.ptx", 1, "error")):
        assert command("run", file, *ARGS, "--report", "r.html", "--orders", "program,7")[0] == code
        text = (tmp_path / "r.html").read_text()
        assert text.count(f"<td class='{verdict}'>") == 2 and "<svg" in text and "grid 1" in text
        assert ("<section>" in text and "class='here'" in text) == (verdict == "error")


def test_show(command):
    code, out, _ = command("show", "two.ptx")
    assert code == 0 and "kernel scale" in out and "kernel other" in out
    assert "parameters: u64 (8 B), u64 (8 B), f32 (4 B)" in out and "shared memory: 128 B" in out
    assert "ld.global 1" in out and "bar.sync 1" in out


def test_show_tells_what_would_be_refused(command, tmp_path):
    (tmp_path / "odd.ptx").write_text(GOOD.replace("bar.sync 0;", "suq.width.b32 %t, [a];"))
    assert "refused: line" in command("show", "odd.ptx")[1]
    code, out, _ = command("run", "odd.ptx", *ARGS)
    assert code == 3 and "ptxsim cannot run scale" in out


def test_run_tells_a_modifier_that_it_does_not_know_in_one_line(command, tmp_path):
    """Whatever else was requested: in every order, and compared with values that nobody could compute."""
    text = GOOD.replace("ld.global.f32", "ld.global.sideways.f32")
    (tmp_path / "odd.ptx").write_text(text)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "sideways" in row)
    code, out, err = command(
        "run", "odd.ptx", *ARGS, "--orders", "program,7", "--check-against", "1=ones:f32:64"
    )
    assert code == 3 and err == "" and out.count("\n") == 1
    assert f"line {line}: modifier .sideways of ld is not modelled" in out


def test_predict(command):
    code, out, err = command("predict", "good.ptx", *ARGS)
    assert code == 0 and "scale on an H200: " in out and "not measured" in out, err


BAD = [  # words, what the line holds
    (["run", "missing.ptx"], "missing.ptx cannot be read: No such file"),
    (["run", "two.ptx"], "two.ptx has 2 kernels: choose one by --entry (scale, other)"),
    (["run", "good.ptx", "--entry", "no"], "no kernel 'no' (kernels: scale)"),
    (["run", "good.ptx", "zeros:f32:8"], "scale takes 3 arguments (got 1)"),
    (["run", "good.ptx", "zeros:f33:8", "1", "1"], "an array must be FILE.npy or"),
    (["run", "good.ptx", "zeros:f32:8x", "1", "1"], "a shape must be numbers"),
    (["run", "good.ptx", "b.npy", "1", "1"], "b.npy cannot be read"),
    (["run", "good.ptx", "map:a.npy:swizzle=128", "1", "1"], "a tensor map must be map:ARRAY:box="),
    (["run", "good.ptx", "map:a.npy:box=3", "1", "1"], "inner box of 12 B is not a multiple of 16 B"),
    (["run", "good.ptx", "wrong", "1", "1"], "an argument must be one of FILE.npy"),
    (["run", "good.ptx", "u8:300", "1", "1"], "'300' is not a valid u8"),
    (["run", "good.ptx", *ARGS, "--grid", "0"], "--grid must be up to three positive numbers"),
    (["run", "good.ptx", *ARGS, "--block", "2048"], "a CTA has at most 1024"),
    (["run", "good.ptx", *ARGS, "--orders", "sideways"], "--order must be program, adverse or a seed"),
    (["run", "good.ptx", *ARGS, "--format", "xml"], "--format must be one of text, json"),
    (["run", "good.ptx", *ARGS, "--out", "7=x.npy"], "--out must be N=FILE, N below 3"),
    (["run", "good.ptx", *ARGS, "--out", "2=x.npy"], "argument 2 is a scalar"),
    (["run", "good.ptx", *ARGS, "--check-against", "1=zeros:f32:8"], "argument 1 has shape (32,)"),
    (["show", "a.npy"], "neither PTX, a fat binary"),
    (["predict", "good.ptx", *ARGS, "--chip", "t4"], "--chip must be one of b200, h200"),
]


@pytest.mark.parametrize("words, line", BAD)
def test_bad_input_is_one_line(command, words, line):
    code, out, err = command(*words)
    assert code == 2 and out == "" and err.count("\n") == 1, (out, err)
    assert line in err


def test_text_that_is_not_ptx(command, tmp_path):
    (tmp_path / "broken.ptx").write_text(GOOD.replace("ret;", "ret"))
    code, _, err = command("run", "broken.ptx", *ARGS)
    assert code == 2 and err.startswith("ptxsim: broken.ptx: line ") and err.count("\n") == 1


def test_words_of_arguments():
    assert argument("7") == 7 and argument("0x10") == 16 and argument("2.5") == 2.5
    assert argument("u64:7").dtype == np.uint64 and argument("bf16:1.5") == 1.5
    assert np.isnan(argument("nan:f16:4x2")).all() and argument("arange:i32:2x2").tolist() == [[0, 1], [2, 3]]
    assert np.array_equal(argument("random:f16:8:3"), argument("random:f16:8:3"))
    assert not np.array_equal(argument("random:u8:64:3"), argument("random:u8:64:4"))
    tensor = argument("map:zeros:f16:128x64:box=64x32:swizzle=128:fill=nan")
    assert (tensor.dims, tensor.box, tensor.swizzle, tensor.fill) == ((64, 128), (64, 32), 128, "nan")


KEPT = [  # nvcc's arguments, the arguments that result
    (["-arch=sm_90a", "x.cu"], ["-gencode", "arch=compute_90a,code=compute_90a", "x.cu"]),
    (["-arch", "sm_80", "x.cu"], ["-gencode", "arch=compute_80,code=compute_80", "x.cu"]),
    (["-gencode", "arch=compute_90,code=sm_90"], ["-gencode", "arch=compute_90,code=compute_90"]),
    (["-gencode=arch=compute_90,code=[sm_90,compute_90]"], ["-gencode", "arch=compute_90,code=compute_90"]),
    (["x.cu"], ["x.cu", "-gencode", "arch=compute_90a,code=compute_90a"]),
]


@pytest.mark.parametrize("words, expected", KEPT)
def test_nvcc_keeps_the_ptx(words, expected):
    assert rewritten(words) == [*expected, "-lineinfo"]


def test_nvcc_links_the_stand_in_for_the_driver():
    words = linked(["a.cu", "-lcuda", "-o", "a"])
    assert words[:2] == ["a.cu", "-L"] and words[3:] == ["-l:libcuda.so.1", "-o", "a"]
    assert (Path(words[2]) / "libcuda.so.1").exists() and linked(["a.cu"]) == ["a.cu"]


@pytest.mark.parametrize(
    "mangled, name",
    [
        ("_Z3addPKfPfi", "add"),
        ("_Z4gemmILi128EEvPf", "gemm<128>"),
        ("_ZN7cutlass6KernelINS_4GemmILb1EEEEEvNT_6ParamsE", "cutlass::Kernel<cutlass::Gemm<true> >"),
        ("plain", "plain"),
    ],
)  # fmt: skip
def test_names_of_kernels(mangled, name):
    assert short(mangled) == name


def test_what_runs_long_is_told_again_and_again(capfd):
    import signal

    from ptxsim.driver.telling import patience

    before = signal.getsignal(signal.SIGALRM)
    with patience("running gemm <<<4, 256>>>"):
        for _ in range(2):
            signal.raise_signal(signal.SIGALRM)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 10
    assert capfd.readouterr().err == "ptxsim: running gemm <<<4, 256>>>: 0 s so far\n" * 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0) and signal.getsignal(signal.SIGALRM) == before


@pytest.mark.parametrize("cold", [True, False])
def test_the_first_run_says_that_it_compiles(cold, monkeypatch, capsys):
    from ptxsim.driver import first_time, telling
    from ptxsim.jit import code_cache

    compiled = []
    monkeypatch.setenv(code_cache.ANNOUNCED, "")
    monkeypatch.setattr(code_cache, "is_cold", lambda: cold)
    monkeypatch.setattr(first_time, "compile_with_bar", lambda: compiled.append(1))
    telling.announce_compilation()
    assert capsys.readouterr().err == (f"ptxsim: {code_cache.FIRST_RUN}\n" if cold else "")
    assert compiled == [1] * cold
