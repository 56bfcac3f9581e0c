"""Makes correct kernels that do not resemble the reference: edits of a step, each a free choice.

A `Choice` has a name, the steps that it fits and an edit of (head of the file, text of the step). `kernels`
draws combinations by a seed, at most one of each axis.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernel_variants import REFERENCE, file_with, put

from tirxlab.steps import sections

Text = tuple[str, str]  # head of the file, section of the step


@dataclass(frozen=True)
class Choice:
    axis: str
    name: str
    steps: tuple[int, ...]
    edit: Callable[[Text], Text]


def body(*pairs: tuple[str, str]) -> Callable[[Text], Text]:
    """An edit of the step's own text."""
    return lambda texts: (texts[0], put(texts[1], *pairs))


def head(*pairs: tuple[str, str]) -> Callable[[Text], Text]:
    return lambda texts: (put(texts[0], *pairs), texts[1])


_ISSUE = r"( +)with Tx\.thread\(parent=\"warp\"\)\[Tx\.ptx\.elect_sync\(\)\]:"
_LOOP = _ISSUE + r"\n +(?:for i in Tx\.unroll\(PRE_NUM\)|for k in range\(K_TILES\))"
_HAND_BACK = r"^( +)ld2mma\.arrive\((\w+)((?:, cta_id=0)?)\)$"


def depth(stages: int) -> Callable[[Text], Text]:
    return body((r"^    PIPE_DEPTH = \d$", f"    PIPE_DEPTH = {stages}"))


def chunk(columns: int) -> Callable[[Text], Text]:
    return body((r"^    EPI_N = 64 ", f"    EPI_N = {columns} "))


def issuer(warp: int) -> Callable[[Text], Text]:
    """Another warp issues loads and MMAs of steps 4 to 6."""
    return body((r"if warp_id == 0:\n(" + _LOOP + ")", rf"if warp_id == {warp}:\n\1"))


def loader(warp: int) -> Callable[[Text], Text]:
    return body((r"if warp_id == 3:(\n +with Tx\.thread)", rf"if warp_id == {warp}:\1"))


def multiplier(warp: int) -> Callable[[Text], Text]:
    return body((r"if warp_id == 0:(\n" + _ISSUE + r"\n +while)", rf"if warp_id == {warp}:\1"))


def one_arrives(texts: Text) -> Text:
    """Write-back synchronises at a named barrier, and one elected lane releases TMEM for all."""
    new = (
        r"\1Tx.cuda.warpgroup_sync(5 + wg_id)\n\1if warp_id == 2:\n"
        r'\1    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:\n\1        ld2mma.arrive(\2\3)'
    )
    return texts[0], put(texts[1], (_HAND_BACK, new), (r"ld2mma\.init\(128( \* CTA_GROUP)?\)", _one))


def _one(match: re.Match) -> str:
    return "ld2mma.init(CTA_GROUP)" if match[1] else "ld2mma.init(1)"


def warpgroups_swapped(texts: Text) -> Text:
    """Warpgroup 0 loads and multiplies, warpgroup 1 writes back."""
    return texts[0], put(
        texts[1],
        (r"if wg_id == 1:(\n +if warp_id == )", r"if wg_id == 0:\1"),
        (r"if wg_id == 0:(\n +Dreg = )", r"if wg_id == 1:\1"),
    )


def idle_warpgroup(texts: Text) -> Text:
    return texts[0], put(texts[1], (r"WG_NUMBER = (\d)", lambda m: f"WG_NUMBER = {int(m[1]) + 1}"))


