"""Compares what ptxas and ptxsim accept: instructions whose modifiers are legal, swapped, missing or doubled.

    python -m research.grammar SEED [--each 3] [--ptxas PATH] [--show K] [--only FAMILY]

An instruction is accepted by ptxas if it is accepted for one of the targets. Prints by opcode how many are
accepted here and refused there, and the reverse.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import ptxsim
from research.grammar.cases import Case, cases
from research.grammar.operands import REGISTERS

TARGETS = ("sm_100a", "sm_103a", "sm_90a", "sm_80", "sm_120a")
HEAD = ".version 9.0\n.target {target}\n.address_size 64\n"
KERNEL = f".visible .entry k{{number}}() {{{{ {REGISTERS}\n{{text}}\nEND: ret; }}}}\n"
AT_ONCE = 100  # kernels per module


def refused_by_ptxas(texts: list[str], ptxas: str) -> dict[str, str]:
    """Text -> the first target's error, of the texts that ptxas accepts for no target."""
    refused = refused_for(TARGETS[0], texts, ptxas)
    left = list(refused)
    for target in TARGETS[1:]:
        left = list(refused_for(target, left, ptxas))
    return {text: refused[text] for text in left}


def refused_for(target: str, texts: list[str], ptxas: str) -> dict[str, str]:
    """Text -> ptxas's error. It reports the errors of one pass only, so the rest is assembled again."""
    refused: dict[str, str] = {}
    if len(texts) > AT_ONCE:
        for at in range(0, len(texts), AT_ONCE):
            refused |= refused_for(target, texts[at : at + AT_ONCE], ptxas)
        return refused
    while asked := [text for text in texts if text not in refused]:
        told, passed = _assembled(asked, target, ptxas)
        if passed:
            break
        if told:
            refused |= told
        elif len(asked) == 1:  # an error without a line
            refused[asked[0]] = "no line is named"
        else:
            half = len(asked) // 2
            for part in (asked[:half], asked[half:]):
                refused |= refused_for(target, part, ptxas)
            break
    return refused


def _assembled(texts: list[str], target: str, ptxas: str) -> tuple[dict[str, str], bool]:
    """(text -> its error, whether there was none) from one run."""
    kernels = (KERNEL.format(number=number, text=text) for number, text in enumerate(texts))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "k.ptx"
        source.write_text(HEAD.format(target=target) + "".join(kernels))
        command = [ptxas, "-arch", target, "-O0", "-w", str(source), "-o", str(Path(folder) / "k.cubin")]
        told = subprocess.run(command, capture_output=True, text=True, timeout=500)
    each, first = KERNEL.count("\n"), HEAD.count("\n") + REGISTERS.count("\n") + 2
    lines = re.findall(r"line (\d+); (?:error|fatal) *: (.*)", told.stderr)
    places = [((int(line) - first) / each, what) for line, what in lines]
    return {texts[int(at)]: what for at, what in places if at in range(len(texts))}, told.returncode == 0


def refused_here(text: str) -> str:
    """ptxsim's error; "" if it accepts the instruction."""
    try:
        ptxsim.load(HEAD.format(target="sm_100a") + KERNEL.format(number=0, text=text))
    except ptxsim.PtxError as error:
        return error.what
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("--each", type=int, default=3, help="spellings of each form")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    asked = [one for one in cases(given.seed, given.each) if given.only in ("", one.family)]
    there = refused_by_ptxas([one.text for one in asked], given.ptxas)
    differ: dict[tuple[str, str], list[tuple[Case, str]]] = defaultdict(list)
    twice = 0
    for one in asked:
        taken = one.text not in there
        why = refused_here(one.text)
        if taken and "appears twice" in why:
            twice += 1
        elif taken and why:
            differ["refused here", one.family].append((one, why))
        elif not taken and not why:
            differ["taken here", one.family].append((one, there[one.text]))
    print(f"{len(asked)} instructions: {dict(Counter(one.change for one in asked))}")
    for (side, family), rows in sorted(differ.items()):
        print(f"{side}: {family} {len(rows)} {dict(Counter(one.change for one, _ in rows))}")
        for one, why in rows[: given.show]:
            print(f"    {one.change}: {one.text[:110]}  ({why[:100]})")
    sides = Counter(key[0] for key, rows in differ.items() for _ in rows)
    print(f"{sides.total()} differ: {dict(sides)}; also {twice} repeat a modifier, which ptxas accepts")
    return bool(differ)


if __name__ == "__main__":
    raise SystemExit(main())
