"""`ptxsim exec`: a C program that calls CUDA's driver and runtime, with the stand-in as its only CUDA."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ptxsim
from ptxsim.cli.app import main
from ptxsim.driver.build import library

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is for Linux"),
    pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler"),
]
NO_ARRAYS = "ptxsim: cudaMallocArray is not modelled: it gives error 801 (not supported)"
SOURCE = Path(ptxsim.__file__).resolve().parents[1]
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
ADD = (
    HEAD
    + """.visible .global .align 4 .u32 counter = 100;
.visible .entry add(.param .u64 p, .param .u32 n) {
  .reg .b64 %p, %o; .reg .b32 %i, %c, %x, %n; .reg .pred %q;
  ld.param.u64 %p, [p]; ld.param.u32 %n, [n];
  mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %i, %c, 32, %i;
  mul.wide.u32 %o, %i, 4; add.u64 %p, %p, %o;
  ld.global.u32 %x, [%p]; add.u32 %x, %x, %n; st.global.u32 [%p], %x;
  setp.ne.u32 %q, %i, 0; @%q ret;
  ld.global.u32 %x, [counter]; add.u32 %x, %x, 1; st.global.u32 [counter], %x; ret;
}
"""
)


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The compiled programs.c, linked against the stand-in alone."""
    folder = tmp_path_factory.mktemp("exec")
    out, standin = folder / "program", library()
    command = ["cc", "-w", str(Path(__file__).with_name("programs.c")), "-o", str(out), f"-L{standin}"]
    subprocess.run([*command, "-l:libcuda.so.1", f"-Wl,-rpath-link,{standin}"], check=True)
    (folder / "add.ptx").write_text(ADD)
    return out


def execute(program: Path, part: str, *options: str, ptx: str = ADD):
    """(the command's exit code, the launches that it recorded)."""
    text, report = program.with_name("kernel.ptx"), program.with_name("report.json")
    text.write_text(ptx)
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "ptxsim",
        "exec",
        "--json",
        str(report),
        *options,
        str(program),
        part,
        str(text),
    ]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280)
    return done, json.loads(report.read_text())["launches"] if report.exists() else []


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_driver_api(program, order):
    done, launches = execute(program, "driver", "--order", order)
    assert done.stdout == "wrong 0 counter 102 SMs 132 encode 1 freed twice 1\n", done.stderr
    assert done.returncode == 0 and [x["verdict"] for x in launches] == ["clean", "clean"]
    assert "2 launches of 1 kernel as on an NVIDIA H200: 2 clean" in done.stderr


PARTS = ("asks", "runtime", "graphs", "hosts", "heap")


@pytest.fixture(scope="module")
def several(program):
    """What PARTS print, a line each, in one process, and that process."""
    done, launches = execute(program, ",".join(PARTS))
    return dict(zip(PARTS, done.stdout.splitlines(), strict=True)), done, launches


def test_the_driver_is_asked_for_occupancy_and_streams(several):
    lines, done, _ = several
    told = "block 1024 grid 264 blocks 2 small 64 limited 40 room 115712 called 1 priority -2 bytes 7171"
    assert lines["asks"] == told and done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "not modelled" in line] == [NO_ARRAYS]


def test_the_chip_is_the_one_asked_for(program):
    assert "SMs 148" in execute(program, "driver", "--chip", "b200")[0].stdout
    done, _ = execute(program, "driver", "--chip", "a100")
    assert "load: 209" in done.stdout and "for sm_90, which sm_80 cannot run" in done.stderr


def test_runtime_with_a_captured_graph_symbols_and_managed_memory(several):
    lines, done, launches = several
    assert lines["runtime"] == "last 5 counter 103 timed 1 unknown 98 98 0", done.stderr
    assert {x["verdict"] for x in launches} == {"clean"} and len(launches) > 3


def test_a_launch_that_repeats_one_is_not_run_again(program):
    done, launches = execute(program, "repeats", "--order", "adverse")
    assert done.stdout == "wrong 0 then 44\n", done.stderr
    assert [x["same_as"] for x in launches] == [0, 0, 2, 2, 2, 0]
    assert [x["verdict"] for x in launches] == ["clean"] * 6
    assert "ptxsim: #5 add <<<2, 32>>> clean, as #2: same memory" in done.stderr


