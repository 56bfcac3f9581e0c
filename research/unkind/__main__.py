"""Runs the variants of the steps as `./lab check` does, and prints the first message of each.

python -m research.unkind [WORDS ..]     only patterns with one of these words in their names
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import utils
from research.unkind.variants import Variant, variants
from tirxlab.builders import builder
from tirxlab.checkout import ROOT
from tirxlab.devices import sim
from tirxlab.rubric import load_rubric
from tirxlab.toolchain.build import build

REFERENCE = ROOT / "instructor" / "solutions" / "gemm_kernels.py"


def first_word(variant: Variant) -> str:
    """The first line that a check of the uneven sizes prints, smallest size first; "" if it is clean.

    A review does not end a check: an error at a later size takes precedence.
    """
    rubric, step, reviewed = load_rubric(), variant.step, ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gemm_kernels.py"
        path.write_text(variant.text)
        for size in sorted(rubric.uneven[step] or rubric.sizes(step), key=np.prod):
            try:
                artifact = build(builder(path, step, rubric.few_sms.get((step, size)))(*size))
            except Exception as error:  # what the dialect refuses is reported, too
                return f"not built: {error}".split("\n")[0]
            A, B, _ = utils.prepare_data(*size, seed=0)
            for order in ("program", "adverse"):
                D = np.full((size[0], size[1]), np.nan, np.float16)
                run = sim.run(artifact, [A, B, D], order=order)
                said = str(run.findings[0]).split("\n")[0] if run.findings else ""
                if run.verdict == "error":
                    return said
                reviewed = reviewed or said
                try:
                    utils.verify(D, A, B)
                except AssertionError as error:
                    return str(error).split("\n")[0]
    return reviewed


def main(words: list[str]) -> None:
    counts: Counter = Counter()
    for variant in variants(REFERENCE.read_text()):
        pattern = variant.pattern
        if words and not any(word in pattern.name for word in words):
            continue
        said = first_word(variant)
        right = not pattern.words
        named = not said if right else any(word in said for word in pattern.words)
        state = "clean" if not said else "named" if named else "found"
        counts[pattern.item, "right" if right else "wrong", state] += 1
        print(f"{pattern.item} step {variant.step:2} {pattern.name}: {state}: {said[:230]}", flush=True)
    for (item, kind, state), count in sorted(counts.items()):
        print(f"item {item}: {count} {kind} variants {state}")


if __name__ == "__main__":
    main(sys.argv[1:])
