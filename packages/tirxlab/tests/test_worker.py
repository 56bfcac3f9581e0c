"""Building code that nobody has read: hostile code can do nothing to the lab."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from processes import ends, that_know

from tirxlab.artifact import Artifact
from tirxlab.sandbox import LEVELS, Builder, Limits, Session, WorkerError, child, strongest, tree
from tirxlab.sandbox.builder import LEAST_SECONDS
from tirxlab.sandbox.levels import ROOT, launcher, works
from tirxlab.sandbox.limits import NOT_STARTED, printable

SMALL = Limits(seconds=20, memory=600 << 20, printed=1 << 20)
STEP = "from tirxlab import Tx\n\n\ndef hgemm_v1(M, N, K):\n"
OWN_FILES = ("bubblewrap", "namespaces")
USABLE = [level for level in LEVELS if level == "limits" or works(level)]


def outcome(body: str, level: str | None = None, limits: Limits = SMALL):
    """The outcome of a step 1 with this body."""
    text = STEP + "".join(f"    {line}\n" for line in body.splitlines())
    with Builder(text, limits=limits, level=level) as builder:
        return builder.build(1, (128, 128, 64))


@pytest.mark.parametrize(
    "body, words",
    [
        ("import sys; sys.exit(0)", "calls sys.exit()"),
        ("import os; os._exit(0)", "ended the process before there was a kernel (exit status 0)"),
        ("import ctypes; ctypes.string_at(0)", "crashed (SIGSEGV)"),
        ("print('x' * 5_000_000)", "printed more than 1 MiB"),
        ("while True: print('noise')", "printed more than 1 MiB"),
        ("raise KeyError('no')", "KeyError: 'no'"),
        ("class E(Exception):\n    def __str__(self): raise E\nraise E", "an error that cannot be shown"),
        ("import os; os.write(3, b'garbage\\n'); os.close(3); import os; os._exit(0)", ""),
        ("import os, threading; os.write(1, b'x'); os._exit(0)", "exit status 0"),
        ("return 7", "build() needs a kernel"),
        ("raise ValueError(chr(0x1F600) * 10**6)", chr(0x1F600) * 400),
        ("return " + "(" * 90_000, "too many nested parentheses"),
    ],
)
def test_a_builder_that_does_anything_but_build_is_one_line(body, words):
    built = outcome(body)
    assert built.artifact is None and words in built.message and len(built.message.splitlines()) < 4


@pytest.mark.parametrize("level", USABLE)
def test_a_builder_without_end_is_stopped(level):
    start = time.monotonic()
    built = outcome("while True: pass", level, Limits(seconds=1))
    assert "took longer than 1 s" in built.message and time.monotonic() - start < 60


@pytest.mark.parametrize("level", USABLE)
def test_memory_is_limited_for_all_processes_together(level):
    built = outcome("import os\nos.fork()\nos.fork()\nx = bytearray(400 << 20)\nwhile True: pass", level)
    assert "used more than 600 MiB" in built.message


@pytest.mark.parametrize("level", USABLE)
def test_nothing_that_a_child_starts_outlives_it(level, tmp_path):
    mark = f"left-{os.getpid()}-{level}"
    body = (
        "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n"
        f"        os.execv('/bin/sh', ['{mark}', '-c', 'sleep 600'])\nos._exit(0)"
    )
    outcome(body, level)
    assert all(map(ends, that_know(mark)))


@pytest.mark.parametrize("level", USABLE)
def test_a_fork_bomb_ends_with_its_child(level):
    start = time.monotonic()
    built = outcome(
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", level, Limits(seconds=1)
    )
    assert built.artifact is None and built.kind == "limit" and time.monotonic() - start < 90


def test_other_steps_go_on_after_one_that_kills_the_child():
    text = (
        STEP
        + "    import os; os._exit(0)\n\n\ndef hgemm_v2(M, N, K):\n    raise ValueError('no such size')\n"
    )
    with Builder(text, limits=SMALL) as builder:
        first, second, again = (builder.build(step, (128, 128, 64)) for step in (1, 2, 1))
    assert (first.kind, second.kind, again.kind) == ("died", "misfit", "died")
    assert second.message == "no such size"


def test_a_file_that_stays_just_below_its_limits_gets_less_in_the_end():
    """Forty builds that each take one second less than the limit make a file that takes half an hour."""
    size = (128, 128, 64)
    with Builder(STEP + "    raise ValueError('no')\n", limits=Limits(seconds=30), patience=90) as builder:
        assert builder.build(1, size).kind == "misfit" and builder.spent > 0
        assert builder.student.limits.seconds == builder.compiler.limits.seconds == 30
        builder.student.spent += 90
        assert builder.build(1, size).kind == "misfit"
        assert builder.student.limits.seconds == builder.compiler.limits.seconds == LEAST_SECONDS
    assert Builder(STEP).patience == float("inf")


GIVES = """import os, types
import tirxlab.toolchain.build as lab
lab._checked = lambda *given: types.SimpleNamespace(file="x")
lab.with_markers = lambda *given: None
lab._draft = lambda *given: types.SimpleNamespace(to_bytes=lambda: {})
return 7"""


@pytest.mark.parametrize(
    "data, said",
    [
        (
            "os.urandom(5 << 20)",
            "gave an answer of more than 4 MiB",
        ),  # noise, kept for each size of each step
        ("(b'PK\\1\\2' + bytes(43)) * 85_000", "gave something that is not a kernel"),  # files of a zip
    ],
)
def test_a_draft_is_small_whatever_it_is(data, said):
    built = outcome(GIVES.format(data))
    assert built.artifact is None and said in built.message, built.message


def test_a_kernel_of_megabytes_of_ptx_is_none(monkeypatch):
    """Reading it takes minutes and gigabytes, and it is kept for each size of each step."""
    monkeypatch.setattr("tirxlab.artifact.Artifact.from_bytes", lambda data: None)
    made = SimpleNamespace(ptx="x" * (child.LARGEST_PTX + 1), to_bytes=lambda: b"data")
    monkeypatch.setattr("tirxlab.toolchain.nvrtc.finish", lambda given, whole: made)
    answer, data = child.Compiling().answer({}, b"")
    assert (answer["kind"], answer["message"], data) == ("build", "its PTX is larger than 8 MiB", b"")
    made.ptx = made.ptx[1:]
    assert child.Compiling().answer({}, b"") == ({"ok": True}, b"data")


CHANGES = {  # what a step does to the process that builds it, before it continues
    "limit-of-files": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    "limit-of-memory": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))",
    "limit-of-time": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    "recursion": "import sys\nsys.setrecursionlimit(30)",
    "modules": "import sys\nsys.modules.clear()",
    "the-lab": "import tirxlab.toolchain.build as b\nb._lower = b.draft = None",
    "builtins": "import builtins\nbuiltins.open = builtins.len = None",
    "json": "import json\njson.loads = json.dumps = lambda *a, **k: None",
    "descriptors": "import os\nos.closerange(3, 1000)",
    "kept-descriptors": "import os\ntry:\n    while True: os.dup(2)\nexcept OSError: pass",
    "alarm": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.05)",
    "threads": "import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()",
    "process": "import os\nif os.fork() == 0:\n    while True: pass",
    "orphan": "import os\nif os.fork() == 0:\n    if os.fork(): os._exit(0)\n    while True: pass",
    "the-file": "import os\n[os.unlink(name) for name in os.listdir('.')]",
    "another-file": "open('gemm_kernels.py', 'w').write('raise SystemExit')",
    "the-file-unseen": "import os\ns = os.stat('gemm_kernels.py')\nt = open('gemm_kernels.py').read()\n"
    "open('gemm_kernels.py', 'w').write(t.replace(\"'two'\", \"'owt'\"))\n"
    "os.utime('gemm_kernels.py', ns=(s.st_atime_ns, s.st_mtime_ns))",
    "right-to-read": "import os\nos.chmod('gemm_kernels.py', 0)",
    "words-that-wait": "import os\nos.set_blocking(2, False)\nos.set_blocking(1, False)",
    "another-importer": "import sys\nsys.meta_path[:] = [None]\nsys.path_hooks[:] = []",
    "auditors": "import sys\ndef no(*a): raise SystemExit\nsys.addaudithook(no)",
    "profilers": "import sys\ndef no(*a): raise SystemExit\nsys.setprofile(no)",
    "at-exit": "import atexit, os\natexit.register(os.abort), os.register_at_fork(before=os.abort)",
    "every-descriptor": "import os\nn = os.open('/dev/null', os.O_RDWR)\nfor d in range(256):\n"
    "    try: os.dup2(n, d)\n    except OSError: pass",
    "functions-of-tvm": "import tvm_ffi\nfor name in tvm_ffi.registry.list_global_func_names():\n"
    "    tvm_ffi.register_global_func(name, lambda *a: None, override=True)",
    "signal-of-a-pipe": "import fcntl, os\nfcntl.fcntl(2, fcntl.F_SETOWN, os.getppid())\n"
    "fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_ASYNC)\nprint('x')",
    "memory-of-its-parent": "import os\nf = open(f'/proc/{os.getppid()}/mem', 'r+b', buffering=0)\n"
    "for line in open(f'/proc/{os.getppid()}/maps'):\n"
    "    if '[heap]' in line:\n"
    "        a, b = (int(x, 16) for x in line.split()[0].split('-'))\n"
    "        f.seek(a), f.write(bytes(b - a))",
    "a-module": "open('tirxlab.py', 'w').write('raise SystemExit')",
    "a-full-disk": "with open('x', 'wb') as f:\n    f.write(bytes(30 << 20))",
    "the-folder": "import os\nos.mkdir('x')\nos.chdir('x')",
    "garbage": "import gc\ngc.disable(), gc.set_threshold(0), gc.freeze()",
    "recursion-without-end": "f = lambda: f()\nf()",
    "exit": "import os\nos._exit(3)",
    "signal": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "its-parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "memory": "x = bytearray(4 << 30)",
    "endless": "while True: pass",
}  # fmt: skip
AT_ONCE = 6


@pytest.mark.parametrize("start", range(0, len(CHANGES), AT_ONCE))
def test_what_a_step_does_to_its_process_costs_that_step_alone(start):
    """Several one after the other in one file, since a builder takes half a second to start."""
    changes = list(CHANGES)[start : start + AT_ONCE]
    text = STEP
    for k, change in enumerate(changes, 2):
        text += f"    if K == {64 * k}:\n" + textwrap.indent(CHANGES[change], 8 * " ") + "\n"
    text += "    raise ValueError('one')\n\n\ndef hgemm_v2(M, N, K):\n    raise ValueError('two')\n"
    limits = Limits(seconds=1 if "endless" in changes else 3, memory=600 << 20, disk=64 << 20)
    with Builder(text, limits=limits) as builder:
        assert builder.build(1, (128, 128, 64)).message == "one"
        for k, change in enumerate(changes, 2):
            builder.build(1, (128, 128, 64 * k))
            others = [builder.build(step, (128, 128, 64)).message for step in (2, 1)]
            assert others == ["two", "one"], change


def test_a_child_has_an_empty_environment_and_folder():
    built = outcome("import os\nraise KeyError(sorted(os.environ), os.listdir('.'), os.getppid())")
    assert "LAB_" not in built.message and "gemm_kernels.py" in built.message
    assert "HOME" in built.message and "SSH" not in built.message


def test_a_session_says_what_is_wrong_with_an_answer():
    with Session("compile", SMALL) as session, pytest.raises(WorkerError, match="exit status"):
        session.ask({}, b"no artifact")


def test_words_of_others_are_made_fit_to_print():
    assert printable("\x1b[2J\x1b]0;title\x07ok") == "?[2J?]0;title?ok".replace(
        "?", "\N{REPLACEMENT CHARACTER}"
    )
    assert "\u202e" not in printable("a\u202eb")
    assert printable("o" + 60 * "\u0301") == "o" + 3 * "\u0301" + 57 * "\N{REPLACEMENT CHARACTER}"
    assert printable("\n".join("abc"), lines=2) == "a\nb\n..."
    assert len(printable("x" * 10**6)) == 400


def test_what_is_built_is_what_the_lab_builds(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    reference = (ROOT / "instructor" / "solutions" / "gemm_kernels.py").read_text()
    from tirxlab.builders import builder as load
    from tirxlab.toolchain.build import build

    theirs = build(load(ROOT / "instructor/solutions/gemm_kernels.py", 1)(128, 128, 64), use_cache=False)
    with Builder(reference) as builder:
        made = builder.build(1, (128, 128, 64)).artifact
        assert made.ptx == theirs.ptx and made.cubin == theirs.cubin and made.source["text"] == reference
        builder.compiler.close()
        builder.compiler.start = lambda: pytest.fail("compiled twice")
        assert builder.build(1, (128, 128, 64)).artifact == made


def test_a_trial_makes_ptx_alone_and_each_kernel_once(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    reference = (ROOT / "instructor" / "solutions" / "gemm_kernels.py").read_text()
    with Builder(reference) as builder:
        whole = builder.build(1, (128, 128, 64)).artifact
        builder.tried = set()
        trial = builder.build(1, (128, 128, 64)).artifact
        assert trial.ptx == whole.ptx and not trial.cubin
        again = builder.build(1, (128, 128, 64))
        assert again.artifact is None and again.message == "the same kernel was tried before"


def test_a_draft_is_no_artifact_that_runs():
    plain = {
        "arch": "sm_100a",
        "entry": "k",
        "cuda": "void k() {}",
        "ptx": "",
        "cubin": b"",
        "shared_bytes": 0,
    }
    shape = dict.fromkeys(("grid", "block", "cluster"), (1, 1, 1))
    draft = Artifact(**plain, **shape, params=(), buffers=())
    assert draft.is_draft and json.dumps(draft.tools) == "{}"
    with pytest.raises(ValueError, match="draft"):
        from tirxlab.devices import sim

        sim.run(draft, [])


def test_where_the_best_level_does_not_work_the_child_starts_again_with_the_next(monkeypatch):
    tried = []

    def without_namespaces(arguments, level, limits, folder):
        tried.append(level)
        if level == "namespaces":
            return [sys.executable, "-c", f"import sys; sys.exit({NOT_STARTED})"]
        return launcher(arguments, level, limits, folder)

    monkeypatch.setattr("tirxlab.sandbox.session.launcher", without_namespaces)
    monkeypatch.setattr("tirxlab.sandbox.session.likely", lambda: "namespaces")
    monkeypatch.setattr("tirxlab.sandbox.session.strongest", lambda: "limits")
    with Builder(STEP + "    return 7\n", limits=SMALL) as builder:
        builder.start()
        assert "build() needs a kernel" in builder.build(1, (128, 128, 64)).message
        assert tried == ["namespaces", "namespaces", "limits"]  # the compiler has not started yet


def test_a_child_that_dies_where_the_best_level_works_is_not_shut_in_less(monkeypatch):
    monkeypatch.setattr("tirxlab.sandbox.session.likely", lambda: "namespaces")
    monkeypatch.setattr("tirxlab.sandbox.session.strongest", lambda: "namespaces")
    levels = []

    def dying(arguments, level, limits, folder):
        levels.append(level)
        return [sys.executable, "-c", f"import sys; sys.exit({NOT_STARTED})"]

    monkeypatch.setattr("tirxlab.sandbox.session.launcher", dying)
    with Session("lower", SMALL) as session, pytest.raises(WorkerError, match="could not be started"):
        session.ask({"step": 1})
    assert levels == ["namespaces"]


@pytest.mark.skipif(strongest() not in OWN_FILES, reason="this machine has no namespaces to shut a child in")
def test_a_lab_below_tmp_is_shut_in_as_well():
    """The child's own /tmp must not cover the Python that it runs."""
    below = tempfile.mkdtemp(dir="/tmp")
    source = "packages/tirxlab/src"
    shutil.copytree(ROOT / source, f"{below}/{source}", ignore=shutil.ignore_patterns("__pycache__"))
    os.symlink(sys.prefix, f"{below}/venv")
    ask = "from tirxlab.sandbox import strongest; print(strongest())"
    command = [f"{below}/venv/bin/python", "-c", ask]
    env = {**os.environ, "PYTHONPATH": f"{below}/{source}"}
    try:
        done = subprocess.run(command, cwd=below, env=env, capture_output=True, text=True)
    finally:
        shutil.rmtree(below)
    assert done.stdout.strip() in OWN_FILES, done.stderr


HIDES = """
import ctypes, os, sys
sys.path.insert(0, {folder!r})
import tree
os.geteuid() or os.setresuid(*[54321] * 3)
ready, told = os.pipe()
pid = os.fork()
if not pid:
    ctypes.CDLL(None).prctl(4, {dumpable}, 0, 0, 0)
    os.write(told, b"x")
    ctypes.CDLL(None).pause()
os.read(ready, 1)
print(tree.unlinked(pid) == tree.HIDDEN)
os.kill(pid, 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("dumpable, hidden", [(1, "False"), (0, "True")])
def test_a_process_that_hides_from_its_own_user_has_no_end_of_files(dumpable, hidden):
    """Otherwise, at the level `landlock`, a shared disk would fill up with files that nobody finds."""
    script = HIDES.format(folder=str(Path(tree.__file__).parent), dumpable=dumpable)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == hidden, done.stderr
