"""Variants of the ten steps that only an unkind machine distinguishes: wrong ones, and correct counterparts.

A variant is a substitution in the text of one step. Each pattern is applied to every step that has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tirxlab.steps import STEPS, sections

ELECTED = 'with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:'
LANE_0 = 'with Tx.thread(parent="warp")[lane_id == 0]:'


@dataclass(frozen=True)
class Pattern:
    name: str
    item: int  # 1 columns, 2 elected lane, 4 tiles and K, 5 barriers and tiles outside, 8 equal stores
    edits: tuple[tuple[str, str], ...]  # (regular expression, replacement); all of them must match
    words: tuple[str, ...]  # one of them is in the first finding; none: the variant is right
    steps: tuple[int, ...] = STEPS


@dataclass(frozen=True)
class Variant:
    pattern: Pattern
    step: int
    text: str  # of the whole file


def _few_columns(columns: int) -> tuple[str, str]:
    return r"n_cols=TMEM_COLS", f"n_cols={columns}"


def _decl(columns: int, address: str) -> tuple[str, str]:
    layout = f"TileLayout(S[(128, {columns}) : (1 @ TLane, 1 @ TCol)])"
    return (
        r"\(128, TMEM_COLS\), F32, scope=\"tmem\", allocated_addr=tmem_addr\[0\], layout=TMEM_LAYOUT",
        f'(128, {columns}), F32, scope="tmem", allocated_addr={address}, layout={layout}',
    )


_BASE = "alloc returned column"
_SMALL = (3, 4, 5, 6, 7)  # two of their CTAs fit on an SM
_OUTSIDE = ("outside", "out of bounds")
_GROUP = r"( *)(Tx\.ptx\.cp_async\.bulk\.wait_group\(0\))"
_TMA_WAIT = r"( *)(Tx\.ptx\.mbarrier\.try_wait\(\n? *tma_bar)"
_BY_LANE_0 = r"\1if lane_id == 0:\n\1    \2"
_NO_WAIT = (r" *ld2mma\.wait\(.*\n", "")
_GRID = (r"\[M // BLK_M, N // BLK_N\]", "[2 * (M // BLK_M), N // BLK_N]")
_ROWS = (r"num_m_tiles=M // ([\w* ()]+),", r"num_m_tiles=M // (\1) + 1,")
_COLUMNS = (r"num_n_tiles=N // (\w+),", r"num_n_tiles=N // \1 + 1,")
_STORE = (
    r"( *)if warp_id == 0:\n"
    r"( *with Tx\.thread\(parent=\"warp\"\)\[Tx\.ptx\.elect_sync\(\)\]:\n"
    r"(?: *d_\w+ = .*\n)* *Tx\.copy_async\(\n? *D\[)"
)
_PROXY_FENCE = r"( *)Tx\.ptx\.fence\.proxy_async\(.*\)\n"
_INIT_FENCE = r" *Tx\.ptx\.fence\.mbarrier_init\(\)\n"
_INIT_FENCE_ONLY = r"\1Tx.ptx.fence.mbarrier_init()\n"
_LOADED = tuple(range(4, 11))  # steps in which a TMA load comes first
_FOUR = (  # accumulators in turn
    _NO_WAIT,
    (
        r"(?m)^( *)(tile_scheduler\.init\(bx\))$",
        r"\1\2\n\1turn = Tx.alloc_local((1,), 'int32')\n\1turn[0] = 0",
    ),
    (r"tmem\[:, :BLK_N\],", "tmem[:, turn[0] * BLK_N : turn[0] * BLK_N + BLK_N],"),
    (
        r"tmem\[:, i \* EPI_N : i \* EPI_N \+ EPI_N\]",
        "tmem[:, turn[0] * BLK_N + i * EPI_N : turn[0] * BLK_N + i * EPI_N + EPI_N]",
    ),
    (r"(?m)^( *)(tile_scheduler\.next_tile\(\))$", r"\1\2\n\1turn[0] = (turn[0] + 1) % 4"),
)
PATTERNS = (
    Pattern("address 0, 128 columns", 1, (_few_columns(128), _decl(128, "0")), (_BASE,), _SMALL),
    Pattern("address 0, 256 columns", 1, (_few_columns(256), _decl(256, "0")), (_BASE,), _SMALL),
    Pattern("address of alloc, 128 columns", 1, (_few_columns(128), _decl(128, "tmem_addr[0]")), (), _SMALL),
    Pattern(
        "address of alloc, 256 columns",
        *(1, (_few_columns(256), _decl(256, "tmem_addr[0]")), (), tuple(range(1, 10))),
    ),
    Pattern("lane 0 waits for the group", 2, ((_GROUP, _BY_LANE_0),), ("never waited for", "has not waited")),
    Pattern("lane 0 does what the elected lane did", 2, ((re.escape(ELECTED), LANE_0),), ()),
    Pattern("the elected lane inits", 2, ((r"if lane_id == 0:", ELECTED),), ()),
    Pattern("lane 0 waits, another multiplies", 2, ((_TMA_WAIT, _BY_LANE_0),), ("wait",), (5, 6)),
    Pattern("lane 0 waits for the data", 2, ((r"( *)(tma2mma\.wait\()", _BY_LANE_0),), ("tma2mma",)),
    Pattern("lane 0 waits for the free stage", 2, ((r"( *)(mma2tma\.wait\()", _BY_LANE_0),), ("mma2tma",)),
    Pattern("K capped at 1024", 4, ((r"K_TILES = K // BLK_K", "K_TILES = min(K // BLK_K, 16)"),), ("D",)),
    Pattern("TMEM never waited for", 4, (_NO_WAIT,), ("ld2mma", "tensor memory")),
    Pattern("four accumulators, none handed back", 4, _FOUR, ("ld2mma", "tensor memory"), (7, 8)),
    Pattern(
        "five stages, none waited for",
        *(4, ((r"PIPE_DEPTH = \d", "PIPE_DEPTH = 5"), (r" *mma2tma\.wait\(.*\n", ""))),
        *(("mma2tma", "Asmem", "Bsmem"), (7, 8)),
    ),
    Pattern("no fence.mbarrier_init", 5, ((_INIT_FENCE, ""),), ("fence.mb",), (9, 10)),
    Pattern("no fence behind the inits", 5, ((_PROXY_FENCE + _INIT_FENCE, ""),), ("fence.mb",), _LOADED),
    Pattern("the init fence alone", 5, ((_PROXY_FENCE + _INIT_FENCE, _INIT_FENCE_ONLY),), ()),
    Pattern("the proxy fence alone", 5, ((_INIT_FENCE, ""),), (), tuple(range(1, 9))),
    Pattern("init(127)", 5, ((r"ld2mma\.init\(128\)", "ld2mma.init(127)"),), ("127",), (7, 8)),
    Pattern("init(255)", 5, ((r"ld2mma\.init\(128 \* CTA_GROUP\)", "ld2mma.init(255)"),), ("255",), (9, 10)),
    Pattern("twice the rows of the grid", 5, (_GRID,), _OUTSIDE, (3, 4, 5)),
    Pattern("one row of tiles too many", 5, (_ROWS,), _OUTSIDE),
    Pattern("one column of tiles too many", 5, (_COLUMNS,), _OUTSIDE),
    Pattern("every warp stores", 8, ((_STORE, r"\1if warp_id >= 0:\n\2"),), ("each issue this copy",)),
)


def variants(text: str) -> list[Variant]:
    """All variants of the steps of a kernels file."""
    parts, made = sections(text), []
    for pattern in PATTERNS:
        for step in pattern.steps:
            changed, fits = parts[step], True
            for old, new in pattern.edits:
                changed, count = re.subn(old, new, changed)
                fits &= count > 0
            if fits and changed != parts[step]:
                made.append(Variant(pattern, step, "".join((parts | {step: changed}).values())))
    return made
