"""More free choices: where K begins, how wide a K tile or a tile is, which threads store, what TMEM holds.

Each is applied to a step alone or together with those of unusual.py, in the same way.
"""

from __future__ import annotations

import re

from kernel_variants import put
from unusual import Choice, Text, body, head, read_in_chunks

_K = r"k_st = Tx\.meta_var\(k \* BLK_K\)"


def rotated(texts: Text) -> Text:
    """Each CTA (or pair) begins at a K tile of its own."""
    own = "(bx // CTA_GROUP)" if "CTA_GROUP" in texts[1] else "bx"
    return texts[0], put(texts[1], (_K, f"k_st = Tx.meta_var((k + {own}) % K_TILES * BLK_K)"))


def wide_k(texts: Text) -> Text:
    """K tiles of 128; the last one extends past the edge of A and B, where TMA loads zeros."""
    return (
        put(texts[0], (r"BLK_M, BLK_N, BLK_K = 128, 128, 64", "BLK_M, BLK_N, BLK_K = 128, 128, 128")),
        put(
            texts[1], (r"K=\(K, BLK_K\)", "K=(K, 64)"), (r"K_TILES = K // BLK_K", "K_TILES = -(-K // BLK_K)")
        ),
    )


def wide(texts: Text) -> Text:
    """Tiles of 256 columns; the last ones extend past the edge of D."""
    texts = texts if "EPI_N" in texts[1] else read_in_chunks(texts)
    blocks = r"BLK_M, BLK_N, BLK_K = 128, 128, 64", "BLK_M, BLK_N, BLK_K = 128, 256, 64"
    columns = r"(?<!/ )\bN // BLK_N", "(N + BLK_N - 1) // BLK_N"
    return put(texts[0], blocks), put(texts[1], (r"N=\(N, BLK_N\)", "N=(N, 128)"), columns)


def two_buffers(texts: Text) -> Text:
    """D is stored from two buffers in turn: one is written while the other is stored."""
    return texts[0], put(
        texts[1],
        (r"(D_LAYOUT = .*)\(BLK_M, EPI_N\)", r"\1(2, BLK_M, EPI_N)"),
        (r"Dsmem = pool\.alloc\(\(BLK_M, EPI_N\)", "Dsmem = pool.alloc((2, BLK_M, EPI_N)"),
        (r"Dsmem\[warp_id \* 32 \+ lane_id, :\]", "Dsmem[i % 2, warp_id * 32 + lane_id, :]"),
        (r"Dsmem\[:, :\]", "Dsmem[i % 2, :, :]"),
        (r"wait_group\(0\)", "wait_group(1)"),
        (
            r"^( +)(Tx\.cuda\.(?:cta|cluster)_sync\(\)  # all roles.*)$",
            r"\1if wg_id == 0:\n\1    if warp_id == 0:\n"
            r'\1        with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:\n'
            r"\1            Tx.ptx.cp_async.bulk.wait_group(0)\n\1\2",
        ),
    )


def zigzag(texts: Text) -> Text:
    """Every other column of tiles is taken from bottom to top."""
    rows = re.search(r"^ +num_m_tiles=(.*),$", texts[1], re.M)[1]
    turned = f"Tx.if_then_else(tile_scheduler.n_idx % 2 == 1, {rows} - 1 - tile_scheduler.m_idx, "
    return texts[0], put(texts[1], (r"tile_scheduler\.m_idx", f"{turned}tile_scheduler.m_idx)"))


def two_products(texts: Text) -> Text:
    """Two MMAs for each stage, each for half of the columns."""
    mma = re.search(r"^( +)Tx\.gemm_async\(\n(?:.*\n)+?\1\)\n", texts[1], re.M)[0]
    parts = []
    for part in range(2):
        first, last = f"{part} * (BLK_N // 2)", f"{part + 1} * (BLK_N // 2)"
        one = mma.replace("tmem[:, :BLK_N]", f"tmem[:, {first} : {last}]")
        parts.append(re.sub(r"Bsmem\[(stage, )?:", rf"Bsmem[\g<1>{first} : {last}", one))
    return texts[0], texts[1].replace(mma, "".join(parts))


