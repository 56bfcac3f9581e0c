"""Products and attention of the fifth and sixth round, with sizes drawn at random."""

from __future__ import annotations

from dataclasses import replace

from research.time import drawn
from research.time.by_triton.attention import attention, heads, several, shared_keys, windowed
from research.time.by_triton.kinds import dual, image, looping, of_tiles, scaled, triangular, weights
from research.time.by_triton.layers import chain, gradient, of_experts, router, shared_out, thin_rows
from research.time.by_triton.products import batched, described, fused, gemm, product, split_k
from research.time.by_triton.row import Row

WORK = (12e9, 60e9)  # operations of a product of halves
TILES = (
    (64, 64, 64), (64, 128, 64), (64, 256, 32), (128, 64, 64), (128, 128, 32), (128, 128, 64), (128, 256, 64),
    (256, 128, 64),
)  # fmt: skip
WIDE = ((64, 128, 128), (128, 64, 128), (128, 128, 128), (128, 256, 128), (128, 128, 64))  # byte tiles
NARROW = ((64, 64, 32), (64, 128, 32), (128, 64, 32), (128, 128, 32))  # tiles for float32


class Shape:
    """The draw for a product: size, tile, stages, warps, dtype; `small` replaces its size."""

    def __init__(self, what: str, small: bool, choices=TILES, size=2, rights=1, work=WORK, parts=1, **limits):
        self.tile, self.stages, self.warps = drawn.tile(what, choices, size, rights)
        m, n, k = self.tile
        self.size = drawn.product(what, (m, n, k * parts), work, **limits)
        if small:
            self.size = (2 * m, 2 * n, (self.stages + 1) * k * parts)
        self.dtype = drawn.machine(f"{what} dtype").choice(("float16", "bfloat16"))

    @property
    def plan(self):
        return self.size, self.tile, self.stages, self.warps


def of_kind(kind: str, small: bool) -> Row:
    if kind in ("grouped", "persistent"):
        shape = Shape(kind, small)
        return gemm(kind, *shape.plan, shape.dtype)
    if kind == "described":
        return described(*Shape(kind, small).plan)
    if kind == "fused":
        shape = Shape(kind, small)
        return product(fused, *shape.plan, shape.dtype)
    if kind == "split_k":
        parts = drawn.machine("split_k parts").choice((2, 3, 4, 6))
        limits = ((384, 2048), (384, 2048), (4096, 16384))
        shape = Shape(kind, small, parts=parts, sides=limits)
        if small:  # one tile: atomics are slow on the simulator
            shape.size = (*shape.tile[:2], shape.size[2])
        return product(split_k, *shape.plan, shape.dtype, split=parts)
    if kind == "batched":
        batch = drawn.extent(drawn.machine("batch"), 12, 96, 1)
        limits = ((192, 1024), (192, 1024), (192, 1024))
        work = WORK[0] / batch, WORK[1] / batch
        shape = Shape(kind, small, work=work, sides=limits)
        return product(batched, *shape.plan, shape.dtype, batch=2 if small else batch)
    return of_fourth(kind, small)


def of_fourth(kind: str, small: bool) -> Row:
    """A row of a kind that the fourth round introduced."""
    if kind == "scaled int8":
        return of_tiles(scaled, *Shape(kind, small, WIDE, 1).plan, "int8", "float16")
    if kind == "scaled float8":
        return of_tiles(scaled, *Shape(kind, small, WIDE, 1).plan, "float8_e4m3fn", "bfloat16")
    if kind == "scaled float32":
        return of_tiles(scaled, *Shape(kind, small, NARROW, 4, work=(5e9, 25e9)).plan, "float32")
    if kind == "weights":
        return of_tiles(weights, *Shape(kind, small).plan, "float16")
    if kind == "dual":
        shape = Shape(kind, small, rights=2, work=(6e9, 30e9))
        return of_tiles(dual, *shape.plan, shape.dtype)
    if kind == "looping":
        shape = Shape(kind, small)
        row = of_tiles(looping, *shape.plan, shape.dtype)
        return replace(row, grid=3) if small else row
    if kind == "triangular":
        shape = Shape(kind, small, choices=[t for t in TILES if t[0] >= t[2]])
        m, n, _ = shape.size
        return of_tiles(triangular, (m, n, m), *shape.plan[1:], shape.dtype)
    return drawn_image(small)