def test_graphs_run_as_their_edges_say_and_have_memory_of_their_own(several):
    told = "abab edges 4 values 7 more 7 0 circle 1 captured 1010101 array 801"
    assert several[0]["graphs"] == told, several[1].stderr


def test_a_kernel_reaches_registered_memory_of_the_program(several):
    assert several[0]["hosts"] == "early 1 wrong 0 after 1471 again 1", several[1].stderr


def test_registered_memory_of_the_heap_and_two_parts_of_one_page(several):
    assert several[0]["heap"] == "wrong 0", several[1].stderr


def test_an_access_outside_is_an_error_that_stays(program):
    done, launches = execute(program, "outside")
    assert done.stdout == "launch 700 sync 700 free 0\n"
    assert done.returncode == 1 and launches[0]["findings"][0]["kind"] == "out-of-bounds"
    assert "past the end of cudaMalloc #" in done.stderr


def test_more_shared_memory_than_was_asked_for_is_refused(program):
    done, _ = execute(program, "shared")
    assert done.stdout == "before 1 set 0 too much 1 after 0\n"
    assert "cudaFuncAttributeMaxDynamicSharedMemorySize" in done.stderr


def test_static_arrays_beyond_the_default_need_no_attribute(program):
    """As on an H200, for code that ptxas accepts: sm_90 and later."""
    big = ADD.replace(".reg .b64 %p", ".shared .b8 big[100000]; .reg .b64 %p")
    done, _ = execute(program, "shared", ptx=big)
    assert done.stdout == "before 0 set 0 too much 1 after 0\n", done.stderr
    done, _ = execute(program, "shared", ptx=big.replace("100000", "200000"))
    assert done.stdout == "before 1 set 1 too much 1 after 1\n"
    assert "260000 B of shared memory, but a block has at most 232448 B" in done.stderr


def test_a_launch_that_cannot_be_is_told_though_the_program_does_not_look(program):
    done, launches = execute(program, "shapes")
    assert done.stdout == "9 9 9 9 then 0\n" and len(launches) == 1
    told = [line for line in done.stderr.splitlines() if "is not launched, error 9" in line]
    assert told[0] == "ptxsim: add <<<0x1x1, 32x1x1>>> is not launched, error 9: it has no threads"
    assert [line.rpartition(": ")[2] for line in told[1:]] == [
        "a grid has at most 65535 blocks in y and z",
        "a block has at most 64 threads in z",
        "a block has at most 1024 threads",
    ]


MEET = (
    HEAD
    + """.visible .entry add(.param .u64 p, .param .u32 n) {
  .reg .b64 %p; .reg .b32 %x; .reg .pred %q; ld.param.u64 %p, [p];
  mov.u32 %x, %tid.x; setp.ne.u32 %q, %x, 0; @%q ret; red.release.gpu.global.add.u32 [%p], 1;
  ASK: ld.acquire.gpu.global.u32 %x, [%p]; setp.lt.u32 %q, %x, 42; @%q bra ASK; ret;
}
"""
)


def test_a_cooperative_launch_fits_on_the_chip_and_its_blocks_may_wait_for_each_other(program):
    done, launches = execute(program, "together", ptx=MEET)
    assert done.stdout == "720 0 0\n" and "at most 4224 such blocks can run at once" in done.stderr
    assert [x["verdict"] for x in launches] == ["clean", "incomplete"]


def test_the_exit_code_of_the_program_goes_first(program):
    assert execute(program, "fails")[0].returncode == 5


def test_a_kernel_that_is_not_modelled_is_incomplete(program):
    done, launches = execute(
        program,
        "driver",
        ptx=ADD.replace("  ld.param.u64 %p", "  suq.width.b32 %x, [counter];\n  ld.param.u64 %p"),
    )
    assert done.returncode == 7 and "801" in done.stdout
    assert launches[0]["verdict"] == "incomplete" and "suq" in launches[0]["findings"][0]["message"]


