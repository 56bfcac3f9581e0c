"""Bad input to each command: one line that says what is wrong, exit code 2, never a traceback.

The command lines are generated: each kind of bad file with each command, each bad word in each place.
"""

import random

import numpy as np
import pytest
import typer
from test_commands import ARGS, GOOD, HEAD, command  # noqa: F401  the fixture

from ptxsim.cli.app import app
from ptxsim.cli.scripts import LANGUAGES

RNG = random.Random(28)
FILES = {  # name -> its bytes
    "empty.ptx": b"",
    "random.ptx": RNG.randbytes(500),
    "words.ptx": b"hello world\n",
    "none.ptx": HEAD.encode(),
    "half.ptx": GOOD[: len(GOOD) // 2].encode(),
    "target.ptx": GOOD.replace("sm_90a", "sm_9x").encode(),
    "narrow.ptx": GOOD.replace(".address_size 64", ".address_size 32").encode(),
    "elf.bin": b"\x7fELF" + bytes(100),
    "short.bin": b"\x50\xed\x55\xba\x01\x00\x10\x00\0\0\0",
    "damaged.bin": b"\x50\xed\x55\xba\x01\x00\x10\x00" + (200).to_bytes(8, "little") + RNG.randbytes(200),
    "byte.bin": b"a",
    "words.npy": b"this is no array",
    "empty.npy": b"",
}
ARRAYS = {
    "structs.npy": np.zeros(3, [("a", "f4")]),
    "letters.npy": np.array(["ab", "c"]),
    "none.npy": np.zeros(0, "f4"),
    "objects.npy": np.array([1, None], object),
}
WORDS = """
    missing.npy folder.npy words.npy empty.npy structs.npy letters.npy none.npy objects.npy zeros
    zeros:f32 zeros:f32: zeros:f32:0 zeros:f32:-1 zeros:f32:1x zeros:f99:3 zeros:f32:3:4:5
    zeros:f32:99999999999999 zeros:f32:4294967296x4294967296 zeros:f32:² random:f32:8:x
    random:f32:99999999999999999 nan:i32:4 arange:f32:9999999999999 map: map:a.npy map:a.npy:box=
    map:a.npy:box=0 map:a.npy:box=64x64x64x64x64x64 map:a.npy:box=32:swizzle=abc
    map:a.npy:box=32:swizzle=77 map:a.npy:box=32:fill=x map:a.npy:box=32:foo=1 map:missing.npy:box=3
    map:none.npy:box=1 map::box=3 f32: f32:x i32:1.5 i32:99999999999 u8:-1 f99:1 abc 0x ☃
    99999999999999999999999999 map:zeros:f32:8:box=8
"""
SHAPES = """
    0 -1 nan 1.5 1e3 x 1x 1x1x1x1 99999999999 1x65536x1 1x1x99999 0x10 ²
"""
OPTIONS = """
    --entry=nope --arch= --arch=x --arch=sm_ --orders= --orders=x --orders=program, --orders=-1 --out=x
    --out=0 --out=9=a.npy --out=0=nowhere/x.npy --out=0=folder.npy --out=2=q.npy --check-against=0
    --check-against=9=a.npy --check-against=0=missing.npy --check-against=2=a.npy
    --check-against=0=zeros:f32:3 --rtol=x --rtol=nan --atol=-1 --trace=nowhere/t.json
    --trace=folder.npy --report=nowhere/t.html --format=xml --shared=-1 --shared=x --shared=99999999999
    --nope
"""
EXEC = """
    missing folder.npy plain.sh ./plain.sh ./shebang --chip=x --order=x --check-first=-1 --jobs=x
    --json=nowhere/a.json --json=folder.npy --nope
"""


@pytest.fixture
def refused(command, tmp_path):  # noqa: F811
    """refused(words ..): the one line that the command prints."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    for name, array in ARRAYS.items():
        np.save(tmp_path / name, array, allow_pickle=True)
    for name in ("folder.npy", "folder.ptx"):
        (tmp_path / name).mkdir()
    (tmp_path / "plain.sh").write_text("echo")
    (tmp_path / "shebang").write_text("#!/nowhere/sh\n")
    (tmp_path / "shebang").chmod(0o755)

    def run(*words: str) -> str:
        code, _, told = command(*words)
        assert (code, len(told.splitlines())) == (2, 1), (words, code, told)
        assert told.startswith("ptxsim: ") and told.strip().isprintable(), (words, told)
        return told

    return run


@pytest.mark.parametrize("name", ["run", "show", "predict"])
def test_files(refused, name):
    args = ARGS if name != "show" else ()
    for file in (*FILES, "missing.ptx", "folder.ptx", "", ".", "/dev/null", "missing.cu"):
        if (name, file) != ("show", "none.ptx"):  # which says that it holds no kernel
            refused(name, file, *args)


@pytest.mark.parametrize("name", ["run", "predict"])
def test_arguments(refused, name):
    for word in WORDS.split():
        refused(name, "good.ptx", word, *ARGS[1:])
        refused(name, "good.ptx", *ARGS[:2], word, *ARGS[3:])
    for count in (0, 1, 2, 4):
        refused(name, "good.ptx", *["a.npy"] * count, "--block", "32")
    refused(name, "good.ptx", *["a.npy"] * 3, "--block", "32")


@pytest.mark.parametrize("name", ["run", "predict"])
@pytest.mark.parametrize("option", ["--grid", "--block", "--cluster"])
def test_shapes(refused, name, option):
    for shape in SHAPES.split():
        refused(name, "good.ptx", *ARGS, option, shape)


def test_options(refused):
    for option in OPTIONS.split():
        refused("run", "good.ptx", *ARGS, option)
    for option in ("--chip=a1", "--entry=nope", "--registers=256", "--nope"):
        refused("predict", "good.ptx", *ARGS, option)


def test_exec(refused):
    for word in EXEC.split():
        refused("exec", word, *(["/bin/true"] if word.startswith("--") else []))


@pytest.mark.parametrize("jobs", ["abc", "0", "-1", "1.5", " "])
def test_the_number_of_processes(refused, monkeypatch, jobs):
    monkeypatch.setenv("PTXSIM_JOBS", jobs)
    assert jobs in refused("run", "good.ptx", *ARGS)


@pytest.mark.parametrize("name", ["exec", "run", "show", "predict", *LANGUAGES])
def test_every_option_that_a_command_has(refused, name, tmp_path):
    """Misspelt, a flag with a value, an option without its value, and invalid numbers."""
    (tmp_path / "good.py").write_text("")
    own_words = name in ("exec", *LANGUAGES)  # all words after the program are its own
    words = {"exec": ["/bin/true"], "show": ["good.ptx"]}.get(name, ["good.ptx", *ARGS])
    words = ["good.py"] if name in LANGUAGES else words
    options = [p for p in typer.main.get_command(app).commands[name].params if p.opts[0].startswith("--")]
    assert options
    for option in options:
        for called in [each for each in option.opts + option.secondary_opts if each.startswith("--")]:
            refused(name, f"{called}x=1", *words)
            if option.is_flag:
                refused(name, f"{called}=1", *words)
                continue
            refused(name, *([] if own_words else words), called)
            if isinstance(option.default, int | float):
                for bad in ("", "x", "nan", "-1", "²", "0x", "1,2"):
                    more = [f"{called}={bad}"]
                    refused(name, *(more + words if own_words else words + more))


@pytest.mark.parametrize("language", LANGUAGES)
def test_scripts(refused, language):
    for words in (["missing.py"], ["folder.ptx"], ["--order=x", "plain.sh"], ["--chip=x", "plain.sh"]):
        refused(language, *words)


def test_nvcc_that_is_not_there(refused, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    monkeypatch.setattr("ptxsim.cli.nvcc.Path.glob", lambda *_: [])
    assert "nvcc was not found" in refused("nvcc", "x.cu")


def test_damaged_files_are_shown_or_refused(command, tmp_path):  # noqa: F811
    for _ in range(150):
        data = bytearray(GOOD.encode())
        for _ in range(RNG.randint(1, 4)):
            data[RNG.randrange(len(data))] = RNG.randrange(256)
        (tmp_path / "damaged.ptx").write_bytes(data[: RNG.randrange(len(data) // 2, len(data) + 1)])
        code, _, told = command("show", "damaged.ptx")
        assert (code, told) == (0, "") or (code == 2 and len(told.splitlines()) == 1), (data, told)
