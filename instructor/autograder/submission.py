"""What was handed in: one kernels file, alone or in handin.tar. Read as data: nothing is unpacked or run."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tirxlab.sandbox.limits import printable

MEMBER = "gemm_kernels.py"
LARGEST, MOST = 1 << 20, 64  # bytes of a file, members of a tar
LARGEST_TAR = 4 << 20


class SubmissionError(ValueError):
    """The file is no submission; one line says why."""


@dataclass(frozen=True)
class Submission:
    name: str  # of the file that was handed in
    text: str
    student: str = ""  # as the student gave it
    lab: str = ""  # version of the lab that made the hand-in

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_submission(path: Path) -> Submission:
    """A .py file, a handin.tar, or a folder that holds either; links are not followed."""
    path = Path(path)
    if path.is_dir() and not path.is_symlink():
        inside = [path / name for name in (MEMBER, "handin.tar") if (path / name).exists()]
        if not inside:
            raise SubmissionError(f"{path}: holds neither {MEMBER} nor handin.tar")
        path = inside[0]
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise SubmissionError(f"{path}: is no plain file")
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_TAR + 1)
        if path.suffix.lower() != ".tar":
            return Submission(path.name, _text(path, data))
        if len(data) > LARGEST_TAR:
            raise SubmissionError(f"{path}: is larger than {LARGEST_TAR >> 20} MiB")
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:  # no compression: it may be a bomb
            return _from_tar(path, tar)
    except FileNotFoundError:
        raise SubmissionError(f"{path}: no such file") from None
    except SubmissionError:
        raise
    except (OSError, tarfile.TarError, EOFError, ValueError, OverflowError, MemoryError) as error:
        raise SubmissionError(f"{path}: cannot be read: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return printable(" ".join(str(error).split()), 1, 200)


def _from_tar(path: Path, tar: tarfile.TarFile) -> Submission:
    found, note = None, {}
    for number, member in enumerate(tar):
        if number >= MOST:
            raise SubmissionError(f"{path}: has more than {MOST} members, expected {MEMBER} alone")
        if member.name == MEMBER and member.isreg() and member.size <= LARGEST:
            found = tar.extractfile(member).read(LARGEST + 1)
            note = _note(member.pax_headers.get("comment", "{}"))
    if found is None:
        raise SubmissionError(f"{path}: holds no {MEMBER} of at most {LARGEST >> 20} MiB")
    return Submission(path.name, _text(path, found), note.get("student", ""), note.get("lab", ""))


def _note(text: str) -> dict[str, str]:
    """What `./lab handin` wrote beside the file: short printable strings, or nothing."""
    try:
        note = json.loads(text[:4096])
        return {k: v[:80] for k, v in note.items() if isinstance(v, str) and v.isprintable()}
    except (ValueError, AttributeError, RecursionError):
        return {}


def _text(path: Path, data: bytes) -> str:
    if len(data) > LARGEST:
        raise SubmissionError(f"{path}: is larger than {LARGEST >> 20} MiB")
    try:
        return data.decode("utf-8-sig")  # some editors put a mark at the head
    except UnicodeDecodeError:
        raise SubmissionError(f"{path}: is not UTF-8 text") from None