@pytest.mark.parametrize(
    "words, line",
    [
        (["exec", "./not-there"], "ptxsim: ./not-there does not exist or is not executable"),
        (["exec", "--chip", "h1", "true"],
         "ptxsim: --chip must be one of a100, h200, b200, rtx5090, auto (got 'h1')"),
        (["exec", "--order", "x", "true"],
         "ptxsim: --order must be program, adverse or a seed such as 7 (got 'x')"),
        (["exec", "--frobnicate", "true"], "ptxsim: No such option: --frobnicate"),
        (["dance"], "ptxsim: No such command 'dance'."),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(words, line, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["ptxsim", *words])
    with pytest.raises(SystemExit) as end:
        main()
    told = capsys.readouterr()
    assert (end.value.code, told.err.strip(), told.out) == (2, line, "")


@pytest.mark.parametrize(
    ("name", "told"), [("program", True), ("libcublas.so.13", True), ("libnvrtc.so.13", False)]
)
def test_a_runtime_that_was_not_replaced_is_named_and_a_compiler_is_none(program, name, told):
    named = program.with_name("tables") / name
    named.parent.mkdir(exist_ok=True)
    shutil.copy(program, named)
    done, _ = execute(named, "tables")
    assert done.stdout == "error 500, a table: 0\n" and "launched no kernel" in done.stderr
    assert (f"{name} holds a CUDA runtime that could not be replaced" in done.stderr) is told


LINK = """
import ctypes, sys
cuda, link, size, module = ctypes.CDLL(None), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
ptx = open(sys.argv[1], "rb").read()
def add():
    return cuda.nvJitLinkAddData(link, 2, ptx, ctypes.c_size_t(len(ptx)), b"kernel")
first = cuda.nvJitLinkCreate(ctypes.byref(link), 0, None), add(), cuda.nvJitLinkComplete(link)
cuda.nvJitLinkGetLinkedCubinSize(link, ctypes.byref(size))
code = ctypes.create_string_buffer(size.value)
cuda.nvJitLinkGetLinkedCubin(link, code)
loaded = cuda.cuInit(0), cuda.cuModuleLoadData(ctypes.byref(module), code)
print(first, loaded, add(), code.value == ptx)
"""


def test_nvjitlink_gives_the_ptx_that_it_gets(program):
    """numba-cuda 0.30 links this way; a second text is refused."""
    words = ["exec", "--quiet", sys.executable, "-c", LINK, str(program.with_name("add.ptx"))]
    done = subprocess.run([sys.executable, "-m", "ptxsim", *words], capture_output=True, text=True)
    assert done.stdout == "(0, 0, 0) (0, 0) 3 True\n"
    assert "nvJitLink: only one PTX text can be linked, not kernel" in done.stderr


def test_a_program_without_kernels_says_so():
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "ptxsim", "exec", "true"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "launched no kernel" in done.stderr


OWN_RUNTIME = """
__attribute__((noinline, visibility("hidden"))) int cudaRuntimeGetVersion(int *to) {
  for (int k = 0; k < 9; k++) *to += 11;
  return 0;
}
__attribute__((noinline, visibility("hidden"))) int cudaLaunchKernel(void *stub) { return stub ? 0 : 1; }
int version(void) { int found = 0; cudaRuntimeGetVersion(&found); return found; }
int launch(void) { return cudaLaunchKernel(version); }
"""
LOADS = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void *own = dlopen("libown.so", RTLD_NOW);
  int (*version)(void) = dlsym(own, "version"), (*launch)(void) = dlsym(own, "launch");
  printf("version %d, error %d\\n", version(), launch());
  return 0;
}
"""


def test_a_runtime_linked_into_a_library_that_is_loaded_later_is_replaced(tmp_path):
    """As in CuPy. The library is found by the program's RUNPATH; its kernels were not registered here."""
    (tmp_path / "own.c").write_text(OWN_RUNTIME)
    (tmp_path / "loads.c").write_text(LOADS)
    own, program = tmp_path / "libown.so", tmp_path / "loads"
    command = ["cc", "-O0", "-fPIC", "-shared", str(tmp_path / "own.c"), "-o", str(own)]
    subprocess.run(command, check=True)
    command = ["cc", str(tmp_path / "loads.c"), "-o", str(program), "-ldl", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run([*command, "-Wl,--enable-new-dtags"], check=True)
    done, _ = execute(program, "")
    assert done.stdout == "version 13000, error 98\n", done.stderr
    assert f"a kernel of {own} does not run, error 98" in done.stderr