def half_boxes(texts: Text) -> Text:
    """Each operand is loaded by two copies, each of half of the rows."""
    load = r"^( +)Tx\.copy_async\(Asmem\[(stage, )?:, :\], A\[m_st : m_st \+ BLK_M, (.*)\], \*\*tma\)$"
    found = re.search(load, texts[1], re.M)
    stage = found[2] or ""
    lines = [
        f"{found[1]}Tx.copy_async(Asmem[{stage}{n} * 64 : {n + 1} * 64, :], "
        f"A[m_st + {n} * 64 : m_st + {n + 1} * 64, {found[3]}], **tma)"
        for n in range(2)
    ]
    return texts[0], texts[1].replace(found[0], "\n".join(lines))


def tall(texts: Text) -> Text:
    """Tiles of 256 rows, two MMAs that share B; the last ones extend past the edge of D."""
    load = r"^( +)Tx\.copy_async\(Asmem\[stage, :, :\], A\[m_st : m_st \+ BLK_M, (.*)$"
    mma = r"^( +)Tx\.gemm_async\(\n +tmem\[:, :BLK_N\],\n +Asmem\[stage, :, :\],\n((?:.*\n)+?)\1\)$"
    products = (
        r"\1for c in Tx.unroll(2):\n\1    Tx.gemm_async(\n\1        tmem[:, c * BLK_N : c * BLK_N + BLK_N],\n"
        r"\1        Asmem[stage, c, :, :],\n\2\1    )"
    )
    row = "m_st + i // (BLK_N // EPI_N) * BLK_M"
    return texts[0], put(
        texts[1],
        (r"M=\(M, BLK_M\)", "M=(M, 128)"),
        (r"TILE_BYTES = \(BLK_M", "TILE_BYTES = (2 * BLK_M"),
        (r"(A_LAYOUT = .*\(PIPE_DEPTH, |Asmem = pool\.alloc\(\(PIPE_DEPTH, )BLK_M", r"\g<1>2, BLK_M"),
        (r"num_m_tiles=M // BLK_M", "num_m_tiles=(M + 2 * BLK_M - 1) // (2 * BLK_M)"),
        (r"m_idx \* BLK_M\)", "m_idx * 2 * BLK_M)"),
        (
            load,
            r"\1for c in Tx.unroll(2):\n\1    a_st = Tx.meta_var(m_st + c * BLK_M)\n"
            r"\1    Tx.copy_async(Asmem[stage, c, :, :], A[a_st : a_st + BLK_M, \2",
        ),
        (mma, products),
        (r"Dreg_16b = Tx\.alloc_local\(\(BLK_N,", "Dreg_16b = Tx.alloc_local((2 * BLK_N,"),
        (r"unroll\(BLK_N // EPI_N\)", "unroll(2 * BLK_N // EPI_N)"),
        (r"n_st \+ i \* EPI_N\)", "n_st + i % (BLK_N // EPI_N) * EPI_N)"),
        (r"D\[m_st : m_st \+ BLK_M, d_st", f"D[{row} : {row} + BLK_M, d_st"),
    )


