"""Streams of the fifth and sixth round: five known kinds and six new ones, with sizes drawn at random."""

from __future__ import annotations

import triton

from research.time import drawn
from research.time.by_triton import more_streams as more
from research.time.by_triton import streams
from research.time.by_triton.row import Row


class Plan:
    """Height and width of a stream that moves `each` bytes per number, with its block and warps."""

    def __init__(self, kind: str, small: bool, each: float, steps=(8, 16), tiny=(5, 1200), **limits):
        chance = drawn.machine(f"{kind} block")
        self.high, self.wide = tiny if small else drawn.rows(kind, each, steps, **limits)
        self.block, self.warps = chance.choice((512, 1024, 2048)), chance.choice((4, 8))
        self.shape = self.high, self.wide

    @property
    def whole(self) -> int:
        """A block that holds a whole row."""
        return triton.next_power_of_2(self.wide)


SLAB = {"tiny": (96, 256)}
OF_KIND = {  # (bytes a number, steps), further limits, how its row is made
    "softmax": ((8,), {}, lambda p: streams.softmax(p.high, p.whole)),
    "layernorm": ((6,), {}, lambda p: streams.layer_norm(p.high, p.wide)),
    "add": ((12, (1, 4096)), {"tiny": (1, 8192)}, lambda p: streams.add(p.high * p.wide, 2048)),
    "rms_norm": ((4,), {}, lambda p: streams.rows_of(streams.rms_norm, *p.shape, p.whole, p.warps)),
    "gated": ((6,), {}, lambda p: streams.rows_of(streams.gated, *p.shape, p.block, p.warps, "bfloat16")),
    "log_sum_exp": (
        (2,),
        {"widths": (8192, 131072)},
        lambda p: streams.rows_of(streams.log_sum_exp, *p.shape, p.block, p.warps),
    ),
    "transpose": ((4, (64, 64)), {"tiny": (64, 128)}, lambda p: streams.turned(*p.shape, 64, 4)),
    "matvec": ((2,), {"tiny": (32, 720)}, lambda p: streams.vector(*p.shape, 8, 256, 4)),
    "norm_backward": ((6,), {}, lambda p: streams.backward(*p.shape, p.whole, p.warps)),
    "cross_entropy": (
        (6,),
        {"widths": (8192, 131072)},
        lambda p: streams.entropy(*p.shape, p.block, p.warps),
    ),
    "rotary": ((4, (8, 4096)), {"tiny": (5, 4096)}, lambda p: streams.turning(p.high, p.wide // 128, 64, 4)),
    "column_sums": ((2, (128, 128)), SLAB, lambda p: streams.sums(*p.shape, p.high // 32 % 4 + 1, 8, 128, 4)),
    "adam": (
        (26, (1, 4096)),
        {"tiny": (1, 4096)},
        lambda p: more.flat(more.adam, p.high * p.wide, 512, 4),
    ),
    "dropout": (
        (6, (1, 4096)),
        {"tiny": (1, 4096)},
        lambda p: more.flat(more.dropout, p.high * p.wide, p.block, p.warps),
    ),
    "running_sum": ((8,), {}, lambda p: more.running(*p.shape, p.block, p.warps)),
    "four_taps": ((4, (16, 128)), {"tiny": (64, 256)}, lambda p: more.taps(*p.shape, 16, 128, 4)),
}
KNOWN = drawn.some("known streams", list(OF_KIND), 5)


def known(kind: str, small: bool) -> Row:
    """A row of a kind of an earlier round."""
    plan = Plan(kind, small, *OF_KIND[kind][0], **OF_KIND[kind][1])
    return OF_KIND[kind][2](plan)


# ---- rows of the new kinds ----


def bytes_of_rows(small: bool) -> Row:
    p = Plan("quantised", small, 3)
    args = [("x", "bfloat16", p.shape, "in"), ("out", "int8", p.shape, "out")]
    args += [("scale", "float32", (p.high,), "out"), ("columns", p.wide)]
    return streams.row(more.quantised, p.shape, args, dict(BLOCK=p.whole), p.high, p.warps, 4)


def gathered(small: bool) -> Row:
    p = Plan("embedding", small, 4)
    words = 50 if small else drawn.extent(drawn.machine("vocabulary"), 20_000, 60_000, 16)
    args = [("index", "int32", (p.high,), "in"), ("table", "bfloat16", (words, p.wide), "in")]
    args += [("out", "bfloat16", p.shape, "out"), ("vocabulary", words), ("columns", p.wide), ("scale", 0.5)]
    return streams.row(more.embedding, p.shape, args, dict(BLOCK=p.block), p.high, p.warps, 1)


def of_groups(small: bool) -> Row:
    """32 groups of an image, of 8, 16 or 32 square channels."""
    chance = drawn.machine("group_norm")
    channels, side, groups = chance.choice((8, 16, 32)), drawn.extent(chance, 24, 96, 4), 32
    images = drawn.extent(chance, *(10e7 / (groups * channels * side**2) * f for f in (0.3, 1)), 1)
    if small:
        channels, side, groups, images = 8, 12, 2, 2
    pixels = side**2
    p = Plan("group_norm", True, 4, tiny=(images * groups, channels * pixels))
    args = [("x", "float16", p.shape, "in")]
    args += [(n, "float32", (groups * channels,), "in") for n in ("weight", "bias")]
    args += [("out", "float16", p.shape, "out"), ("columns", p.wide), ("pixels", pixels)]
    args += [("channels", channels), ("groups", groups), ("eps", 1e-5)]
    return streams.row(more.group_norm, p.shape, args, dict(BLOCK=p.block), p.high, p.warps, 8)


def kept_sum(small: bool) -> Row:
    p = Plan("residual_norm", small, 8)
    args = [(n, "bfloat16", p.shape, "in") for n in ("x", "other")] + [("weight", "float32", (p.wide,), "in")]
    args += [(n, "bfloat16", p.shape, "out") for n in ("sum", "out")] + [("columns", p.wide), ("eps", 1e-6)]
    return streams.row(more.residual_norm, p.shape, args, dict(BLOCK=p.whole), p.high, p.warps, 6)


def statistics(small: bool) -> Row:
    p = Plan("batch_stats", small, 2, (512, 128), tiny=(96, 256))
    slabs = 2 if small else 32
    args = [("x", "float16", p.shape, "in")]
    args += [(n, "float32", (slabs, p.wide), "out") for n in ("sum", "square")]
    args += [("rows", p.high), ("columns", p.wide), ("slabs", slabs)]
    constants = dict(ROWS=16, BLOCK=128)
    return streams.row(more.batch_stats, p.shape, args, constants, p.wide // 128 * slabs, p.warps, 3)


def largest(small: bool) -> Row:
    p = Plan("top_one", small, 2, widths=(8192, 131072))
    args = [("x", "float16", p.shape, "in"), ("most", "float32", (p.high,), "out")]
    args += [("place", "int32", (p.high,), "out"), ("columns", p.wide)]
    return streams.row(more.top_one, p.shape, args, dict(BLOCK=p.block), p.high, p.warps, 2)


NEW = bytes_of_rows, gathered, of_groups, kept_sum, statistics, largest


def drawn_streams(small: bool) -> list[Row]:
    """The rows, at the sizes of the round, or of ptxsim."""
    return [known(kind, small) for kind in KNOWN] + [make(small) for make in NEW]
