"""Runs the small programs of research/every on a GPU: does a chip do only what the explorer allows?

    python -m research.chip.interleavings SEED RESULTS [--count N] [--jobs J]

Each program runs in TRIALS CTAs of one launch. Each warp of each CTA sleeps for its own time before each
step, so the CTAs take many different interleavings. A correct program must end in one of the explorer's
outcomes (what each warp has read, what left by bulk copies), and a program that cannot stand still must not
do so. How often a wrong program shows that it is wrong is counted. Left out are programs that are undefined,
that leave a copy unfinished, that may stand still at a CTA barrier (nothing ends such a CTA), or that have
too many states.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from research.by_seed import BLOCK
from research.every.explore import FILLED, explore
from research.every.programs import Program, program_of, source_line
from research.every.ptx import ptx_of
from research.every.states import TooLarge, Truth, Values
from tirxlab.devices import driver

TRIALS = 2048  # CTAs: as many as the chip holds at once
STEPS = 32  # steps of all warps of a program
WORDS = 2048  # of each CTA's output: sums first, copies from word 1024 on
STUCK = 0xFFFF_FFFF  # as a sum: the warp gave up an endless wait
TOGETHER = 64  # programs per module
SLEEPS = (0, 0, 100, 500, 2000)  # ns: each sleep is drawn below one of these
_OWN = f"""
mov.u32 %r0, %ctaid.x; mul.wide.u32 %y0, %r0, {4 * WORDS}; add.u64 %out, %out, %y0;
ld.param.u64 %sleep, [psleep]; mul.wide.u32 %y0, %r0, {4 * STEPS}; add.u64 %sleep, %sleep, %y0;"""
_OUT = "cvta.to.global.u64 %out, %out;"
_FRAME = (  # each CTA has its own output and its own sleeps
    ("pout)", "pout, .param .u64 psleep)"),
    (".reg .b32 ", ".reg .b64 %sleep; .reg .b32 %tries, "),
    (_OUT, _OUT + _OWN),
)
_SLEEP = "ld.global.u32 %r3, [%sleep+{at}]; nanosleep.u32 %r3; bar.warp.sync 0xffffffff;\n"
_GIVES_UP = """mov.u32 %tries, 0;
{label}: {test} and.pred %p, %p, %lead; vote.sync.any.pred %p, %p, 0xffffffff; @%p bra {label}_ON;
add.u32 %tries, %tries, 1; setp.gt.u32 %p, %tries, 20000; @%p bra STUCK; nanosleep.u32 50; bra {label};
{label}_ON:"""
_LAST = """bra.uni GOES_ON;
STUCK: mov.u32 %acc, 0xffffffff;
GOES_ON:
// @src 900001
bar.sync 0;"""


def launchable(program: Program, name: str) -> str:
    """The program as a separate entry: it sleeps before each step and gives up an endless wait."""
    text = ptx_of(program)
    text = text[text.index(".visible") :].replace(" k(", f" {name}(")
    for old, new in _FRAME:
        text = text.replace(old, new, 1)
    text = re.sub(r"(L\d+): (.*) @!%p bra \1;", lambda m: _GIVES_UP.format(label=m[1], test=m[2]), text)
    for number, place in enumerate(program.places):
        mark = f"// @src {source_line(*place)}\n"
        text = text.replace(mark, mark + _SLEEP.format(at=4 * number))
    head, _, end = text.rpartition("// @src 900001\nbar.sync 0;")
    return f"{head}{_LAST}{end}"


def module_of(programs: dict[int, Program]) -> str:
    head = ".version 8.7\n.target sm_90a\n.address_size 64\n"
    return head + "\n".join(launchable(program, f"k{seed}") for seed, program in programs.items())


def judged(seed: int) -> tuple[str, Truth | None]:
    """(the reason for leaving it out, or "right" or "wrong"; the truth)."""
    program = program_of(seed)
    try:
        truth = explore(program, values=True)
    except TooLarge:
        return "too large", None
    if truth.over:
        return "undefined", None
    if truth.pending:
        return "leaves a copy behind", None
    if truth.stuck and any(step[0] in ("sync", "meet") for steps in program.warps for step in steps):
        return "may stand still at a CTA barrier", None
    return ("wrong" if truth.wrong else "right"), truth


# ---- on the chip ----


class Chip:
    """A context, and the arrays that all launches of this process use."""

    def __init__(self, seed: int):
        self.api = driver.api()
        driver.use_device()
        draw = np.random.default_rng(seed)
        sleeps = draw.integers(0, 1 + draw.choice(SLEEPS, (TRIALS, STEPS))).astype(np.uint32)
        self.filled = self.upload(np.arange(FILLED, FILLED + 4096, dtype=np.uint32))
        self.sleeps, self.out = self.upload(sleeps), self.upload(np.zeros(TRIALS * WORDS, np.uint32))

    def upload(self, array: np.ndarray) -> int:
        address = int(driver.call(self.api.cuMemAlloc, array.nbytes))
        driver.call(self.api.cuMemcpyHtoD, address, array, array.nbytes)
        return address

    def run(self, module, seed: int, program: Program) -> np.ndarray:
        """The output of each trial, (TRIALS, WORDS) uint32."""
        function = driver.call(self.api.cuModuleGetFunction, module, f"k{seed}".encode())
        values = (self.filled, self.out, self.sleeps), (ctypes.c_void_p,) * 3
        shape = TRIALS, 1, 1, 32 * len(program.warps), 1, 1
        driver.call(self.api.cuMemsetD8, self.out, 0, 4 * TRIALS * WORDS)
        driver.call(self.api.cuLaunchKernel, function, *shape, 0, 0, values, 0)
        driver.call(self.api.cuCtxSynchronize)
        found = np.zeros((TRIALS, WORDS), np.uint32)
        driver.call(self.api.cuMemcpyDtoH, found, self.out, found.nbytes)
        return found


def outcomes(program: Program, out: np.ndarray) -> tuple[set[Values], int]:
    """(distinct outcomes of the trials that finished, number of trials in which a warp gave up a wait)."""
    lines = [source_line(*p) for p in program.places if program.warps[p[0]][p[1]][0] in ("put", "store")]
    words = [32 * warp for warp in range(len(program.warps))] + [1024 + 4 * line for line in lines]
    stuck = (out[:, words[: len(program.warps)]] == STUCK).any(axis=1)
    rows = np.unique(out[~stuck][:, words], axis=0).tolist()
    n = len(program.warps)
    return {Values((), tuple(r[:n]), tuple(zip(lines, r[n:], strict=True))) for r in rows}, int(stuck.sum())


def asked(seeds: range) -> list[dict]:
    chip, rows = Chip(seeds.start), []
    for first in range(seeds.start, seeds.stop, TOGETHER):
        truths = {seed: judged(seed) for seed in seeds if first <= seed < first + TOGETHER}
        rows += [{"seed": seed, "state": state} for seed, (state, truth) in truths.items() if truth is None]
        taken = {seed: truth for seed, (_, truth) in truths.items() if truth is not None}
        programs = {seed: program_of(seed) for seed in taken}
        module = driver.call(chip.api.cuModuleLoadData, module_of(programs).encode() + b"\0")
        for seed, truth in taken.items():
            found, stuck = outcomes(programs[seed], chip.run(module, seed, programs[seed]))
            rows.append({"seed": seed, "state": truths[seed][0]} | compared(truth, found, stuck))
        driver.call(chip.api.cuModuleUnload, module)
    return rows


def compared(truth: Truth, found: set[Values], stuck: int) -> dict:
    """The chip's outcomes compared with the truth; `differs`: outcomes that no interleaving has."""
    differs = "stands still" if stuck and not truth.stuck else ""
    if found - truth.outcomes and not truth.wrong:
        differs = "another outcome: " + "; ".join(map(str, sorted(found - truth.outcomes)))
    shows = "stands still" if stuck else "several outcomes" if len(found) > 1 else "one outcome"
    return {"may": len(truth.outcomes), "did": len(found), "shows": shows, "differs": differs}


def run(seed: int, results: Path, count: int, jobs: int) -> None:
    from research.chip.run import gpu

    first, share = seed * BLOCK, -(-count // jobs)
    shares = [range(first + i, min(first + i + share, first + count)) for i in range(0, count, share)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        rows = [row for part in pool.map(asked, shares) for row in part]
    found = summary(rows)
    results.write_text(json.dumps(gpu() | {"seed": seed, "trials": TRIALS} | found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def summary(rows: list[dict]) -> dict:
    ran = [row for row in rows if "shows" in row]
    open_ended = [row for row in ran if row["state"] == "right" and row["may"] > 1]
    return {
        "left out": dict(Counter(row["state"] for row in rows if "shows" not in row)),
        "ran": dict(sorted(Counter(f"{row['state']}: {row['shows']}" for row in ran).items())),
        "right ones with several outcomes": len(open_ended),
        "their outcomes": sum(row["may"] for row in open_ended),
        "of them the chip came to": sum(row["did"] for row in open_ended),
        "differ": [row for row in ran if row["differs"]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("results", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    run(given.seed, given.results, given.count, given.jobs)


if __name__ == "__main__":
    main()
