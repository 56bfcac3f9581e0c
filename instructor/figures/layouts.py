"""Figures of data layouts: the 128 B swizzle, tensor memory, the pair of CTAs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ptxsim.layouts import load_layout, result_layout, swizzle
from tirxlab.explain.picture.svg import SERIES, Part, document, labels, line, mosaic, rect, text

PIECE = 16  # bytes that move together
ROW = 128  # bytes of one row of the pattern


def swizzle_pattern() -> str:
    """One column of a 64-wide fp16 tile (8 rows), before and after the 128 B swizzle."""
    parts: list[Part] = []
    for panel, (title, mode) in enumerate((("no swizzle", 0), ("128 B swizzle", 128))):
        left, top, cell = 30 + panel * 250, 26, 25
        parts.append(text(left + 4 * cell, 14, title, 11, "middle", bold=True))
        if panel == 0:
            parts += [text(left - 5, top + r * cell + 16, f"row {r}", 8, "end") for r in range(8)]
        looks: dict[tuple[str, float], list] = {}
        said: dict[tuple[int, int], int] = {}
        for r, piece in itertools.product(range(8), range(8)):
            column = int(swizzle(r * ROW + piece * PIECE, mode)) % ROW // PIECE
            looks.setdefault((SERIES[piece], 0.9 if piece == 2 else 0.35), []).append((r, column))
            said[r, column] = piece
        parts += [*mosaic(left, top, cell, 8, 8, looks), *labels(left, top, cell, said, 10)]
        banks = sorted({int(swizzle(r * ROW + 2 * PIECE, mode)) % ROW // 4 for r in range(8)})
        count = 4 * len(banks)
        parts.append(
            text(left + 4 * cell, top + 8 * cell + 16, f"piece 2 of 8 rows: {count} of 32 banks", 9, "middle")
        )
    return document(500, 250, parts)


def tensor_memory() -> str:
    """128 lanes x 512 columns: where a 128x128 product is held, and which warp may read which lanes."""
    _, lanes, columns = result_layout(128, 128)
    per_warp, _ = load_layout("32x32b", 1)
    left, top, width, height = 80, 30, 400, 160
    parts: list[Part] = [rect(left, top, width, height, "light", "grey")]
    x, w = left + columns.min() * width / 512, (columns.max() - columns.min() + 1) * width / 512
    parts.append(rect(x, top, w, (lanes.max() + 1) * height / 128, SERIES[1], opacity=0.5))
    parts.append(text(x + w / 2, top + height * 3 / 8 + 3, "D 128x128", 9, "middle", bold=True))
    rows = int(per_warp.max()) + 1
    for warp in range(128 // rows):
        y = top + warp * rows * height / 128
        parts.append(line(left - 6, y, left + width, y))
        parts.append(text(left - 8, y + 16, f"warp {warp}", 9, "end"))
        parts.append(text(left - 8, y + 28, f"{warp * rows}-{warp * rows + rows - 1}", 7, "end", "grey"))
    for column in range(0, 513, 128):
        parts.append(text(left + column * width / 512, top - 5, column, 8, "middle"))
    parts.append(text(left + width / 2, 12, "column (32 bits each)", 9, "middle"))
    parts.append(
        text(left + width / 2, top + height + 15, "lane = row of D: one row per thread", 9, "middle")
    )
    return document(500, 215, parts)


def pair_of_ctas() -> str:
    """D of one cta_group::2 MMA with M=256, N=256: which CTA's tensor memory holds which rows."""
    cta, lane, column = result_layout(256, 256, 2)
    parts, left, top, cell = [], 70, 30, 200
    for rank, name in ((0, "CTA 0"), (1, "CTA 1")):
        rows = sorted({int(r) for r in (cta[:, 0] == rank).nonzero()[0]})
        y, h = top + rows[0] * cell / 256, len(rows) * cell / 256
        parts.append(rect(left, y, cell, h, SERIES[rank], "ink", 0.45))
        parts.append(text(left - 6, y + h / 2, f"{rows[0]}-{rows[-1]}", 9, "end"))
        parts.append(text(left + cell / 2, y + h / 2, f"D in TMEM of {name}", 10, "middle", bold=True))
        lanes = f"lanes 0-{int(lane.max())}, columns 0-{int(column.max())}"
        parts.append(text(left + cell / 2, y + h / 2 + 14, lanes, 8, "middle"))
        parts.append(rect(left + cell + 20, y, 60, h, SERIES[rank], "ink", 0.25))
        parts.append(text(left + cell + 50, y + h / 2, f"A of {name}", 8, "middle"))
    for rank in (0, 1):
        x = left + rank * cell / 2
        parts.append(rect(x, top + cell + 14, cell / 2, 34, SERIES[rank], "ink", 0.25))
        parts.append(text(x + cell / 4, top + cell + 34, f"B of CTA {rank}", 8, "middle"))
    parts.append(text(left + cell / 2, 16, "columns of D: 0-255", 9, "middle"))
    return document(370, 290, parts)


FIGURES: dict[str, Callable[[], str]] = {
    "swizzle.svg": swizzle_pattern,
    "tmem.svg": tensor_memory,
    "pair.svg": pair_of_ctas,
}