def two_writers(texts: Text) -> Text:
    """Two warpgroups write back, each half of the columns."""
    width = "MMA_N" if "MMA_N" in texts[1] else "BLK_N"
    start = f"wg_id // 2 * ({width} // 2) + i * EPI_N"
    return texts[0], put(
        texts[1],
        (r"WG_NUMBER = 2", "WG_NUMBER = 3"),
        (r"(D_LAYOUT = .*|Dsmem = pool\.alloc\()\(BLK_M, EPI_N\)", r"\1(2, BLK_M, EPI_N)"),
        (r"ld2mma\.init\(128", "ld2mma.init(256"),
        (r"if wg_id == 0:(\n +Dreg = )", r"if wg_id != 1:\1"),
        (rf"unroll\({width} // EPI_N\)", f"unroll({width} // EPI_N // 2)"),
        (r"tmem\[:, i \* EPI_N : i \* EPI_N \+ EPI_N\]", f"tmem[:, {start} : {start} + EPI_N]"),
        (r"Dsmem\[warp_id \* 32 \+ lane_id, :\]", "Dsmem[wg_id // 2, warp_id * 32 + lane_id, :]"),
        (r"Dsmem\[:, :\]", "Dsmem[wg_id // 2, :, :]"),
        (r"((?:d_)?n_st) \+ i \* EPI_N\)", rf"\1 + {start})"),
        (r"warpgroup_sync\(1\)", "warpgroup_sync(1 + wg_id)"),
    )


_CHUNK = r"^    EPI_N = 64 ", "    EPI_N = 32 "
_NARROW_D = r"(D_LAYOUT = tma_shared_layout\(F16, )SWIZZLE", r"\1SwizzleMode.SWIZZLE_64B_ATOM"
_BLOCKS = "BLK_M, BLK_N, BLK_K = 128, 128, 64", "BLK_M, BLK_N, BLK_K = 128, 128, 32"
_ATOM = (
    "SWIZZLE = SwizzleMode.SWIZZLE_64B_ATOM\nA_LAYOUT = B_LAYOUT = tma_shared_layout(F16, SWIZZLE, (128, 32))"
)
_K_OF_32 = head(_BLOCKS, (r"^(A_LAYOUT|B_LAYOUT) = .*\n", ""), (r"^SWIZZLE = .*$", _ATOM))
_BACKWARDS = body((_K, "k_st = Tx.meta_var((K_TILES - 1 - k) * BLK_K)"))
_STORER = body((r"if warp_id == 0:(\n +with Tx\.thread.*\n +d_)", r"if warp_id == 3:\1"))
_ALLOC = r"if wg_id == 0:\n( +)if warp_id == 0:(\n +Tx\.ptx\.tcgen05\.alloc)"
_SWAPPED = body(
    (r"Asmem\[stage, warp_id, :, :\]", "Asmem[stage, 1 - warp_id, :, :]"),
    (r"m_st \+ wg_id \* BLK_M", "m_st + (1 - wg_id) * BLK_M"),
)
MORE = (
    Choice("k", "k-backwards", tuple(range(2, 11)), _BACKWARDS),
    Choice("k", "k-rotated", tuple(range(3, 11)), rotated),
    Choice("tile", "k-tiles-of-32", tuple(range(2, 10)), _K_OF_32),
    Choice("tile", "k-tiles-of-128", (4, 5, 6, 7), wide_k),
    Choice("tile", "256-columns", (4, 5, 7, 8), wide),
    Choice("storer", "warp-3-stores", (7, 8, 9, 10), _STORER),
    Choice("allocator", "warp-2-allocates", (7, 8), body((_ALLOC, r"if wg_id == 1:\n\1if warp_id == 2:\2"))),
    Choice("buffers", "two-buffers", (7, 8, 9), two_buffers),
    Choice("turn", "zigzag", (6, 7, 8, 9, 10), zigzag),
    Choice("products", "two-products", tuple(range(1, 9)), two_products),
    Choice("columns", "tmem-of-128", tuple(range(1, 9)), head((r"^TMEM_COLS = 512", "TMEM_COLS = 128"))),
    Choice("chunks", "32-columns", (7, 8, 9), body(_CHUNK, _NARROW_D)),
    Choice("boxes", "half-boxes", tuple(range(4, 10)), half_boxes),
    Choice("consumers", "consumers-swapped", (10,), _SWAPPED),
    Choice("tile", "256-rows", (7, 8), tall),
    Choice("writers", "two-writers", (7, 8, 9), two_writers),
)
