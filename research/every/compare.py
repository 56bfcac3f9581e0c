"""Compares ptxsim's verdict on a small program with the truth of all its interleavings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ptxsim
from research.every.explore import explore
from research.every.programs import Program, program_of
from research.every.ptx import ptx_of
from research.every.states import TooLarge, Truth

_LUCK = ("is luck", "runs ahead")


@dataclass(frozen=True)
class Answer:
    """state: `right`, `wrong`, `too large` or `undefined`; differs: "" or how ptxsim's verdict differs."""

    state: str
    differs: str
    told: str = ""  # ptxsim's first finding


def verdicts(program: Program) -> list:
    """ptxsim's results for the program, in all orders."""
    module = ptxsim.load(ptx_of(program))
    shape = {"grid": 1, "block": 32 * len(program.warps), "jobs": 1}
    return [module.launch("k", **shape, args=_arrays(), order="all")]


def _arrays() -> list[np.ndarray]:
    return [np.arange(2048, dtype=np.uint32), np.zeros(8192, np.uint32)]


def answer(program: Program, runs: list | None = None) -> Answer:
    try:
        truth = explore(program)
    except TooLarge:
        return Answer("too large", "")
    if truth.over:
        return Answer("undefined", "")
    results = runs or verdicts(program)
    worst = next((r for r in results if r.verdict == "error"), None)
    told = next((str(f).split("\n")[0][:200] for r in results for f in r.findings), "")
    if any(r.verdict == "incomplete" for r in results):
        return Answer(_state(truth), "no verdict", told)
    if truth.wrong and worst is None:
        luck = any(word in f.message for r in results for f in r.findings for word in _LUCK)
        return Answer(
            "wrong", f"review says luck: {_what(truth)}" if luck else f"missed: {_what(truth)}", told
        )
    if not truth.wrong and worst is not None:
        return Answer("right", f"false error: {worst.findings[0].kind}", told)
    return Answer(_state(truth), "")


def _state(truth: Truth) -> str:
    return "wrong" if truth.wrong else "right"


def _what(truth: Truth) -> str:
    names = [n for n in ("races", "fences", "stuck", "pending") if getattr(truth, n)]
    return " ".join(names)


def answer_of(seed: int) -> tuple[int, Answer]:
    return seed, answer(program_of(seed))