def two_sums(texts: Text) -> Text:
    """TMEM holds two tiles: the next one is multiplied while one is read."""
    columns = r"tmem[:, ld_phase.stage * BLK_N : ld_phase.stage * BLK_N + BLK_N]"
    start = r"wb_phase.stage * BLK_N + i * EPI_N"
    return texts[0], put(
        texts[1],
        (r'PipelineState\("(ld|wb)", 1\)', r'PipelineState("\1", 2)'),
        (r'TCGen05Bar\(pool, 1, "mma2ld"\)', 'TCGen05Bar(pool, 2, "mma2ld")'),
        (r'MBarrier\(pool, 1, "ld2mma"\)', 'MBarrier(pool, 2, "ld2mma")'),
        (r"tmem\[:, :BLK_N\]", columns),
        (r"ld2mma\.wait\(0, ld_phase\.phase\)\n +ld_phase\.move_to_next_stage\(\)", _WAIT),
        (
            r"^( +)mma2ld\.arrive\(0, (.*)\)$",
            r"\1mma2ld.arrive(ld_phase.stage, \2)\n\1ld_phase.move_to_next_stage()",
        ),
        (
            r"mma2ld\.wait\(0, wb_phase\.phase\)\n +wb_phase\.move_to_next_stage\(\)",
            "mma2ld.wait(wb_phase.stage, wb_phase.phase)",
        ),
        (r"tmem\[:, i \* EPI_N : i \* EPI_N \+ EPI_N\]", f"tmem[:, {start} : {start} + EPI_N]"),
        (r"^( +)ld2mma\.arrive\(0\)$", r"\1ld2mma.arrive(wb_phase.stage)\n\1wb_phase.move_to_next_stage()"),
    )  # fmt: skip


_WAIT = "ld2mma.wait(ld_phase.stage, ld_phase.phase)"


def two_loaders(texts: Text) -> Text:
    """One warp loads A, another B; each announces its own bytes."""
    section = texts[1]
    inline = re.search(r"^ +@Tx\.inline\n +def tma_load\((?:.*\n)+?(?=\n)", section, re.M)[0]
    load_a = "".join(line for line in inline.splitlines(True) if "Bsmem" not in line)
    load_b = "".join(line for line in inline.splitlines(True) if "Asmem" not in line)
    load_a = load_a.replace("TILE_BYTES", "BLK_M * BLK_K * F16_BYTES")
    load_b = load_b.replace("TILE_BYTES", "BLK_N * BLK_K * F16_BYTES").replace("tma_load(", "tma_load_b(")
    role = re.search(
        r"^ +if warp_id == \d:\n +with Tx\.thread.*\n +while(?:.*\n)+?.*next_tile\(\)\n", section, re.M
    )[0]
    other = re.sub(r"warp_id == \d", "warp_id == 1", role).replace("tma_load(", "tma_load_b(")
    section = section.replace(inline, load_a + "\n" + load_b).replace(role, role + other)
    return texts[0], put(section, (r"tma2mma\.init\(1\)", "tma2mma.init(2)"))


def groups(size: int) -> Callable[[Text], Text]:
    return body((r"l2_group_size=L2_GROUP_SIZE", f"l2_group_size={size}"))


def scheduler(start: str) -> Callable[[Text], Text]:
    """CTAs (or clusters) take tiles in a different order."""
    return body((r"tile_scheduler\.init\((bx|bx // CTA_GROUP)\)", rf"tile_scheduler.init({start})"))


def in_chunks(texts: Text) -> Text:
    """Each CTA takes consecutive tiles; the last CTAs may get none."""
    return texts[0], put(
        texts[1],
        (r"^    K_TILES =", "    CHUNK = -(-(M // BLK_M * (N // BLK_N)) // SM_COUNT)\n\\g<0>"),
        (r"tile_scheduler\.init\(bx\)", r"tile_scheduler.init(bx * CHUNK)"),
        (r"num_clusters=SM_COUNT", "num_clusters=1"),
        (r"(tile_scheduler\.valid\(\)):", r"\1 and tile_scheduler.linear_idx < (bx + 1) * CHUNK:"),
    )  # fmt: skip


def columns_first(texts: Text) -> Text:
    """The tiles are numbered along the columns."""
    rows, columns = (re.search(rf"^ +num_{x}_tiles=(.*),$", texts[1], re.M)[1] for x in "mn")
    text = texts[1].replace(f"num_m_tiles={rows},", f"num_m_tiles={columns},", 1)
    text = text.replace(f"num_n_tiles={columns},", f"num_n_tiles={rows},", 1)
    swap = {"m_idx": "n_idx", "n_idx": "m_idx"}
    return texts[0], re.sub(r"tile_scheduler\.([mn]_idx)", lambda m: f"tile_scheduler.{swap[m[1]]}", text)


def read_in_chunks(texts: Text) -> Text:
    """Steps 1 to 6 read TMEM 32 columns at a time."""
    return (texts[0], put(
        texts[1],
        (r"^( +)with Tx\.warpgroup\(\):\n +Tx\.copy\(Dreg_wg\[:, :\], tmem\[:, :BLK_N\]\)$",
         r"\1for c in Tx.unroll(BLK_N // 32):\n\1    with Tx.warpgroup():\n"
         r"\1        Tx.copy(Dreg_wg[:, c * 32 : c * 32 + 32], tmem[:, c * 32 : c * 32 + 32])"),
    ))  # fmt: skip


