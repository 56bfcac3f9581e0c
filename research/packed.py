"""Text in a file of its own, compressed by xz: long tables that programs read."""

from __future__ import annotations

import lzma
from pathlib import Path


def read(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode()


def write(path: Path, text: str) -> None:
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
