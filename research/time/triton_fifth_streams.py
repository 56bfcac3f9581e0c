"""Streams of the fifth round: five known kinds, drawn by machine, six new ones; triton_fifth.py saves them.

New are rows quantised to 8 bits, rows gathered from a table, group norm, RMS norm of a sum that is kept, sums
and squares of columns, and the largest number of a row with its place.
"""

from __future__ import annotations

import drawn
import triton
import triton.language as tl
import triton_bench as bench
import triton_fourth_streams as fourth
import triton_more as more
from triton_bench import Row


@triton.jit
def quantised(x_ptr, out_ptr, scale_ptr, columns, BLOCK: tl.constexpr):
    """A row in bytes, and what a step of them is worth."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    most = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-10)
    done = tl.floor(x * (127.0 / most) + 0.5)
    tl.store(out_ptr + row * columns + at, done.to(tl.int8), mask=inside)
    tl.store(scale_ptr + row, most / 127.0)


@triton.jit
def embedding(index_ptr, table_ptr, out_ptr, vocabulary, columns, scale, BLOCK: tl.constexpr):
    """A row of the table for each token, scaled. The low bits of an index count; tokens lie 7919 rows apart,
    so that rows are spread whatever the indices."""
    token = tl.program_id(0)
    source = ((tl.load(index_ptr + token) & 7) + token * 7919) % vocabulary
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(table_ptr + source * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        tl.store(out_ptr + token * columns + at, (x * scale).to(out_ptr.dtype.element_ty), mask=at < columns)


@triton.jit
def group_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, pixels, channels, groups, eps,
               BLOCK: tl.constexpr):  # fmt: skip
    """A row is a group of channels, each `pixels` numbers; an image has `groups`. Two passes."""
    row = tl.program_id(0)
    total, square = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / columns
    rate = tl.rsqrt(tl.sum(square, axis=0) / columns - mean * mean + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        channel = row % groups * channels + at // pixels
        weight = tl.load(weight_ptr + channel, mask=inside, other=0.0)
        bias = tl.load(bias_ptr + channel, mask=inside, other=0.0)
        x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        done = (x - mean) * rate * weight + bias
        tl.store(out_ptr + row * columns + at, done.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def residual_norm(x_ptr, other_ptr, weight_ptr, sum_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    """The sum of two rows, which is kept, and its RMS norm."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(other_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * columns + at, x.to(sum_ptr.dtype.element_ty), mask=inside)
    rate = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + at, (x * rate * weight).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def batch_stats(x_ptr, sum_ptr, square_ptr, rows, columns, slabs, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Sums and sums of squares of a slab's columns, as batch norm needs them."""
    slab, block = tl.program_id(0) % slabs, tl.program_id(0) // slabs
    height = rows // slabs
    at = block * BLOCK + tl.arange(0, BLOCK)
    total, square = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, height, ROWS):
        here = slab * height + start + tl.arange(0, ROWS)
        x = tl.load(x_ptr + here[:, None] * columns + at[None, :]).to(tl.float32)
        total += x
        square += x * x
    tl.store(sum_ptr + slab * columns + at, tl.sum(total, axis=0))
    tl.store(square_ptr + slab * columns + at, tl.sum(square, axis=0))


@triton.jit
def top_one(x_ptr, most_ptr, place_ptr, columns, BLOCK: tl.constexpr):
    """The largest number of a row, and the first place where it stands."""
    row = tl.program_id(0)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf")).to(tl.float32)
        place = tl.where(x > most, at, place)
        most = tl.maximum(most, x)
    top = tl.max(most, axis=0)
    tl.store(most_ptr + row, top)
    tl.store(place_ptr + row, tl.min(tl.where(most == top, place, columns), axis=0))


# ---- what is drawn ----


class Plan:
    """Height and width of a stream that moves `each` bytes a number, its block and warps."""

    def __init__(self, kind: str, small: bool, each: float, steps=(8, 16), tiny=(5, 1200), **limits):
        chance = drawn.machine(f"{kind} block")
        self.high, self.wide = tiny if small else drawn.rows(kind, each, steps, **limits)
        self.block, self.warps = chance.choice((512, 1024, 2048)), chance.choice((4, 8))
        self.shape = self.high, self.wide

    @property
    def whole(self) -> int:
        """A block that holds a row."""
        return triton.next_power_of_2(self.wide)


def known(kind: str, small: bool) -> Row:
    """A kind of an earlier round."""
    plan = Plan(kind, small, *OF_KIND[kind][0], **OF_KIND[kind][1])
    return OF_KIND[kind][2](plan)


