"""The commands as a user meets them: Ctrl-C, files that are missing or cannot be written, common slips."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import Signpost, ends

from tirxlab.cli import common, outcomes, reset, watch
from tirxlab.cli.common import REFERENCE, ROOT, UserError, left_out, steps_text, write_file
from tirxlab.cli.runs import Outcome
from tirxlab.cli.test import step_files
from tirxlab.steps import read_skeleton, todos

K = ["--kernels", str(REFERENCE)]
LAB = [sys.executable, str(ROOT / "packages/tirxlab/src/tirxlab/cli" / "__main__.py")]


# A command that ignores Ctrl-C, as compiled code does, and has started another process.
DEAF = """
import os, signal, subprocess, sys, time
from tirxlab.cli.watch import watched
def command():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    other = subprocess.Popen(["sleep", "600"])
    print(other.pid, flush=True)
    time.sleep(600)
sys.exit(watched(command))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system does not say when a process ends")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_does_not_listen_is_killed_with_all_that_it_started(number):
    child = subprocess.Popen(
        [sys.executable, "-c", DEAF],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    other = int(child.stdout.readline())
    child.send_signal(number)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 128 + number and err == "lab: stopped\n"
    assert ends(other)


LONG = {  # commands that take longer than a second
    "check": ["check", "all", "--full", *K],
    "demo": ["demo", *K],
    "score": ["score", *K],
    "test": ["test", "7,8", *K],
    "show": ["show", "10", *K],
    "predict": ["predict", "7", "4096", *K],
    "trace": ["trace", "10", *K],
    "report": ["check", "7", "--report", "page.html", *K],
    "grade": ["grade", str(REFERENCE)],
}
SILENT = {"show", "predict", "trace"}  # until they are done


def builds(command: int) -> bool:
    """Whether a command has started the process that builds kernels."""
    for pid in watch.descendants(command):
        with contextlib.suppress(OSError):  # it has ended
            if b"sandbox/child.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
    return False


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_at_a_terminal_stops_a_command(name, tmp_path):
    primary, secondary = pty.openpty()
    command = [*LAB, *LONG[name]]
    child = subprocess.Popen(
        command,
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,  # where progress bars appear, which show at once that it works
        start_new_session=True,
        cwd=tmp_path,
    )
    os.close(secondary)
    said = b""
    while not said and not (name in SILENT and builds(child.pid)):
        if select.select([primary], [], [], 0.1)[0]:
            said = os.read(primary, 1 << 16)
    os.killpg(child.pid, signal.SIGINT)
    with contextlib.suppress(OSError):  # all writers have ended
        while part := os.read(primary, 1 << 16):
            said += part
    os.close(primary)
    assert child.wait(30) == watch.STOPPED and b"Traceback" not in said and b"stopped" in said


def test_a_watched_command_keeps_its_status_and_a_crash_is_named():
    run = "import sys; from tirxlab.cli import watch; sys.exit(watch.watched(lambda: {}))"

    def call(body):
        command = [sys.executable, "-c", run.format(body)]
        return subprocess.run(command, capture_output=True, text=True)

    done = call("5")
    assert (done.returncode, done.stderr) == (5, "")
    done = call("__import__('os').kill(__import__('os').getpid(), 11)")
    assert done.returncode == 139 and "SIGSEGV" in done.stderr


def test_version(run):
    status, out, _ = run("--version")
    assert status == 0 and re.fullmatch(r"lab \d+\.\d+\.\d+\n", out)


def test_check_runs_what_is_written_and_lists_the_rest(run, kernels):
    status, out, _ = run("check", "1,2,5", "--device", "sim", "--kernels", kernels(1))
    assert status == 1
    assert "not run: steps 2, 5 (not implemented yet)" in out and "128x128x64  yes" in out


def test_bench_and_compare_run_what_is_written(run, kernels):
    status, out, _ = run("bench", "--device", "sim", "--kernels", kernels(1))
    assert status == 0 and "not measured" in out
    status, out, _ = run(
        "compare", "all", "--size", "128x128x64", "--device", "sim", "--kernels", kernels(1, 2)
    )
    assert status == 0 and "step 2" in out and "not run: steps 3-10 (not implemented yet)" in out
    status, out, _ = run(
        "compare", "all", "--size", "256x128x64", "--device", "sim", "--kernels", kernels(1, 3)
    )
    assert status == 0 and "not run: step 1 (at 256x128x64: M must be 128 (got 256))" in out


def test_of_a_file_without_a_written_step_the_commands_say_where_the_solutions_are(run, kernels):
    status, out, err = run("check", "all", "--kernels", kernels())
    assert status == 1 and out == "" and err.count("\n") == 1
    assert "none of the steps 1-10 is implemented yet" in err
    assert "--kernels instructor/solutions/gemm_kernels.py" in err


def test_demo_says_which_file_it_runs(run, kernels):
    _, out, err = run("demo", "--kernels", kernels(1))
    assert f"your kernels in {kernels(1)}" in err and kernels(1) in out


def test_steps_are_named_in_ranges():
    assert steps_text([1, 2, 3, 5, 7, 8]) == "1-3, 5, 7-8"
    assert left_out({1: "a", 3: "b", 2: "a"}) == "not run: steps 1-2 (a)\nnot run: step 3 (b)"


def test_numbers_for_the_test_command_are_steps():
    assert step_files(["1,3", "-x"]) == ["tests/test_step01.py", "tests/test_step03.py", "-x"]
    assert step_files(["-n", "2", "--maxfail", "1"]) == ["-n", "2", "--maxfail", "1"]
    assert step_files(["-x", "10"]) == ["-x", "tests/test_step10.py"]
    with pytest.raises(UserError, match="step 11"):
        step_files(["11"])


def test_reset_writes_the_skeletons_anew_where_the_file_is_gone(run, tmp_path, monkeypatch):
    monkeypatch.setattr(reset, "STUDENT", tmp_path / "gemm_kernels.py")
    status, out, _ = run("reset", "3")
    assert status == 0 and "was missing" in out
    assert (tmp_path / "gemm_kernels.py").read_text() == read_skeleton()


def test_check_says_how_to_get_the_file_back_where_it_is_gone(run, tmp_path, monkeypatch):
    monkeypatch.setattr(common, "STUDENT", tmp_path / "gemm_kernels.py")
    status, _, err = run("check", "1")
    assert status == 2 and "./lab reset all" in err


@pytest.mark.parametrize(
    "target, words", [("nowhere/x.tar", "there is no folder"), (".", "cannot be written")]
)
def test_handin_to_an_impossible_place_is_one_line(run, kernels, tmp_path, target, words):
    status, out, err = run("handin", "--kernels", kernels(1), "--output", str(tmp_path / target))
    assert status == 2 and out == "" and err.count("\n") == 1 and words in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gemm_kernels.py"]


def test_reset_in_a_folder_that_cannot_be_written_loses_nothing(run, kernels, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    file = kernels(1)
    before = Path(file).read_text()
    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    status, out, err = run("reset", "1", "--kernels", file)
    assert status == 2 and out == "" and "cannot be written: Permission denied" in err
    assert Path(file).read_text() == before


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "x.txt"
    target.write_text("old")
    target.chmod(0o640)
    write_file(target, b"new")
    assert target.read_text() == "new" and target.stat().st_mode & 0o777 == 0o640

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UserError, match="No space left"):
        write_file(target, b"newer")
    assert target.read_text() == "new" and list(tmp_path.iterdir()) == [target]


def test_a_size_that_no_kernel_can_index_does_not_build(run):
    status, out, err = run("check", "3", "--size", "12800000", "--kernels", str(REFERENCE), "--device", "sim")
    assert status == 1 and "exceeds maximum of int32" in out and "Traceback" not in out + err


def test_a_run_that_needs_too_much_memory_is_one_line(run, monkeypatch):
    def fails(self, jobs):
        raise MemoryError("the run needs more memory than it may use")

    monkeypatch.setattr("tirxlab.cli.runs.Runner.run", fails)
    status, out, err = run("check", "3", "--size", "256", "--kernels", str(REFERENCE), "--device", "sim")
    assert status == 2 and err.startswith("lab: not enough memory") and err.count("\n") == 1


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path):
    env = {**os.environ, "HOME": "/proc/nowhere"}
    env.pop("LAB_CACHE", None)
    command = [*LAB, "inspect", "1", "--as", "regs", "--kernels", str(REFERENCE)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "Asmem" in done.stdout and done.stderr == ""


def test_of_what_a_kernel_prints_the_first_and_last_lines_are_shown():
    shown = outcomes.shortened("\n".join(map(str, range(1000)))).splitlines()
    assert len(shown) == 121 and shown[59:62] == ["59", "... 880 more lines; --json has them all", "940"]
    assert outcomes.shortened("a\nb") == "a\nb"


def outcome(size: str, message: str) -> Outcome:
    return Outcome(3, size, "sim", "program", True, "review", 0.1, message)


def test_findings_are_told_once_not_per_size(capsys):
    outcomes.details_once([outcome("256", "review: x (4 times)"), outcome("512", "review: x (16 times)")])
    out = capsys.readouterr().out
    assert out.count("review: x") == 1 and "step 3: the same at 512" in out


def test_how_often_a_barrier_was_seen_makes_no_new_message(capsys):
    one, two = "1 time on each", "2 times on [0], 1 on [1]"
    seen = "error: y [line 7]\n  seen of full, init(1):\n    warp 0 arrives (line 7): {}\n  hint: z"
    outcomes.details_once([outcome("256", seen.format(one)), outcome("512", seen.format(two))])
    out = capsys.readouterr().out
    assert out.count("error: y") == 1 and one in out and two not in out


SLIPS = {
    "no return": (("    return kernel\n", ""), "hgemm_v1 returns nothing: end it with `return kernel`"),
    "no decorator": (("    @Tx.prim_func(tirx=True)\n", ""), "write @Tx.prim_func(tirx=True)"),
    "name": (("    @Tx.prim_func", "    X = BLK_Q\n\n    @Tx.prim_func"), "NameError: name 'BLK_Q'"),
    "zero": (("    @Tx.prim_func", "    X = M // 0\n\n    @Tx.prim_func"), "ZeroDivisionError"),
    "layout": (
        ("    @Tx.prim", "    X = tma_shared_layout(F16, SWIZZLE, (128, 9))\n\n    @Tx.prim"),
        "8 rows of",
    ),
    "print": (("            with Tx.warp", "            print(warp_id)\n            with Tx.warp"), "printf"),
    "call": (("return kernel\n", "return kernel()\n"), "no parentheses"),
    "exit": (("    @Tx.prim_func", "    raise SystemExit\n\n    @Tx.prim_func"), "the code calls sys.exit()"),
    "keyboard": (("    @Tx.prim_func", "    breakpoint()\n\n    @Tx.prim_func"), "no keyboard here"),
    "parameters": (("D: Tx.Buffer((M, N)", "D: Tx.Buffer((2 * M, N)"), "is called with D, (128, 128)"),
    "layout of another shape": (
        ("    @Tx.prim", "    TMEM_LAYOUT = TileLayout(S[(64, 512) : (1 @ TLane, 1 @ TCol)])\n    @Tx.prim"),
        "has a layout of shape (64, 512)",
    ),
    "continue": (
        ("tmem = Tx.decl", f"for i in range(M // 128):\n{16 * ' '}continue\n            tmem = Tx.decl"),
        "a loop that runs once",
    ),
    "name in the kernel": (("accum=False,", "accum=flase,"), "Undefined variable: flase"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_told_with_file_and_line(run, kernels, slip):
    edit, words = SLIPS[slip]
    status, out, _ = run("check", "1", "--device", "sim", "--kernels", kernels(1, edit=edit))
    assert status == 1 and words in out
    assert re.search(r"gemm_kernels\.py:\d+: ", out) and "Traceback" not in out


def test_a_todo_that_is_left_is_named(run, kernels):
    commit = "Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)"
    file = kernels(1, edit=(commit, "# TODO: commit"))
    (line,) = todos(Path(file).read_text(), 1)
    status, out, _ = run("check", "1", "--device", "sim", "--kernels", file)
    assert status == 1 and f"step 1 still has a TODO: gemm_kernels.py, line {line}; fill it in" in out
    status, out, _ = run(
        "check", "1", "--device", "sim", "--kernels", kernels(1, edit=(commit, f"{commit}  # TODO"))
    )
    assert status == 0 and f"step 1 still has a TODO: gemm_kernels.py, line {line}; if it is done" in out


# A pytest plugin that signals when its moment has come, and blocks there.
PAUSE = """
import signal
def pause(*_):
    with open({post!r}, "w") as file:
        file.write("here")
        file.flush()
        signal.pause()
{moment}
"""


@pytest.mark.parametrize("moment", ["pause()", "pytest_collection = pause", "pytest_runtest_call = pause"])
def test_ctrl_c_ends_the_tests_without_a_traceback(moment, tmp_path):
    """While pytest is importing, while it collects, and in a test."""
    post = Signpost(tmp_path / "post")
    (tmp_path / "moment.py").write_text(PAUSE.format(post=str(tmp_path / "post"), moment=moment))
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    child = subprocess.Popen(
        [sys.executable, "-m", "tirxlab.cli.pytest_child", "-p", "moment", "tests/test_step01.py", *K],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert post.passed()
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert b"Traceback" not in said and b"ImportError" not in said
