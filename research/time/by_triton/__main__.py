"""Saves the set of the fifth round, or with DRAWN=6 in the environment of the sixth."""

import sys
from dataclasses import replace
from pathlib import Path

from research.time.by_triton import drawn_products
from research.time.by_triton.compiled import save
from research.time.by_triton.drawn_streams import drawn_streams


def main(words: list[str]) -> None:
    small = words[1:] == ["small"]
    if not words or (words[1:] and not small):
        sys.exit("usage: python -m research.time.by_triton OUT.tar.xz [small]")
    rows = [drawn_products.of_kind(kind, small) for kind in drawn_products.KNOWN]
    rows += drawn_products.new_products(small) + drawn_products.attentions(small) + drawn_streams(small)
    save([replace(row, half="unseen") for row in rows], Path(words[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
