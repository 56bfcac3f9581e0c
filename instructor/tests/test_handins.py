"""Hand-ins that hurt whoever opens them: each harms only itself and is named; the class's page is written."""

import codecs
import contextlib
import csv
import io
import multiprocessing
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from instructor.autograder import batch, opening, reader, similar
from instructor.autograder.grading import Options
from instructor.autograder.reader import Reader
from instructor.autograder.submission import Submission
from instructor.exploits.handins import HANDINS
from instructor.formats.summary import class_page, to_csv
from tirxlab.artifact import Artifact
from tirxlab.sandbox import Limits

NAIVE = {
    "open": "import tarfile\ntar = tarfile.open(PATH)\n"
    "for m in tar: m.name == 'gemm_kernels.py' and tar.extractfile(m).read(1 << 20)",
    "compare": "import tokenize\nlist(tokenize.generate_tokens(open(PATH).readline))",
    "sections": "import re\nfound = re.finditer(r'^def hgemm_v(\\d+)\\(', open(PATH).read(), re.M)\n"
    "[int(m[1]) for m in found]",
}
SECONDS = 1  # for the naive way: what takes minutes is not done by then


@pytest.mark.parametrize("one", [pytest.param(h, id=h.name) for h in HANDINS if h.hurts])
def test_a_hand_in_that_hurts_does_hurt(one, tmp_path):
    path = tmp_path / one.name
    path.write_bytes(one.make())
    command = [sys.executable, "-c", NAIVE[one.where].replace("PATH", repr(str(path)))]
    if one.hurts == "time":
        if one.where == "compare" and sys.version_info >= (3, 12):
            pytest.skip("this Python's tokenizer is not its own text any more")
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            if one.where == "open" and "invalid header" in done.stderr:
                pytest.skip("this Python's tarfile refuses such a header at once")
            pytest.fail(f"read within {SECONDS} s: {done.stderr}")
    else:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert one.hurts in done.stderr


def test_one_hand_in_costs_one_hand_in(tmp_path, monkeypatch):
    """Whatever is in the folder, everything is named once, and the honest hand-ins are graded."""
    monkeypatch.setattr(reader, "LIMITS", Limits(seconds=1, memory=512 << 20, processes=4))
    monkeypatch.setattr(reader, "LEAST_SECONDS", 1)
    folder = tmp_path / "class"
    folder.mkdir()
    for one in HANDINS:
        (folder / one.name).write_bytes(one.make())
    honest = "def hgemm_v1(M, N, K):\n" + "".join(f"    Tx.copy(a{n}[{n}], M % {n + 3})\n" for n in range(40))
    for name in ("zz-first.py", "zz-second.py"):
        (folder / name).write_text(honest)
    start = time.process_time()
    with batch.Class(folder, tmp_path / "out", Options(steps=(1,))) as made:
        read = {key: made.read(key) for key in made.names()}
        texts = {key: one.text for key, one in read.items() if isinstance(one, Submission)}
        prints, unread = similar.fingerprints(texts)
        rows = [
            made.write(key, one, batch.failed(key, "", str(one)[:100], (1,))) for key, one in read.items()
        ]
        page = class_page(rows, similar.alike(prints), unread)
    assert time.process_time() - start < 20  # of this process: nothing is opened here
    assert set(read) == {one.name for one in HANDINS} | {"zz-first.py", "zz-second.py"}
    assert ("zz-first.py", "zz-second.py", 1.0) in similar.alike(prints)
    assert len(list(csv.DictReader(to_csv(rows, {}).splitlines()))) == len(HANDINS) + 2
    for one in HANDINS:
        said = read[one.name]
        assert isinstance(said, Submission) or (one.name in said and len(said.splitlines()) == 1)
        if one.says and not (one.where == "compare" and sys.version_info >= (3, 12)):
            assert one.name in unread and one.name in page
        if one.hurts and one.where == "open":
            assert not isinstance(said, Submission)


def link_to(target: str, name: str = "bad.py"):
    return lambda folder: (folder / name).symlink_to(target)


def locked(mode: int):
    def make(folder: Path) -> None:
        (folder / "bad.py").mkdir()
        (folder / "bad.py" / "mine.py").write_text("x = 1")
        (folder / "bad.py").chmod(mode)

    return make


UNSEEN = {  # paths that cannot even be looked at
    "a link to itself": link_to("bad.py"),
    "a link longer than a path": link_to("x" * 300),
    "a link into a locked folder": link_to("../locked/bad.py"),
    "a folder without rights": locked(0),
    "a folder that can be listed and no more": locked(0o444),
}


