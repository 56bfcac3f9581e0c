"""Kernels with a right result and a technique for show: what a step demands runs beside the real work.

A `Show` is an edited kernel of the reference, handed in as a step whose technique it only pretends to use.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kernel_variants import REFERENCE, file_with, put

from tirxlab.steps import sections


@dataclass(frozen=True)
class Show:
    name: str
    source: int  # step of the reference that is edited
    step: int  # as which it is handed in
    edit: Callable[[str], str]
    words: str  # that the hint must contain

    @property
    def text(self) -> str:
        """A kernels file with this step alone."""
        text = self.edit(sections(REFERENCE)[self.source])
        return file_with({self.step: text.replace(f"def hgemm_v{self.source}(", f"def hgemm_v{self.step}(")})


def by_threads(text: str) -> str:
    """The MMAs run, but threads compute the product that is written."""
    rows, columns = ("m_st + ", "n_st + ") if "m_st" in text else ("", "")
    product = rf"""\1for j in range(BLK_N):
\1    total[0] = Tx.float32(0)
\1    for k in range(K):
\1        a, b = A[{rows}warp_id * 32 + lane_id, k], B[{columns}j, k]
\1        total[0] = total[0] + Tx.cast(a, F32) * Tx.cast(b, F32)
\1    Dreg_16b[j] = Tx.cast(total[0], F16)"""
    return put(
        text,
        (r"^( +)Tx\.cast\(Dreg_16b\[:\], Dreg\[:\]\)$", product),
        (r"^( +)Dreg = Tx\.alloc_local\(.*$", r'\g<0>\n\1total = Tx.alloc_local((1,), "float32")'),
    )


def loader_waits(text: str) -> str:
    """The loads of a tile begin once the tile before it has been stored."""
    return put(
        text,
        (r"^( +)(ld2mma = MBarrier.*)$", r'\1\2\n\1wb2tma = MBarrier(pool, 1, "wb2tma")'),
        (r"^( +)ld2mma\.init\(128\).*$", r"\g<0>\n\1wb2tma.init(128)"),
        (
            r"^( +)wb_phase\.init\(is_producer=False\)$",
            r"\g<0>"
            r'\n\1go_phase = PipelineState("go", 1)\n\1go_phase.init(is_producer=True)',
        ),
        (
            r"^( +)for k in range\(K_TILES\):(\n +mma2tma\.wait)",
            r"\1wb2tma.wait(0, go_phase.phase)\n\1go_phase.move_to_next_stage()\n\g<0>",
        ),
        (
            r"^( +)(Tx\.cuda\.warpgroup_sync\(1\)  # Dsmem may be over.*\n)( +)(tile_scheduler\.next)",
            r"\1\2\3wb2tma.arrive(0)\n\3\4",
        ),
    )


def waits_late(tile: int) -> Callable[[str], str]:
    """The loads of a tile begin once the tile before it has been stored, from a CTA's given tile on."""

    def edit(text: str) -> str:
        return put(
            loader_waits(text),
            (r"^( +)go_phase\.init\(is_producer=True\)$", r"\g<0>\n\1late = 0"),
            (
                r"^( +)wb2tma\.wait\(0, go_phase\.phase\)$",
                rf"\1if late >= {tile - 1}:\n\1    wb2tma.wait(0, go_phase.phase)\n\1late = late + 1",
            ),
        )

    return edit


def serial_late(kind: str, first: int) -> Callable[[str], str]:
    """From a given K tile (or tile) on, the loading warp waits for each of its loads and the MMA on it."""
    counted = {"K tile": "k", "tile": "late"}[kind]

    def edit(text: str) -> str:
        return put(
            text,
            (
                r"^( +)tma_load\(k, tma_phase\.stage\)$",
                r"\g<0>"
                rf"\n\1if {counted} >= {first}:"
                r"\n\1    mma2tma.wait(tma_phase.stage, tma_phase.phase ^ 1)",
            ),
            (r"^( +)tma_phase\.init\(is_producer=True\)$", r"\g<0>\n\1late = 0"),
            (
                r"^( +)(tma_phase\.move_to_next_stage\(\)\n)( +)(tile_scheduler\.next)",
                r"\1\2\3late = late + 1\n\3\4",
            ),
        )

    return edit


def one_by_one(first: int) -> Callable[[str], str]:
    """One warp does everything; from a given K tile on it loads each only after the MMAs on the last."""

    load = r"^( +)if k \+ PIPE_DEPTH < K_TILES:\n( +)tma_load\(k \+ PIPE_DEPTH, stage\)$"
    late = (
        rf"\1if k + PIPE_DEPTH < min(K_TILES, {first}):\n\2tma_load(k + PIPE_DEPTH, stage)"
        rf"\n\1if k >= {first - 1} and k < K_TILES - 1:\n\2tma_load(k + 1, (stage + 1) % PIPE_DEPTH)"
    )
    return lambda text: put(text, (load, late))


