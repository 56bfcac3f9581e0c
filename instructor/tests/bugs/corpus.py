"""The bug corpus: reference kernels with one mistake each, and what a run must report about it.

A `Bug` is an edit of one `hgemm_vN` of instructor/solutions/gemm_kernels.py; the .toml files have them, in
groups. The expected finding was written down, and committed, before the checks were run on it. `build_bug`
compiles the mutant or, with mutated=False, its correct twin at the same size; `run_bug` runs it on ptxsim
with random data.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tirxlab.rubric import tomllib
from tirxlab.steps import sections

FOLDER = Path(__file__).parent
ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
SCREEN = 30  # lines
Lines = list[str]
Edit = Callable[[Lines], Lines]


@dataclass(frozen=True)
class Bug:
    name: str
    step: int
    size: tuple[int, int, int]  # M, N, K at which the mistake shows
    edits: tuple[Edit, ...]
    kind: str  # of the finding that must be there; "build": the dialect refuses it; "result": verify does
    names: str  # the barrier or buffer: must be in the first line of this finding's message
    why: str  # why it is a bug
    ctas: int | None = None  # persistent kernels: this many CTAs, so that each gets several tiles
    order: str | int = "program"
    severity: str = "error"
    hint: str = ""  # wording.toml: in the finding's hint
    statement: str = ""  # wording.toml: the finding's line begins with it
    group: str = ""  # file and table of the TOML


# ---- edits: functions from the lines of the kernel's builder to new lines ----


def replace(old: str, new: str, times: int = 1) -> Edit:
    """Replaces text that must occur exactly `times` times."""

    def edit(lines: Lines) -> Lines:
        text = "\n".join(lines)
        if text.count(old) != times:
            raise ValueError(f"{old!r} occurs {text.count(old)} times, not {times}")
        return text.replace(old, new).split("\n")

    return edit


def drop(start: str, nth: int = 0) -> Edit:
    """Deletes the nth statement that begins with `start`."""
    return _on_statement(start, nth, lambda block, indent: [])


def guard(start: str, *heads: str, nth: int = 0) -> Edit:
    """Puts the nth statement that begins with `start` under nested `if` / `with` heads."""

    def nest(block: Lines, indent: str) -> Lines:
        out = [indent + "    " * i + head for i, head in enumerate(heads)]
        return out + ["    " * len(heads) + line for line in block]

    return _on_statement(start, nth, nest)


def before(start: str, *new: str, nth: int = 0) -> Edit:
    """Inserts statements in front of the nth statement that begins with `start`."""
    return _on_statement(start, nth, lambda block, indent: [indent + line for line in new] + block)


def after(start: str, *new: str, nth: int = 0) -> Edit:
    """Inserts statements after the nth statement that begins with `start`."""
    return _on_statement(start, nth, lambda block, indent: block + [indent + line for line in new])


def instead(start: str, *new: str, nth: int = 0) -> Edit:
    """Replaces the nth statement that begins with `start`."""
    return _on_statement(start, nth, lambda block, indent: [indent + line for line in new])


def unwrap(start: str, nth: int = 0) -> Edit:
    """Removes a one-line `if` / `with` head; its body moves one level out."""
    return _on_statement(start, nth, lambda block, indent: [line[4:] for line in block[1:]])


def head(start: str, new: str, nth: int = 0) -> Edit:
    """Replaces the one-line head of the nth compound statement that begins with `start`."""
    return _on_statement(start, nth, lambda block, indent: [indent + new] + block[1:])


def _on_statement(start: str, nth: int, change: Callable[[Lines, str], Lines]) -> Edit:
    def edit(lines: Lines) -> Lines:
        found = [i for i, line in enumerate(lines) if line.strip().startswith(start)]
        if len(found) <= nth or len(found) < -nth:
            raise ValueError(f"{len(found)} statements begin with {start!r}; number {nth} is asked for")
        first = found[nth]
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        end = first + _length(lines[first:], len(indent))
        return lines[:first] + change(lines[first:end], indent) + lines[end:]

    return edit


def _length(lines: Lines, indent: int) -> int:
    """How many lines the first statement has: continued by open brackets or by a deeper block."""
    depth = 0
    for i, line in enumerate(lines):
        code = line.split("#")[0]
        deeper = line.strip() and len(line) - len(line.lstrip()) > indent
        closes = depth > 0
        if i and not closes and not deeper:
            return i
        depth += sum(code.count(c) for c in "([{") - sum(code.count(c) for c in ")]}")
    return len(lines)


VERBS = {f.__name__: f for f in (replace, drop, guard, before, after, instead, unwrap, head)}


def edit_of(entry: dict) -> Edit:
    """An edit as a TOML file has it: { verb = [its texts], nth = .. }."""
    (verb, texts), *more = entry.items()
    return VERBS[verb](*texts, **dict(more))


def of_file(name: str) -> list[Bug]:
    """The bugs of NAME.toml, in its order."""
    groups = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return [_bug(f"{name}.{group}", **entry) for group, entries in groups.items() for entry in entries]


def _bug(group: str, size: list[int], edits: list[dict], **more) -> Bug:
    return Bug(group=group, size=tuple(size), edits=tuple(map(edit_of, edits)), **more)


FILES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
BUGS = {bug.name: bug for name in FILES for bug in of_file(name)}


# ---- sources, builds, runs ----


def bug_source(bug: Bug, mutated: bool = True) -> str:
    """The text of the kernels file with the mistake in it. ValueError if an edit does not fit."""
    text = SOURCE.read_text()
    if bug.ctas:
        text = re.sub(r"^SM_COUNT = \d+", f"SM_COUNT = {bug.ctas}", text, count=1, flags=re.M)
    return edited(text, bug.step, bug.edits) if mutated else text


def edited(text: str, step: int, edits: tuple[Edit, ...]) -> str:
    """The text of a kernels file with one step's builder edited. ValueError if an edit does not fit."""
    start = text.index(f"def hgemm_v{step}(")
    end = text.find("\n\n\ndef ", start)
    end = len(text) if end < 0 else end
    lines = text[start:end].split("\n")
    for edit in edits:
        lines = edit(lines)
    return text[:start] + "\n".join(lines) + text[end:]


