"""Reads a hand-in: one kernels file, alone or in handin.tar. A tar is opened in a confined child."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path

from instructor.autograder import opening
from instructor.autograder.opening import LARGEST, MEMBER, decoded
from instructor.autograder.reader import Reader, ReadError

LARGEST_TAR = 4 << 20
MOST_FILES = 1000  # files of a folder that are searched for a renamed kernels file
_PACKED = {  # by the first bytes
    b"PK\3\4": "zip", b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"Rar!": "RAR",
    b"7z\xbc\xaf": "7-Zip", b"\x28\xb5\x2f\xfd": "Zstandard",
}  # fmt: skip
_PACKED_NAMES = (".zip", ".gz", ".tgz", ".xz", ".txz", ".bz2", ".rar", ".7z", ".zst")


class SubmissionError(ValueError):
    """The file is not a submission; the message says why in one line.

    `what`: the same without our folders, for the student.
    """

    def __init__(self, path: Path, what: str):
        super().__init__(_shown(f"{path}: {what}"))
        self.what = _shown(f"{path.name}: {what}")


def _shown(line: str) -> str:
    """The line with unprintable characters escaped: a file in a hand-in may have any name."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


@dataclass(frozen=True)
class Submission:
    name: str  # of the file that was handed in
    text: str
    student: str = ""  # as the student gave it
    lab: str = ""  # version of the lab that made the hand-in

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_submission(path: Path, reader: Reader | None = None) -> Submission:
    """Reads a .py file, a handin.tar, or a folder that holds either; links are not followed.

    `reader`: a Reader of opening.py to share between submissions; by default one is started if needed.
    """
    path = Path(path)  # os.path looks at it, which never raises: a folder may be locked, a link a loop
    if _is_folder(path):
        path = path / _chosen(path)
    if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
        link = " (links are not followed)" if os.path.islink(path) else ""
        raise SubmissionError(path, f"is not a regular file{link}")
    try:
        with open(path, "rb", opener=_without_links) as file:
            data = file.read(LARGEST_TAR + 1)
    except FileNotFoundError:
        raise SubmissionError(path, "no such file") from None
    except OSError as error:
        raise SubmissionError(path, f"cannot be read: {error.strerror}") from None
    for begins, kind in _PACKED.items():
        if data.startswith(begins):
            what = f"is packed with {kind}, which is not opened: hand in {MEMBER}, or what ./lab handin makes"
            raise SubmissionError(path, what)
    if path.suffix.lower() != ".tar":
        return Submission(path.name, _text(path, data))
    if len(data) > LARGEST_TAR:
        raise SubmissionError(path, f"is larger than {LARGEST_TAR >> 20} MiB")
    if reader is not None:
        return _from_tar(path, data, reader)
    with Reader(opening) as reader:
        return _from_tar(path, data, reader)


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _chosen(folder: Path, outer: Path | None = None) -> str:
    """The file to read: under its usual name, else the only one, which a browser may have renamed; else the
    one in the only folder inside. `outer`: the hand-in, if this folder is inside it.
    """
    for usual in (MEMBER, "handin.tar"):
        if os.path.lexists(folder / usual):
            return usual
    try:
        names = [one.name for one in itertools.islice(folder.iterdir(), MOST_FILES)]
    except OSError as error:
        raise SubmissionError(folder, f"cannot be read: {error.strerror}") from None
    for ending in (".py", ".tar"):
        found = [name for name in names if name.lower().endswith(ending) and not name.startswith(".")]
        if len(found) == 1:
            return found[0]
        if found:
            what = f"holds {len(found)} {ending} files, none of them {MEMBER}"
            raise SubmissionError(outer or folder, what)
    packed = [name for name in names if name.lower().endswith(_PACKED_NAMES)]
    if len(packed) == 1:
        return packed[0]
    folders = [name for name in names if not name.startswith((".", "__")) and _is_folder(folder / name)]
    if len(folders) == 1 and not outer:
        return f"{folders[0]}/{_chosen(folder / folders[0], outer=folder)}"
    raise SubmissionError(outer or folder, f"holds neither {MEMBER} nor handin.tar")


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _from_tar(path: Path, data: bytes, reader: Reader) -> Submission:
    try:
        made = json.loads(reader.call("open_tar", data))
    except ReadError as error:
        raise SubmissionError(path, str(error)) from None
    return Submission(path.name, made["text"], made["student"], made["lab"])


def _text(path: Path, data: bytes) -> str:
    if len(data) > LARGEST:
        raise SubmissionError(path, f"is larger than {LARGEST >> 20} MiB")
    try:
        return decoded(data)
    except ValueError as error:
        raise SubmissionError(path, str(error)) from None