def drawn_image(small: bool) -> Row:
    tile, stages, warps = drawn.tile("convolution", TILES)
    chance = drawn.machine("convolution")
    while not small:
        images = drawn.extent(chance, 4, 64, 1)
        high, wide = (drawn.extent(chance, 16, 96, 4) for _ in "hw")
        channels = drawn.extent(chance, 64, 512, tile[2])
        filters = drawn.extent(chance, 64, 512, tile[1])
        pixels = images * high * wide
        if pixels % tile[0] == 0 and WORK[0] <= 18.0 * pixels * channels * filters <= WORK[1]:
            return image(images, high, wide, channels, filters, tile, stages, warps)
    return image(2, 8, 32, tile[2], tile[1], tile, stages, warps)


SURE = ["grouped", "persistent"]
MAYBE = [
    "described", "fused", "split_k", "batched", "scaled int8", "scaled float8", "scaled float32", "weights",
    "dual", "looping", "triangular", "convolution",
]  # fmt: skip
KNOWN = SURE + drawn.some("known products", MAYBE, 7)


def new_products(small: bool) -> list[Row]:
    deep = ((768, 4096), (768, 4096), (4096, 16384))
    one = [t for t in TILES if t[0] * t[1] >= 128 * 128]
    found = []
    for make, what, options in (
        (of_experts, "experts", {}),
        (gradient, "weight_gradient", {"sides": deep}),
        (
            router,
            "routed",
            {"choices": ((64, 256, 64), (128, 256, 64)), "sides": ((8192, 32768), (256, 256), (1024, 6144))},
        ),
        (shared_out, "stream_k", {"choices": one}),
    ):
        shape = Shape(what, small, **options)
        found.append(make(*shape.plan, shape.dtype, small))
    return [*found, thin_rows(small), chain(small)]


# ---- attention ----


def blocks(what: str, rows=(64, 128)) -> tuple[int, int, int, int, int]:
    """(rows, keys, dim, warps, stages); 16 rows a warp, four warps at least."""
    chance = drawn.machine(f"{what} block")
    while True:
        high, keys, dim = chance.choice(rows), chance.choice((32, 64, 128)), chance.choice((64, 128))
        stages = chance.choice((2, 3))
        if stages * keys * dim * 4 + high * dim * 2 <= drawn.SHARED:
            return high, keys, dim, max(4, high // 16), stages


def attentions(small: bool) -> list[Row]:
    found, step = [], 128  # of a length
    high, keys, dim, warps, stages = blocks("attention")
    length = drawn.product("attention", (step, 1, 1), (9e3, 17e3), ((4096, 16384), (1, 1), (1, 1)))[0]
    found.append(attention(256 if small else length, high, keys, dim, warps, stages))
    high, keys, dim, warps, stages = blocks("causal")
    count, length, _ = drawn.product("causal", (4, step, 1), (2e4, 1e5), ((4, 48), (1024, 6144), (1, 1)))
    count, length = (2, 256) if small else (count, length)
    found.append(heads(count, length, dim, high, keys, warps, stages))
    block = blocks("windowed")
    count, length, window = drawn.product(
        "windowed", (4, step, 64), (2e7, 2e8), ((4, 48), (2048, 8192), (256, 2048))
    )
    found.append(several(windowed, *((2, 384, 100) if small else (count, length, window)), block))
    block = blocks("shared_keys", (16,))
    count, length, _ = drawn.product(
        "shared_keys",
        (4, step, 1),
        (6e5 * 128 / block[2], 2e6 * 128 / block[2]),
        ((64, 1024), (512, 8192), (1, 1)),
    )
    found.append(several(shared_keys, *((3, 256, 0) if small else (count, length, 0)), block))
    return found