def own_load_waited(text: str) -> str:
    """The loading warp waits for each of its loads before it issues the next: one is ahead."""
    return put(
        text,
        (
            r"^( +)tma_load\(k, tma_phase\.stage\)$",
            r"\g<0>\n\1tma2mma.wait(tma_phase.stage, own_phase.phase)\n\1own_phase.move_to_next_stage()",
        ),
        (
            r"^( +)tma_phase\.init\(is_producer=True\)$",
            r'\g<0>\n\1own_phase = PipelineState("own", PIPE_DEPTH)\n\1own_phase.init(is_producer=False)',
        ),
    )


def one_stage(text: str) -> str:
    """A ring of one stage: every load waits for the MMA before it."""
    return put(text, (r"^    PIPE_DEPTH = \d", "    PIPE_DEPTH = 1"))


def three_stages(text: str) -> str:
    return put(text, (r"^    PIPE_DEPTH = 4", "    PIPE_DEPTH = 3"))


def two_deep(text: str) -> str:
    return put(text, (r"^    PIPE_DEPTH = 4", "    PIPE_DEPTH = 2"))


def short_k_alone(text: str) -> str:
    """The ring is as deep as demanded for a K that fits into it, and has one stage for all others."""
    return put(text, (r"^    PIPE_DEPTH = (\d)", r"    PIPE_DEPTH = \1 if K <= 512 else 1"))


def filled_by_fours(text: str) -> str:
    """Four stages instead of two, filled only when all are empty."""
    return fill_once(put(text, (r"^    PIPE_DEPTH = 2", "    PIPE_DEPTH = 4")))


def third_of_the_ctas(text: str) -> str:
    """A third of the CTAs take all tiles."""
    return put(
        text,
        (r"num_clusters=SM_COUNT,", "num_clusters=max(1, SM_COUNT // 3),"),
        (
            r"tile_scheduler\.init\(bx\)",
            "tile_scheduler.init(Tx.if_then_else(bx < max(1, SM_COUNT // 3), bx, 1 << 20))",
        ),
    )


def few_work(text: str) -> str:
    """An eighteenth of the CTAs take all tiles."""
    return put(
        text,
        (r"num_clusters=SM_COUNT,", "num_clusters=max(1, SM_COUNT // 18),"),
        (
            r"tile_scheduler\.init\(bx\)",
            "tile_scheduler.init(Tx.if_then_else(bx < max(1, SM_COUNT // 18), bx, 1 << 20))",
        ),
    )


def fill_once(text: str) -> str:
    """All stages are filled at the start; later each is refilled only when all are empty."""
    wait = r"^( +)mma2tma\.wait\(tma_phase\.stage, tma_phase\.phase\)$"
    all_free = r"""\1if tma_phase.stage == 0:
\1    for i in Tx.unroll(PIPE_DEPTH):
\1        mma2tma.wait(i, tma_phase.phase)"""
    return put(text, (wait, all_free))


def idle_stages(text: str) -> str:
    """Two stages in turn, and two more that are filled once and never read."""
    return put(
        text,
        (
            r"^( +)Dsmem = pool\.alloc\(.*$",
            r"\g<0>\n\1Xsmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)"
            r"\n\1Ysmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)",
        ),
        (
            r"^( +)tma2mma\.arrive\(stage, TILE_BYTES\)$",
            r"\1Tx.copy_async(Xsmem[stage, :, :], A[m_st : m_st + BLK_M, k_st : k_st + BLK_K], **tma)"
            r"\n\1Tx.copy_async(Ysmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)"
            r"\n\1tma2mma.arrive(stage, 2 * TILE_BYTES)",
        ),
    )


def both_at_once(text: str) -> str:
    """Both stages are filled at the start; later both are refilled once both are empty."""
    refill = r"""\1for i in Tx.unroll(PIPE_DEPTH):
\1    if k + i + 1 < K_TILES:
\1        tma_load(k + i + 1, i)"""
    return put(
        text,
        (r"^( +)if k \+ PIPE_DEPTH < K_TILES:$", r"\1if k % PIPE_DEPTH == PIPE_DEPTH - 1:"),
        (r"^( +)tma_load\(k \+ PIPE_DEPTH, stage\)$", refill),
    )


