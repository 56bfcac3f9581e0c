"""Saves the set of a round."""

import sys
from pathlib import Path

from research.time.by_triton.compiled import save
from research.time.by_triton.rounds import ROUNDS, WITHOUT_SMALL


def main(words: list[str]) -> None:
    small = words[2:] == ["small"]
    usage = f"usage: python -m research.time.by_triton {'|'.join(ROUNDS)} OUT.tar.xz [small]"
    if len(words) not in (2, 3) or words[0] not in ROUNDS or (words[2:] and not small):
        sys.exit(usage)
    if small and words[0] in WITHOUT_SMALL:
        sys.exit(f"the {words[0]} round has no small sizes; {usage}")
    save(ROUNDS[words[0]](small), Path(words[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
