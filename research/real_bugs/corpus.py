"""The corpus: a file of `cases/` is one public fix, reduced to a small kernel of our own with the same fault.

A file starts with lines `// name: value`; `BEFORE(..)` and `AFTER(..)` (ptx.cuh) mark what the fix changed.
  source   owner/repository#number, date
  link     the public thread
  wrong    one line: what was wrong
  finds    `kind: words` of the finding that names the cause, or `kind review: words`; kinds joined by | where
           the fault shows as one or the other
  open     only if that finding is missing or not the first: the reason
  launch   threads=.., and if they are not 1: grid=.., cluster=..; target=sm_100a unless given
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ptxsim
from tirxlab.toolchain.nvrtc import compile_cuda

FOLDER = Path(__file__).parent
ORDERS = ("program", "adverse", 7)
_FIELDS = ("source", "link", "wrong", "finds", "launch")
_SEVERITIES = ("error", "incomplete", "review", "clean")  # worst first


@dataclass(frozen=True)
class Case:
    name: str
    text: str  # the CUDA source, including its opening lines
    source: str
    link: str
    wrong: str
    kind: str  # regular expression: kind of the finding that names the cause
    severity: str
    words: str  # regular expression in its message or hint
    open: str  # why that finding is missing or not the first; "" if it is the first
    launch: dict

    def ptx(self, mended: bool) -> str:
        cuda = f"{'#define MENDED' if mended else ''}\n{_header()}\n{self.text}"
        return compile_cuda(cuda, self.launch.get("target", "sm_100a")).ptx

    def names_cause(self, finding) -> bool:
        if not re.fullmatch(self.kind, finding.kind) or finding.severity != self.severity:
            return False
        return re.search(self.words, f"{finding.message} {finding.hint}") is not None


@dataclass(frozen=True)
class Verdict:
    """ptxsim's verdict on one side of a pair: the worst of the orders."""

    verdict: str
    findings: tuple  # of the first order with that verdict


@functools.cache
def _header() -> str:
    return (FOLDER / "ptx.cuh").read_text()


def load_case(path: Path) -> Case:
    """One case; raises ValueError with the file's name if its opening lines are not as above."""
    text = path.read_text()
    values = dict(re.findall(r"^// (\w+): *(.*)$", text, re.M))
    if missing := [name for name in _FIELDS if name not in values]:
        raise ValueError(f"{path.name}: no line `// {missing[0]}: ..`")
    found = re.fullmatch(r"([\w|-]+)( review)?: ?(.*)", values["finds"])
    if found is None:
        raise ValueError(f"{path.name}: `finds` is `kind: words` or `kind review: words`")
    launch = dict(part.split("=") for part in values["launch"].split())
    severity = "review" if found[2] else "error"
    about = [values[name] for name in ("source", "link", "wrong")]
    return Case(path.stem, text, *about, found[1], severity, found[3], values.get("open", ""), launch)


def load_corpus() -> list[Case]:
    return [load_case(path) for path in sorted((FOLDER / "cases").glob("*.cu"))]


def run(case: Case, mended: bool) -> Verdict:
    """One side of the pair under all orders."""
    module, results = ptxsim.load(case.ptx(mended)), []
    for order in ORDERS:
        result = module.launch("kernel", **_shape(case.launch), args=_arguments(), order=order, jobs=1)
        results.append(Verdict(result.verdict, tuple(result.findings)))
    return min(results, key=lambda r: _SEVERITIES.index(r.verdict))


def outcome(case: Case, before: Verdict) -> str:
    """`cause first`, `found` (the cause comes later, or only its consequences are reported), or `missed`."""
    if before.findings and case.names_cause(before.findings[0]):
        return "cause first"
    later = any(case.names_cause(finding) for finding in before.findings)
    return "found" if later or before.verdict == "error" else "missed"


def _shape(launch: dict) -> dict:
    cluster = int(launch.get("cluster", 1))
    return {"grid": int(launch.get("grid", cluster)), "cluster": cluster, "block": int(launch["threads"])}


def _arguments() -> list:
    """Fresh arrays for tile, row, store, in, out, words: the parameters of every kernel (ptx.cuh)."""
    rng = np.random.default_rng(1)
    halves = rng.standard_normal((512, 512)).astype(np.float16)
    numbers, out = rng.standard_normal((128, 128)).astype(np.float32), np.zeros((128, 128), np.float32)
    maps = [
        ptxsim.TensorMap(halves, box=(64, 128), swizzle=128),
        ptxsim.TensorMap(numbers, box=(32, 32), swizzle=0),
        ptxsim.TensorMap(out, box=(32, 32), swizzle=0),
    ]
    return [*maps, numbers, out, np.zeros(1024, np.uint32)]
