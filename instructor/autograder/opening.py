"""Extracts the text of a hand-in; runs in a confined child, see reader.py.

A tar is read as data: nothing is unpacked, nothing compressed is opened.
"""

from __future__ import annotations

import io
import json
import tarfile

MEMBER = "gemm_kernels.py"
LARGEST, MOST = 1 << 20, 64  # bytes of a file, members of a tar


def open_tar(data: bytes) -> bytes:
    """The kernels file of a tar and the note of `./lab handin`, as JSON; raises ValueError if it has none."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:  # no compression: it may be a bomb
            return json.dumps(_member(tar)).encode()
    except RecursionError:
        raise ValueError("cannot be read: its headers are nested too deeply") from None
    except (OSError, tarfile.TarError, EOFError, OverflowError) as error:
        raise ValueError(f"cannot be read: {' '.join(str(error).split())}") from None


def _member(tar: tarfile.TarFile) -> dict[str, str]:
    found: tuple[list, ...] = [], [], []  # under its usual name; the same in a folder; any other .py
    for number, member in enumerate(tar):
        if number >= MOST:
            raise ValueError(f"has more than {MOST} members, expected {MEMBER} alone")
        file = tar.extractfile(member) if member.isreg() and _may_be(member.name) else None
        if file and member.size <= LARGEST:
            name = member.name.removeprefix("./")
            rank = 0 if name == MEMBER else 1 if name.endswith(f"/{MEMBER}") else 2
            found[rank].append((file.read(LARGEST + 1), _note(member.pax_headers.get("comment", "{}"))))
    best = next(filter(None, found), [])
    if not found[0] and len(best) != 1:
        raise ValueError(f"holds no {MEMBER} of at most {LARGEST >> 20} MiB")
    data, note = best[-1]
    return {"text": decoded(data), "student": note.get("student", ""), "lab": note.get("lab", "")}


def _may_be(path: str) -> bool:
    """Whether it may be the kernels file, which a browser or an editor may have renamed; no hidden files."""
    *folders, name = path.split("/")
    theirs = {"..", "__MACOSX"} & set(folders)
    return name.lower().endswith(".py") and not name.startswith(".") and not theirs


def decoded(data: bytes) -> str:
    """The text, with line ends normalised as Python does; raises ValueError if it is not UTF-8."""
    try:  # some editors write a byte order mark
        return io.StringIO(data.decode("utf-8-sig"), newline=None).read()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None


def _note(text: str) -> dict[str, str]:
    """What `./lab handin` noted about the file: short printable strings, or nothing."""
    try:
        note = json.loads(text[:4096])
        return {k: v[:80] for k, v in note.items() if isinstance(v, str) and v.isprintable()}
    except (ValueError, AttributeError, RecursionError):
        return {}
