"""Hidden sizes made from a secret: other ones each term, always of the kind that shows what a step lacks.

K is an odd number of K tiles, 1024 and more, so that no ring holds all of it; from step 6 on there are more
tiles than CTAs (or clusters), so that some take two.
"""

from __future__ import annotations

import hashlib
import random

from instructor.autograder.behaviour import SMS
from instructor.autograder.plan import Hidden, Size
from tirxlab.rubric import load_rubric
from tirxlab.steps import size_text

BLOCK_K = 64
K_TILES = (17, 19, 21)
TILES = {step: (128, 128) for step in range(1, 9)} | {9: (256, 256), 10: (512, 256)}  # of D, by step
WORKERS = {6: SMS, 7: SMS, 8: SMS, 9: SMS // 2, 10: SMS // 2}  # CTAs or clusters that take tiles in turn
MORE = 1.1  # times as many tiles as workers, at most


def draw(secret: str) -> Hidden:
    """The hidden sizes and the salt that follow from a secret."""
    return Hidden(_hash(secret, "salt"), 0, {step: _sizes(secret, step) for step in TILES})


def _hash(secret: str, what: object) -> str:
    return hashlib.sha256(f"{secret}\0{what}".encode()).hexdigest()


def _sizes(secret: str, step: int) -> tuple[Size, ...]:
    """One size; none for step 1, whose size is fixed."""
    if step == 1:
        return ()
    public = set(load_rubric().sizes(step)) | set(load_rubric().graded[step])
    able = [size for size in candidates(step) if size not in public]
    return (random.Random(_hash(secret, step)).choice(able),)


def candidates(step: int) -> list[Size]:
    (height, width), workers = TILES[step], WORKERS.get(step, 0)
    shapes = [(1, 1)] if step == 2 else [(m, n) for m in range(2, 25) for n in range(2, 25) if m != n]
    if step != 2:
        least, most = (workers + 1, MORE * workers) if workers else (8, 15)
        shapes = [(m, n) for m, n in shapes if least <= m * n <= most]
    return [(m * height, n * width, k * BLOCK_K) for m, n in shapes for k in K_TILES]


def problems(hidden: Hidden) -> list[str]:
    """What is wrong with the sizes, in one line each."""
    known = hidden.salt == DEFAULT_SALT
    found = ["the salt is the one that came with the lab: anybody knows it"] if known else []
    for step, sizes in hidden.sizes.items():
        found += [f"step {step}, {size_text(size)}: {what}" for size in sizes for what in _wrong(step, size)]
    return found


def _wrong(step: int, size: Size) -> list[str]:
    (M, N, K), (height, width) = size, TILES[step]
    public = set(load_rubric().sizes(step)) | set(load_rubric().graded[step])
    cases = {
        "it is public": size in public,
        f"no multiple of {height}x{width}x{BLOCK_K}": M % height or N % width or K % BLOCK_K,
        "K is below 1024, a ring holds all of it": step >= 4 and K < 1024,
        "no CTA gets a second tile": (M // height) * (N // width) <= WORKERS.get(step, 0),
    }
    return [what for what, wrong in cases.items() if wrong]


DEFAULT_SALT = "change this text every term"


def render(hidden: Hidden) -> str:
    """hidden.toml."""
    sizes = "\n".join(f"{step} = {[list(size) for size in sizes]}" for step, sizes in hidden.sizes.items())
    return TEXT.format(salt=hidden.salt, orders=hidden.extra_orders, sizes=sizes)


TEXT = """# What the course keeps to itself; never in the handout (`./lab release` checks).
# Made by `./lab hidden new`. Seeds of the data and of the orders come from the salt and the submission's
# hash: nobody can guess them, and a regrade finds them again.

salt = "{salt}"
extra_orders = {orders} # further seeded orders of each hidden size, where there is doubt

[sizes] # per step, [M, N, K]: K so long that no ring holds all of it; from step 6 on some CTAs get two tiles
{sizes}
"""
