"""The lists of slips: a new list is in slips.toml; after it has been run it moves to slips.tar.bz2.

python -m research.advice.lists 12        prints a list
python -m research.advice.lists --pack    moves every list of slips.toml to slips.tar.bz2
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from research import store

WRITTEN = Path(__file__).with_name("slips.toml")
PACKED = Path(__file__).with_name("slips.tar.bz2")
HEAD = "# Slips of a student of the ten steps: slips.py says how they are read and planted.\n\n"
_MEMBER = "list-{:02}.toml"
_ENTRY = re.compile(r"(?:#.*\n|\n)*\[\[slip\]\]\n(?:(?!\[\[slip\]\]|#).+\n)*")  # with the lines above it


def texts(written: Path = WRITTEN, packed: Path = PACKED) -> dict[int, str]:
    """The TOML of each list, by its number."""
    kept = store.load(packed) if packed.exists() else {}
    found = {int(re.search(r"\d+", name)[0]): data.decode() for name, data in kept.items()}
    for number, text in parted(written.read_text()).items():
        found[number] = found.get(number, "") + text
    return found


def parted(text: str) -> dict[int, str]:
    """The entries of each list in a table of slips; those without a number are list 1."""
    found: dict[int, str] = {}
    text = text.removeprefix(HEAD)
    if _ENTRY.sub("", text):
        raise ValueError(f"{WRITTEN.name}: an entry contains a blank line or a comment")
    for entry in _ENTRY.findall(text):
        named = re.search(r"^list = (\d+)$", entry, re.M)
        number = int(named[1]) if named else 1
        found[number] = found.get(number, "") + entry
    return found


def pack(written: Path = WRITTEN, packed: Path = PACKED) -> None:
    """Moves all entries of the table to the store."""
    found = texts(written, packed)
    store.save(packed, {_MEMBER.format(number): text.encode() for number, text in found.items()})
    written.write_text(HEAD)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("number", type=int, nargs="?", choices=sorted(texts()), metavar="N")
    parser.add_argument("--pack", action="store_true")
    options = parser.parse_args()
    if options.pack:
        pack()
    elif options.number:
        print(texts()[options.number])
    else:
        parser.error("say a list, or --pack")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