_READER = r"""
            if wg_id == 2:
                Xreg = Tx.alloc_local((EPI_N,), F32)
                Xreg_wg = Xreg.view(128, EPI_N, layout=ROW_PER_THREAD)
                while tile_scheduler.valid():
                    mma2ld.wait(1, wb_phase.phase)
                    wb_phase.move_to_next_stage()
                    Tx.ptx.tcgen05.fence.after_thread_sync()
                    for i in Tx.unroll(MMA_N // EPI_N):
                        with Tx.warpgroup():
                            Tx.copy(Xreg_wg[:, :], tmem[:, MMA_N + i * EPI_N : MMA_N + i * EPI_N + EPI_N])
                    Tx.ptx.tcgen05.fence.before_thread_sync()
                    ld2mma.arrive(1, cta_id=0)
                    tile_scheduler.next_tile()

"""


def second_consumer(text: str) -> str:
    """A second warp multiplies into columns of its own, and a second warpgroup reads them, to no effect."""
    mma = re.search(
        r"^ +if warp_id == 0:\n +with Tx\.thread.*\n +while(?:.*\n)+?(?= +# TODO\[end\])", text, re.M
    )
    other = (
        mma[0]
        .replace("warp_id == 0", "warp_id == 1")
        .replace("mma(mma", "mma_too(mma")
        .replace("ld2mma.wait(0", "ld2mma.wait(1")
        .replace("mma2ld.arrive(0", "mma2ld.arrive(1")
    )
    text = text.replace(mma[0], mma[0] + other)
    inline = re.search(r"^ +@Tx\.inline\n +def mma\(stage(?:.*\n)+?(?=\n)", text, re.M)
    too = (
        inline[0].replace("def mma(", "def mma_too(").replace("tmem[:, :MMA_N]", "tmem[:, MMA_N : 2 * MMA_N]")
    )
    text = text.replace(inline[0], inline[0] + "\n" + too)
    return put(
        text.replace(
            "            Tx.cuda.cluster_sync()  # all roles",
            _READER + "            Tx.cuda.cluster_sync()  # all roles",
        ),
        (r"WG_NUMBER = 2", "WG_NUMBER = 3"),
        (r'TCGen05Bar\(pool, 1, "mma2ld"\)', 'TCGen05Bar(pool, 2, "mma2ld")'),
        (r'MBarrier\(pool, 1, "ld2mma"\)', 'MBarrier(pool, 2, "ld2mma")'),
        (r"mma2tma\.init\(1\)", "mma2tma.init(2)"),
    )


ZEROS = r"""\1if wg_id == 0:
\1    with Tx.thread():
\1        for j in range(BLK_K):
\1            Zsmem[0, warp_id * 32 + lane_id, j] = Tx.float16(0)
\g<0>"""


def while_loading(text: str, products: str) -> str:
    """One stage; while its load is in flight, the tensor core computes products of the zeros in Zsmem."""
    return put(
        one_stage(text),
        (
            r"^( +)Dsmem = pool\.alloc\(.*$",
            r"\g<0>\n\1Zsmem = pool.alloc((1, BLK_M, BLK_K), F16, layout=A_LAYOUT)",
        ),
        (r"^( +)mma2tma\.arrive\(stage, .*$", rf"\g<0>\n{products}"),
        (r'^( +)Tx\.ptx\.fence\.proxy_async\("shared::cta"\)\n( +)Tx\.ptx\.fence\.mbarrier_init.*$', ZEROS),
    )


def busy_with_nothing(text: str) -> str:
    """One stage; while its load is in flight, the tensor core adds products of zeros."""
    nothing = r"""\1Tx.gemm_async(
\1    tmem[:, :BLK_N], Zsmem[0, :, :], Zsmem[0, :, :], accum=True, dispatch="tcgen05", cta_group=1
\1)"""
    return while_loading(text, nothing)


_ALL_ROWS = r"""\1for c in Tx.unroll(NUM_CONSUMER):
\1    Tx.gemm_async(
\1        tmem[:, c * MMA_N : c * MMA_N + MMA_N],
\1        Asmem[stage, c, :, :],\2"""