_NARROW = head((r"BLK_M, BLK_N, BLK_K = 128, 128, 64", "BLK_M, BLK_N, BLK_K = 128, 64, 64"))
_ONE_MMA_WARP = (r"if warp_id == 0:(\n" + _ISSUE + r"\n +Tx\.ptx\.tcgen05\.fence)", r"if warp_id == 3:\1")
CHOICES = (
    *(Choice("stages", f"{n}-stages", (5, 6), depth(n)) for n in (3, 4, 5, 6)),
    *(Choice("stages", f"{n}-stages", (7,), depth(n)) for n in (3, 4, 5, 6)),
    *(Choice("stages", f"{n}-stages", (8,), depth(n)) for n in (5, 6)),
    *(Choice("stages", f"{n}-stages", (9,), depth(n)) for n in (3, 5, 6)),
    *(Choice("stages", f"{n}-stages", (10,), depth(n)) for n in (2, 3)),
    *(Choice("tile", f"{n}-columns", (7, 8, 9), chunk(n)) for n in (128,)),
    *(Choice("issuer", f"warp-{n}-issues", (4, 5, 6), issuer(n)) for n in (1, 2, 3)),
    Choice("issuer", "warp-3-multiplies", (1, 2, 3), body(_ONE_MMA_WARP)),
    *(Choice("loader", f"warp-{n}-loads", (7, 8, 9, 10), loader(n)) for n in (2,)),
    *(Choice("multiplier", f"warp-{n}-multiplies", (7, 8, 9), multiplier(n)) for n in (1,)),
    Choice("hand-back", "one-arrives", (7, 8, 9, 10), one_arrives),
    Choice("roles", "warpgroups-swapped", (7, 8, 9), warpgroups_swapped),
    Choice("idle", "idle-warpgroup", (7, 8, 9), idle_warpgroup),
    Choice("hand-back", "two-sums", (7, 8), two_sums),
    Choice("multiplier", "two-loaders", (7, 8), two_loaders),
    *(Choice("order", f"groups-of-{n}", (6, 7, 8, 9, 10), groups(n)) for n in (1, 16)),
    Choice("start", "backwards", (6, 7, 8), scheduler("SM_COUNT - 1 - bx")),
    Choice("start", "scattered", (6, 7, 8), scheduler("bx * 35 % SM_COUNT")),
    Choice("start", "in-chunks", (6, 7, 8), in_chunks),
    Choice("start", "backwards", (9, 10), scheduler("SM_COUNT // CTA_GROUP - 1 - bx // CTA_GROUP")),
    Choice("start", "scattered", (9, 10), scheduler("bx // CTA_GROUP * 11 % (SM_COUNT // CTA_GROUP)")),
    Choice("numbering", "columns-first", (6, 7, 8, 9, 10), columns_first),
    Choice("tile", "narrow", (4, 5, 6, 7, 8), _NARROW),
    Choice("read", "read-in-chunks", (1, 2, 3, 4, 5, 6), read_in_chunks),
)  # fmt: skip


def of_step(step: int) -> list[Choice]:
    return [choice for choice in CHOICES if step in choice.steps]


def make(step: int, choices: list[Choice]) -> str:
    """A kernels file with this step alone, with these choices."""
    parts = sections(REFERENCE)
    texts = parts[0], parts[step]
    for choice in choices:
        texts = choice.edit(texts)
    return file_with({step: texts[1]}, texts[0])


def kernels(step: int, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """(names of the choices, kernels file), all different; with seed 0 each single choice comes first."""
    mine, rng, seen = of_step(step), random.Random(1000 * step + seed), set()
    axes = sorted({choice.axis for choice in mine})
    drawn = [[choice] for choice in mine] if seed == 0 else []
    for _ in range(50 * count):
        used = rng.sample(axes, rng.randint(1, len(axes)))
        drawn.append([rng.choice([c for c in mine if c.axis == axis]) for axis in sorted(used)])
    for choices in drawn:
        name = "+".join(choice.name for choice in choices)
        if name not in seen and len(seen) < count:
            seen.add(name)
            yield name, make(step, choices)
