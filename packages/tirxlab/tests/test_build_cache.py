"""build(): what is compiled only once, and the error of a kernel that cannot be compiled."""

import shutil
import threading
from pathlib import Path

import pytest
import small_kernel
from small_kernel import line_with, loader

from tirxlab import Tx
from tirxlab.artifact import Artifact
from tirxlab.steps import load_kernels
from tirxlab.toolchain import build as build_package
from tirxlab.toolchain import nvrtc
from tirxlab.toolchain.build import BuildError, build, cache

ROOT = Path(__file__).resolve().parents[3]
SOLUTIONS = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
SIZE = (256, 384, 128)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))


# --- cache ---


def refuse(*_, **__):
    raise AssertionError("compiled again")


def test_second_build_comes_from_the_cache(monkeypatch):
    first = build(loader())
    monkeypatch.setattr(nvrtc, "compile_cuda", refuse)
    assert build(loader()) == first
    for changed in (loader(M=320), loader(K=192)):
        with pytest.raises(AssertionError, match="compiled again"):
            build(changed)
    with pytest.raises(AssertionError, match="compiled again"):
        build(loader(), "sm_90a")
    with pytest.raises(AssertionError, match="compiled again"):
        build(loader(), use_cache=False)


def test_a_broken_entry_is_built_again():
    first = build(loader())
    (entry,) = cache.folder().iterdir()
    entry.write_bytes(entry.read_bytes()[:100])
    assert build(loader()) == first
    assert Artifact.load(entry).ptx == first.ptx


def test_an_unusable_cache_folder_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "file"))
    assert build(loader()).grid == (4, 1, 1)


def test_moved_files_share_their_entry_and_keep_their_own_text(monkeypatch, tmp_path):
    build(load_kernels(SOLUTIONS).hgemm_v3(*SIZE))
    monkeypatch.setattr(nvrtc, "compile_cuda", refuse)
    moved = tmp_path / "other" / "mine.py"
    moved.parent.mkdir()
    shutil.copy(SOLUTIONS, moved)
    moved.write_text(moved.read_text() + "\n# the end\n")
    artifact = build(load_kernels(moved).hgemm_v3(*SIZE))
    assert artifact.source == {"file": "mine.py", "text": moved.read_text()}
    assert str(tmp_path) not in artifact.to_bytes().decode(errors="replace")


def test_two_threads(monkeypatch):
    expected = [build(loader(M)) for M in (128, 192)]
    found = {}

    def work(i):
        for _ in range(2):
            found[i] = build(loader((128, 192)[i]), use_cache=False)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [found[0], found[1]] == expected


# --- errors ---


def one_screen(error: BuildError) -> bool:
    return len(str(error).splitlines()) <= 15 and len(str(error)) < 2000


def test_a_tile_that_cannot_be_lowered_names_the_students_line():
    with pytest.raises(BuildError, match="TMA does not find this box") as caught:
        build(loader(box=60))
    assert (caught.value.line, caught.value.file) == (line_with("copy"), small_kernel.__file__)
    assert str(caught.value).startswith(f"small_kernel.py:{line_with('copy')}: ") and one_screen(caught.value)


def test_cuda_that_does_not_compile_names_the_students_line(monkeypatch):
    lower = build_package._lower

    def broken(*args):
        cuda, launch = lower(*args)
        return cuda.replace("tvm_builtin_ptx_mbarrier_try_wait((&", "no_such_function((&"), launch

    monkeypatch.setattr(build_package, "_lower", broken)
    with pytest.raises(BuildError, match='"no_such_function" is undefined') as caught:
        build(loader())
    assert caught.value.line == line_with("wait") and one_screen(caught.value)
    assert not list(cache.folder().glob("*")) if cache.folder().exists() else True


def test_bad_arguments():
    with pytest.raises(BuildError, match="arch 'sm_70' is not supported: use one of sm_80"):
        build(loader(), "sm_70")
    with pytest.raises(BuildError, match="`loader` is no kernel, but a function"):
        build(loader)
    plain = loader().without_attr("tirxlab.info")
    with pytest.raises(BuildError, match="make it with @Tx.prim_func"):
        build(plain)


def test_a_function_without_a_kernel():
    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((8,), "float32")):
        Tx.evaluate(0)

    with pytest.raises(BuildError, match="makes 0 kernels, the lab runs exactly one") as caught:
        build(kernel)
    assert one_screen(caught.value)


def test_a_host_function_with_unknown_numbers_is_refused():
    @Tx.prim_func(tirx=True)
    def kernel(A: Tx.Buffer((64,), "int32"), n: Tx.int32):
        with Tx.kernel():
            Tx.cta_id([2], parent="kernel")
            tx = Tx.thread_id([32], parent="cta")
            A[tx] = n

    with pytest.raises(BuildError, match="'n' is not a constant, a buffer or a tensor map"):
        build(kernel)


def test_a_kernel_under_inline_and_one_without_threads_are_refused_at_a_line():
    @Tx.inline
    def inlined(A: Tx.Buffer((8,), "int32")):
        A[0] = 1

    @Tx.prim_func(tirx=True)
    def nobody(A: Tx.Buffer((8,), "int32")):
        with Tx.kernel():
            bx = Tx.cta_id([2], parent="kernel")
            A[bx] = 1

    for kernel, said in ((inlined, "(?s)`inlined` is no.*@Tx.inline"), (nobody, "(?s)threads.*bx = Tx")):
        with pytest.raises(BuildError, match=said):
            build(kernel)