def halves_of_k(text: str) -> str:
    """Two warps multiply one after the other, each all rows of A over half of K."""
    turns = r"""\1if warp_id == 0:
\1    ld2mma.wait(0, ld_phase.phase)
\1    ld2mma.wait(1, ld_phase.phase)
\1if warp_id == 1:
\1    half.wait(0, half_phase.phase)
\1    half_phase.move_to_next_stage()"""
    mine = r"""\1if k // ((K_TILES + 1) // 2) == warp_id:
\1    \2
\1    \3
\1    \4"""
    ends = r"""\1if warp_id == 0:
\1    half.arrive(0, cta_group=CTA_GROUP, cta_mask=3)
\1if warp_id == 1:
\1    mma2ld.arrive(0, \2
\1    mma2ld.arrive(1, \2"""
    return put(
        text,
        (r"^( +)mma2ld = TCGen05Bar.*$", r'\g<0>\n\1half = TCGen05Bar(pool, 1, "half")'),
        (r"^( +)mma2tma\.init\(NUM_CONSUMER\).*$", r"\1mma2tma.init(1)\n\1half.init(1)"),
        (
            r"^( +)wb_phase\.init\(is_producer=False\)$",
            r'\g<0>\n\1half_phase = PipelineState("half", 1)\n\1half_phase.init(is_producer=False)',
        ),
        (
            r"^( +)Tx\.gemm_async\(\n.*warp_id \* MMA_N.*\n.*warp_id, :, :\],"
            r"((?:\n.*)+?cta_group=CTA_GROUP,\n +\))$",
            _ALL_ROWS,
        ),
        (r"^( +)ld2mma\.wait\(warp_id, ld_phase\.phase\)$", turns),
        (
            r"^( +)(tma2mma\.wait\(mma_phase.*)\n +(Tx\.ptx\.tcgen05\.fence\.after.*)\n"
            r" +(mma\(mma_phase\.stage, k != 0\))$",
            mine,
        ),
        (r"^( +)mma2ld\.arrive\(warp_id, (.*)$", ends),
    )


def deep_on_few_sms(depth: int) -> Callable[[str], str]:
    """A ring that is as deep as demanded only on a few SMs."""
    return lambda text: put(
        text, (r"^    PIPE_DEPTH = 4", f"    PIPE_DEPTH = 4 if SM_COUNT < 100 else {depth}")
    )


SHOWS = (
    Show("threads-multiply", 1, 1, by_threads, "not all of the product"),
    Show("threads-multiply", 2, 2, by_threads, "not all of the product"),
    Show("both-at-once", 5, 5, both_at_once, "always load one ahead"),
    Show("few-ctas-work", 6, 6, few_work, "a few CTAs"),
    Show("few-ctas-work", 7, 7, few_work, "a few CTAs"),
    Show("loader-waits", 7, 7, loader_waits, "next tile's loads wait for the write-back"),
    Show("loader-waits", 8, 8, loader_waits, "next tile's loads wait for the write-back"),
    Show("waits-for-its-own-load", 8, 8, own_load_waited, "four stages are asked for"),
    Show("one-stage", 7, 7, one_stage, "load one stage ahead"),
    Show("one-stage", 9, 9, one_stage, "load one stage ahead"),
    Show("three-stages", 8, 8, three_stages, "four stages are asked for"),
    Show("two-stages", 9, 9, two_deep, "step 8 asks for four stages"),
    Show("deep-for-a-short-k-alone", 7, 7, short_k_alone, "load one stage ahead"),
    Show("deep-for-a-short-k-alone", 8, 8, short_k_alone, "load one stage ahead"),
    Show("filled-by-fours", 7, 7, filled_by_fours, "always load one ahead"),
    Show("third-of-the-ctas", 7, 7, third_of_the_ctas, "a few CTAs"),
    Show("loader-waits", 7, 8, loader_waits, "next tile's loads wait for the write-back"),
    Show("idle-stages", 7, 8, idle_stages, "four stages are asked for"),
    Show("filled-once", 8, 8, fill_once, "always load one ahead"),
    Show("busy-with-nothing", 7, 7, busy_with_nothing, "load one stage ahead"),
    Show("one-by-one-behind-k-tile-22", 5, 5, one_by_one(22), "always load one ahead"),
    Show("one-by-one-from-k-tile-23", 6, 6, one_by_one(22), "always load one ahead"),
    Show("waits-from-tile-3", 7, 7, waits_late(3), "next tile's loads wait for the write-back"),
    Show("waits-from-tile-4", 7, 7, waits_late(4), "next tile's loads wait for the write-back"),
    Show("waits-from-tile-3", 8, 8, waits_late(3), "next tile's loads wait for the write-back"),
    Show("serial-from-tile-3", 7, 7, serial_late("tile", 2), "load one stage ahead"),
    Show("serial-from-tile-3", 8, 8, serial_late("tile", 2), "load one stage ahead"),
    Show("serial-from-k-tile-23", 7, 7, serial_late("K tile", 22), "always load one ahead"),
    Show("three-stages-from-100-sms", 8, 8, deep_on_few_sms(3), "four stages are asked for"),
    Show("two-stages-from-100-sms", 9, 9, deep_on_few_sms(2), "step 8 asks for four stages"),
    Show("halves-of-k", 10, 10, halves_of_k, "each its own rows of A"),
    Show("second-consumer", 9, 10, second_consumer, "one warp issues all MMAs"),
)