def _alone(text: str, step: int) -> str:
    """The file with blank lines for its other steps: it is read in a tenth of the time."""
    parts = sections(text)
    return "".join(parts[n] if n in (0, step) else "\n" * parts[n].count("\n") for n in sorted(parts))


def build_bug(bug: Bug, mutated: bool = True):
    """The artifact of the mutant, with PTX alone, or of its correct twin."""
    from tirxlab.toolchain import nvrtc
    from tirxlab.toolchain.build import build, draft

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gemm_kernels.py"
        path.write_text(_alone(bug_source(bug, mutated), bug.step))
        name = f"bug_{bug.name.replace('-', '_')}_{int(mutated)}"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
            kernel = getattr(module, f"hgemm_v{bug.step}")(*bug.size)
            if not mutated:
                return build(kernel)  # many mutants have the same twin, which is kept
            return nvrtc.finish(draft(kernel), whole=False).with_source(path.name, path.read_text())
        finally:
            del sys.modules[name]


def run_bug(bug: Bug, artifact, order: str | int | None = None):
    """Runs an artifact at the bug's size with all checks on; returns the device's Run. D is NaN before."""
    from tirxlab.devices import sim

    M, N, _ = bug.size
    return sim.run(artifact, [*inputs(bug), np.full((M, N), np.nan, np.float16)], order=order or bug.order)


def inputs(bug: Bug) -> tuple[np.ndarray, np.ndarray]:
    """A (M, K) and B (N, K), float16, random."""
    M, N, K = bug.size
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (N, K)))
    return A, B


def wrong_result(bug: Bug, run) -> str:
    """What `verify` reports about the run's output; empty if it is right."""
    import utils

    (D,) = run.outputs.values()
    try:
        utils.verify(D, *inputs(bug))
    except AssertionError as error:
        return str(error)
    return ""


def on_one_screen(run) -> bool:
    """Whether each finding is short enough to be read at a glance."""
    return all(len(str(finding).splitlines()) <= SCREEN for finding in run.findings)


def matches(bug: Bug, finding) -> bool:
    """Whether this is the finding that the bug must lead to."""
    return (finding.kind, finding.severity) == (
        bug.kind,
        bug.severity,
    ) and bug.names in finding.message.split("\n")[0]