def not_root() -> None:
    """Root may read everything. Perhaps only root may read Python's files, so a codec is loaded first."""
    codecs.lookup("utf-8-sig")
    if os.geteuid() == 0:
        os.setuid(65534)


def looked_at(folder: Path) -> tuple:
    made = batch.Class(folder, folder.with_name("grades"), Options())
    return made.names(), made.left_out(), made.read("good.py").text, made.read("bad.py")


@pytest.mark.parametrize("how", UNSEEN)
def test_what_cannot_be_looked_at_is_named_and_the_class_goes_on(how):
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are locked, too
        os.chmod(place, 0o711)
        for name, mode in (("class", 0o755), ("locked", 0o700)):
            (Path(place) / name).mkdir(mode)
        (Path(place) / "class/good.py").write_text("x = 1")
        UNSEEN[how](Path(place) / "class")
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), not_root) as pool:
            names, left_out, good, bad = pool.submit(looked_at, Path(place) / "class").result()
    assert (names, left_out, good) == (["bad.py", "good.py"], [], "x = 1")
    assert re.search("is not a regular file|cannot be read|no such file", bad)


def test_a_reader_that_is_killed_serves_the_next(monkeypatch):
    monkeypatch.setattr(reader, "LIMITS", Limits(seconds=1, memory=512 << 20, processes=4))
    monkeypatch.setattr(reader, "LEAST_SECONDS", 1)
    slow = next(one for one in HANDINS if one.name == "pax-digits.tar").make()
    fine = next(one for one in HANDINS if one.name == "pax-records.tar").make()
    with Reader(opening) as made:
        for data, words in (
            (slow, "took longer than 1 s"),
            (slow, "took longer than 1 s"),
            (b"no tar", "cannot"),
        ):
            with pytest.raises(reader.ReadError) as caught:
                made.call("open_tar", data)
            if data is slow and "invalid header" in str(caught.value):
                pytest.skip("this Python's tarfile refuses such a header at once: nothing to be killed for")
            assert words in str(caught.value)
        assert b"x = 1" in made.call("open_tar", fine)


def test_every_hand_in_has_a_name_of_its_own():
    assert len({one.name for one in HANDINS}) == len(HANDINS) >= 25


def test_a_text_of_cuda_that_no_pattern_gets_through_costs_its_own_time(monkeypatch):
    """In a C++ string `/*` opens no comment, but a pattern searches to the end of the text after each one."""
    monkeypatch.setattr(reader, "LIMITS", Limits(seconds=2, memory=768 << 20, processes=4))
    shape = dict.fromkeys(("grid", "block", "cluster"), (1, 1, 1))
    plain = dict(ptx="", cubin=b"", shared_bytes=0, params=(), buffers=())
    cuda = 'extern "C" __global__ void k() {}\nconst char *text = "' + "/* " * (1 << 20) + '";'
    slow = Artifact("sm_100a", "k", cuda, **shape, **plain)
    bundles = {
        name: batch.bundle(Submission(name, "x"), batch.failed(name, "", "", (1,))) for name in ("a", "b")
    }
    hostile = batch.failed("c", "", "", (1,))
    hostile.artifacts = {"step1.lab": slow.to_bytes()}
    found, unread = similar.builds([*bundles.items(), ("c", batch.bundle(Submission("c", "x"), hostile))])
    assert set(found) == {"a", "b"} and "took longer than 2 s" in unread["c"]


@pytest.mark.parametrize(
    "name, taken",
    [
        ("gemm_kernels.py", True),
        ("./gemm_kernels.py", True),
        ("../gemm_kernels.py", False),
        ("mine/gemm_kernels (1).PY", True),
        ("mine/._gemm_kernels.py", False),  # what macOS adds to each file
        ("__MACOSX/gemm_kernels.py", False),
    ],
)
def test_a_tar_of_a_folder_is_taken_too(name, taken):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("."))
        info = tarfile.TarInfo(name)
        info.size = 5
        tar.addfile(info, io.BytesIO(b"x = 1"))
    if taken:
        assert b"x = 1" in opening.open_tar(made.getvalue())
    else:
        with pytest.raises(ValueError, match="holds no gemm_kernels.py"):
            opening.open_tar(made.getvalue())


def test_a_tar_of_a_folder_may_hold_other_files():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, data in (
            ("hw/gemm_kernels.py", b"x = 1"),
            ("hw/plots.py", b"y = 2"),
            ("hw/old.py", b"z = 3"),
        ):
            info = tarfile.TarInfo(name)
            info.size = 5
            tar.addfile(info, io.BytesIO(data))
    assert b"x = 1" in opening.open_tar(made.getvalue())