SLAB = {"tiny": (96, 256)}
OF_KIND = {  # (bytes a number, steps), further limits, how its row is made
    "softmax": ((8,), {}, lambda p: bench.softmax(p.high, p.whole)),
    "layernorm": ((6,), {}, lambda p: bench.layer_norm(p.high, p.wide)),
    "add": ((12, (1, 4096)), {"tiny": (1, 8192)}, lambda p: bench.add(p.high * p.wide, 2048)),
    "rms_norm": ((4,), {}, lambda p: more.rows_of(more.rms_norm, *p.shape, p.whole, p.warps)),
    "gated": ((6,), {}, lambda p: more.rows_of(more.gated, *p.shape, p.block, p.warps, "bfloat16")),
    "log_sum_exp": (
        (2,),
        {"widths": (8192, 131072)},
        lambda p: more.rows_of(more.log_sum_exp, *p.shape, p.block, p.warps),
    ),
    "transpose": ((4, (64, 64)), {"tiny": (64, 128)}, lambda p: more.turned(*p.shape, 64, 4)),
    "matvec": ((2,), {"tiny": (32, 720)}, lambda p: fourth.vector(*p.shape, 8, 256, 4)),
    "norm_backward": ((6,), {}, lambda p: fourth.backward(*p.shape, p.whole, p.warps)),
    "cross_entropy": (
        (6,),
        {"widths": (8192, 131072)},
        lambda p: fourth.entropy(*p.shape, p.block, p.warps),
    ),
    "rotary": ((4, (8, 4096)), {"tiny": (5, 4096)}, lambda p: fourth.turning(p.high, p.wide // 128, 64, 4)),
    "column_sums": ((2, (128, 128)), SLAB, lambda p: fourth.sums(*p.shape, p.high // 32 % 4 + 1, 8, 128, 4)),
    "adam": (
        (26, (1, 4096)),
        {"tiny": (1, 4096)},
        lambda p: fourth.flat(fourth.adam, p.high * p.wide, 512, 4),
    ),
    "dropout": (
        (6, (1, 4096)),
        {"tiny": (1, 4096)},
        lambda p: fourth.flat(fourth.dropout, p.high * p.wide, p.block, p.warps),
    ),
    "running_sum": ((8,), {}, lambda p: fourth.running(*p.shape, p.block, p.warps)),
    "four_taps": ((4, (16, 128)), {"tiny": (64, 256)}, lambda p: fourth.taps(*p.shape, 16, 128, 4)),
}
KNOWN = drawn.some("known streams", list(OF_KIND), 5)


# ---- rows of the new kinds ----


def bytes_of_rows(small: bool) -> Row:
    p = Plan("quantised", small, 3)
    args = [("x", "bfloat16", p.shape, "in"), ("out", "int8", p.shape, "out")]
    args += [("scale", "float32", (p.high,), "out"), ("columns", p.wide)]
    return fourth.row(quantised, p.shape, args, dict(BLOCK=p.whole), p.high, p.warps, 4)


def gathered(small: bool) -> Row:
    p = Plan("embedding", small, 4)
    words = 50 if small else drawn.extent(drawn.machine("vocabulary"), 20_000, 60_000, 16)
    args = [("index", "int32", (p.high,), "in"), ("table", "bfloat16", (words, p.wide), "in")]
    args += [("out", "bfloat16", p.shape, "out"), ("vocabulary", words), ("columns", p.wide), ("scale", 0.5)]
    return fourth.row(embedding, p.shape, args, dict(BLOCK=p.block), p.high, p.warps, 1)


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
    return fourth.row(group_norm, p.shape, args, dict(BLOCK=p.block), p.high, p.warps, 8)


def kept_sum(small: bool) -> Row:
    p = Plan("residual_norm", small, 8)
    args = [(n, "bfloat16", p.shape, "in") for n in ("x", "other")] + [("weight", "float32", (p.wide,), "in")]
    args += [(n, "bfloat16", p.shape, "out") for n in ("sum", "out")] + [("columns", p.wide), ("eps", 1e-6)]
    return fourth.row(residual_norm, p.shape, args, dict(BLOCK=p.whole), p.high, p.warps, 6)


def statistics(small: bool) -> Row:
    p = Plan("batch_stats", small, 2, (512, 128), tiny=(96, 256))
    slabs = 2 if small else 32
    args = [("x", "float16", p.shape, "in")]
    args += [(n, "float32", (slabs, p.wide), "out") for n in ("sum", "square")]
    args += [("rows", p.high), ("columns", p.wide), ("slabs", slabs)]
    constants = dict(ROWS=16, BLOCK=128)
    return fourth.row(batch_stats, p.shape, args, constants, p.wide // 128 * slabs, p.warps, 3)


def largest(small: bool) -> Row:
    p = Plan("top_one", small, 2, widths=(8192, 131072))
    args = [("x", "float16", p.shape, "in"), ("most", "float32", (p.high,), "out")]
    args += [("place", "int32", (p.high,), "out"), ("columns", p.wide)]
    return fourth.row(top_one, p.shape, args, dict(BLOCK=p.block), p.high, p.warps, 2)


NEW = bytes_of_rows, gathered, of_groups, kept_sum, statistics, largest


def streams(small: bool) -> list[Row]:
    """At the sizes of the round, or of ptxsim."""
    return [known(kind, small) for kind in KNOWN] + [make(small) for make in NEW]
