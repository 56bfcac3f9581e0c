"""Hidden sizes derived from a secret: new ones each term, of the family that reveals what a step lacks."""

from __future__ import annotations

import hashlib
import random

from instructor.autograder.families import BLOCK_K, SMS, TILES, WORKERS, candidates, few_sms
from instructor.autograder.plan import Hidden, Size
from tirxlab.rubric import load_rubric
from tirxlab.steps import size_text


def draw(secret: str) -> Hidden:
    """The hidden sizes and the salt derived from a secret."""
    launches = {step: _launch(secret, step) for step in TILES if step > 1}  # the size of step 1 is fixed
    sizes: dict[int, tuple[Size, ...]] = {step: () for step in TILES}
    sizes |= {step: (size,) for step, (size, _) in launches.items()}
    few = {(step, size): sms for step, (size, sms) in launches.items() if step in WORKERS}
    return Hidden(_hash(secret, "salt"), 0, sizes, few)


def _hash(secret: str, what: object) -> str:
    return hashlib.sha256(f"{secret}\0{what}".encode()).hexdigest()


def _launch(secret: str, step: int) -> tuple[Size, int]:
    """One size and the SMs that it is built for; only a few from step 6 on."""
    public = set(load_rubric().sizes(step)) | set(load_rubric().graded[step])
    made = random.Random(_hash(secret, step))
    sms = few_sms(step)
    return made.choice([size for size in candidates(step, sms=sms) if size not in public]), sms


def problems(hidden: Hidden) -> list[str]:
    """What is wrong with the sizes, in one line each."""
    found = guessable(hidden.salt)
    for step, sizes in hidden.sizes.items():
        for size in sizes:
            wrong = _wrong(step, size, hidden.few_sms.get((step, size), SMS))
            found += [f"step {step}, {size_text(size)}: {what}" for what in wrong]
    return found


def _wrong(step: int, size: Size, sms: int) -> list[str]:
    (M, N, K), (height, width) = size, TILES[step]
    workers = WORKERS.get(step, 0) * sms // SMS
    public = set(load_rubric().sizes(step)) | set(load_rubric().graded[step])
    cases = {
        "it is public": size in public,
        f"not a multiple of {height}x{width}x{BLOCK_K}": M % height or N % width or K % BLOCK_K,
        "K is below 1024, a ring holds all of it": step >= 4 and K < 1024,
        "no CTA gets a second tile": (M // height) * (N // width) <= workers,
        f"SM_COUNT {sms} is not an even number from 2 to {SMS}": sms % 2 or not 2 <= sms <= SMS,
    }
    return [what for what, wrong in cases.items() if wrong]


DEFAULT_SALT = "change this text every term"
LEAST = 16  # characters of a salt or a secret: the drawn sizes, which students see, give a short one away


def guessable(salt: str) -> list[str]:
    """Why seeds derived from this salt are not secret, in one line; empty if they are."""
    if salt == DEFAULT_SALT:
        return ["the salt is the one that came with the lab: anybody knows it, and with it all seeds"]
    return [f"the salt has fewer than {LEAST} letters: it can be guessed"] if len(salt) < LEAST else []


def render(hidden: Hidden) -> str:
    """hidden.toml."""
    rows = {
        step: [[*size, *_sms(hidden, step, size)] for size in sizes] for step, sizes in hidden.sizes.items()
    }
    sizes = "\n".join(f"{step} = {launches}" for step, launches in rows.items())
    return TEXT.format(salt=hidden.salt, orders=hidden.extra_orders, sizes=sizes)


def _sms(hidden: Hidden, step: int, size: Size) -> list[int]:
    return [hidden.few_sms[step, size]] if (step, size) in hidden.few_sms else []


TEXT = """# What the course keeps to itself; never in the handout (`./lab release` checks).
# Made by `./lab hidden new`. Seeds of the data and of the orders come from the salt and the submission's
# hash: nobody can guess them, and a regrade finds them again.

salt = "{salt}"
extra_orders = {orders} # further seeded orders of each hidden size, where there is doubt

# per step, [M, N, K]: K so long that no ring holds all of it; from step 6 on [M, N, K, SM_COUNT], and so many
# tiles that some CTAs get two
[sizes]
{sizes}
"""
