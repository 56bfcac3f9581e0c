"""What a confined child may use, and how its text is made safe to print."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

MIB = 1 << 20
MEMORY_EXCEEDED, NOT_STARTED, DISK_EXCEEDED, PROCESSES_EXCEEDED = (
    90,
    91,
    92,
    93,
)  # exit statuses of guard.py and confine.py


@dataclass(frozen=True)
class Limits:
    """The limits of one child. Exceeding any of them ends it."""

    seconds: float = 60.0  # for one request, as clock.py counts: CPU time, or wall time that it slept through
    cpu_seconds: int = 600  # of the child's whole life
    memory: int = 3072 * MIB  # bytes resident, of all its processes together
    processes: int = 32  # and threads
    file_size: int = 64 * MIB  # bytes of any file that it writes
    disk: int = 256 * MIB  # bytes of all files, if it has a file system of its own
    reply: int = 64 * MIB  # bytes of one answer
    printed: int = MIB  # bytes of output


def printable(text: str, lines: int = 24, width: int = 400) -> str:
    """Untrusted text made safe for a terminal or a page: no control characters, at most a screen.

    Tabs become spaces. Characters that change the direction of writing or have no glyph are replaced, too, as
    are combining marks piled up on one letter, which would cover other lines.
    """
    kept = text[: 4 * lines * width].expandtabs(4).splitlines()
    shown = [
        "".join(c if _shown(c) and fits else "\N{REPLACEMENT CHARACTER}" for c, fits in piled(line[:width]))
        for line in kept
    ]
    return "\n".join(shown[:lines] + ["..."] * (len(shown) > lines))


def piled(text: str) -> Iterator[tuple[str, bool]]:
    """Yields (character, whether it stays within its line, not being a fourth mark on the same letter)."""
    height = 0
    for character in text:
        height = height + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        yield character, height <= 3


def _shown(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
