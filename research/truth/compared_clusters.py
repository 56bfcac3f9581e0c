"""Checks that comparing clusters with earlier ones finds the same as checking all of them.

    python -m research.truth.compared_clusters SEED [--count N] [--minutes M]

Takes a correct kernel (truth tables, random kernels, the course's steps) and lets some of its clusters differ
by a value or two: a register has another number before an instruction, or a predicate is inverted. Runs it
with and without the comparison (grid/repeats/) and requires the same findings, counts and memory. Prints each
difference, how many clusters were compared and how launches ended; exit code 1 if there is a difference.
"""

from __future__ import annotations

import functools
import random
import re
import sys
from collections import Counter
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
_TESTS = ROOT / "packages" / "ptxsim" / "tests"
sys.path[1:1] = [str(_TESTS), str(_TESTS / "checks")]

import ptxsim  # noqa: E402
from ptxsim.grid import processes  # noqa: E402
from ptxsim.grid.repeats import runner  # noqa: E402
from research import by_seed  # noqa: E402
from research.truth.kernels import REGISTERS, WORDS, kernel_of  # noqa: E402
from research.truth.paths import GUARD  # noqa: E402

EARLY, CLUSTERS = 2, 6  # clusters before the change, clusters of a launch
OPCODES = (
    "ld|st|mbarrier|cp|bar|barrier|tcgen05|wgmma|atom|red|fence|setp|mad|add|sub|shl|shr|mul|and|or|xor|elect|"
    "mma|ldmatrix|stmatrix|bra|selp|shfl|mapa|cvt|vote"
)
STATEMENT = re.compile(rf"(?<![\w.%])(@!?%[\w$]+\s+)?(?:{OPCODES})\.[^;]*;")
DELTAS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, -4, -16, -128)
LATER = (  # the changed clusters: all from one on, every other one, a single one
    f"setp.ge.u32 %later, %which, {EARLY};",
    "and.b32 %which, %which, 1; setp.eq.u32 %later, %which, 1;",
    f"setp.eq.u32 %later, %which, {EARLY + 1};",
)
NEVER = 10**9  # more clusters than any launch has
LIMIT = 500_000  # instructions of a cluster, since changed loops may be endless


@dataclass
class Base:
    """A kernel and its launch: `arrays` makes fresh arguments."""

    name: str
    ptx: str
    shape: dict
    arrays: object
    entry: str = "k"


# ---- kernels ----


def rules() -> list[Base]:
    import importlib

    from truth import START, Rule

    bases = []
    for path in sorted((_TESTS / "checks").glob("test_truth_tables_*.py")):
        module = importlib.import_module(path.stem)
        found = [v for v in vars(module).values() if isinstance(v, tuple) and v and isinstance(v[0], Rule)]
        bases += [_of_rule(rule, START) for group in found for rule in group if max(rule.ctas, 1) == 1]
    return bases


def _of_rule(rule, start: str) -> Base:
    """A kernel of a rule in which each cluster has its own part of `out`."""
    text = start.format(target=rule.target, directives=rule.directives)
    own = "mov.u32 %x2, %clusterid.x; mul.wide.u32 %y1, %x2, 16384; add.s64 %out, %out, %y1;\n"
    text = text.replace("cvt.u64.u32 %y0", own + "cvt.u64.u32 %y0")
    shape = {"grid": CLUSTERS * rule.cluster, "cluster": rule.cluster, "block": rule.threads}

    def arrays():
        return [np.arange(4096, dtype=np.uint32), np.zeros(4096 * CLUSTERS, np.uint32)]

    return Base(f"rule {rule.name}", text + rule.text + "\nret;\n}\n", shape, arrays)


def random_kernel(seed: int) -> Base:
    kernel = kernel_of(seed)
    most = WORDS // (kernel.block * (REGISTERS + 4)) // kernel.cluster
    shape = {"grid": kernel.cluster * min(CLUSTERS, most), "cluster": kernel.cluster, "block": kernel.block}

    def arrays():
        numbers = np.random.default_rng(seed).integers(0, 1 << 32, 8192, np.uint32)
        return [numbers, np.zeros(WORDS + GUARD, np.uint32)]

    return Base(f"kernel {seed}", kernel.ptx, shape, arrays)


STEPS = {step: (512, 512, 128) for step in (3, 4, 5, 6)} | {step: (1024, 512, 128) for step in (7, 8, 9, 10)}


@functools.cache
def course_step(step: int) -> Base:
    """A step of the course on a few tiles, from the solutions."""
    from instructor.solutions import gemm_kernels
    from tirxlab.devices import sim
    from tirxlab.toolchain.build import build
    from utils import prepare_data

    made = build(getattr(gemm_kernels, f"hgemm_v{step}")(*STEPS[step]))
    shape = {"grid": made.grid, "block": made.block, "cluster": made.cluster}
    shape |= {"shared_bytes": made.shared_bytes, "names": [astuple(name) for name in made.names]}

    given = prepare_data(*STEPS[step])

    def arrays():
        buffers = sim.by_name(made, [array.copy() for array in given])
        return [sim._argument(param, buffers) for param in made.params]

    return Base(f"step {step}", made.ptx, shape, arrays, made.entry)


# ---- changes ----


def changed(ptx: str, rng: random.Random) -> str | None:
    """The kernel with other values in one or two registers of later clusters;
    None if nothing can be changed.
    """
    body = ptx.index("{", ptx.index(".entry"))
    statements = [m for m in STATEMENT.finditer(ptx, body) if "%" in m[0]]
    text = ptx
    for at in sorted(rng.choices(statements, k=rng.choice((1, 1, 2))), key=re.Match.start, reverse=True):
        name = rng.choice(sorted(set(re.findall(r"%[A-Za-z_]+\d*", at[0]))))
        kind, delta = _kind(ptx, name), rng.choice(DELTAS)
        if kind is None:
            return None
        change = (
            f"not.pred {name}, {name};" if kind == "pred" else f"add.s{kind[1:]} {name}, {name}, {delta};"
        )
        text = text[: at.start()] + f"@%later {change} " + text[at.start() :]
    which = "%clusterid.x" if "sm_80" not in ptx else "%ctaid.x"
    test = f".reg .pred %later; .reg .b32 %which; mov.u32 %which, {which}; {rng.choice(LATER)}"
    return text[: body + 1] + test + text[body + 1 :]


def _kind(ptx: str, name: str) -> str | None:
    """b32, b64 or pred, as the register is declared; None for another type, or
    if there is no such register.
    """
    stem = re.sub(r"\d+$", "", name)
    for kind, names in re.findall(r"\.reg\s+\.(\w+)\s+([^;]*);", ptx):
        if re.search(rf"(?<![\w%]){re.escape(name)}(?!\w)", names) or f"{stem}<" in names:
            kind = kind.replace("u", "b").replace("s", "b") if kind[1:] in ("32", "64") else kind
            return kind if kind in ("b32", "b64", "pred") else None
    return None


# ---- runs ----


def facts(base: Base, ptx: str, order: str) -> tuple:
    args = base.arrays()
    module = ptxsim.load(ptx)
    result = module.launch(base.entry, **base.shape, args=args, order=order, jobs=1, max_instructions=LIMIT)
    findings = [(str(f), f.where, f.evidence, f.count) for f in result.findings]
    stats = {name: value for name, value in result.stats.items() if name != "seconds"}
    held = [getattr(a, "array", a) for a in args]  # for a tensor map, its tensor
    return result.verdict, findings, stats, [a.tobytes() for a in held if isinstance(a, np.ndarray)]


def both(base: Base, ptx: str, order: str) -> tuple[tuple, tuple]:
    """The results with the comparison and without."""
    usual, found = processes.WORTH_COMPARING, []
    for least in (usual, NEVER):
        processes.WORTH_COMPARING = least
        try:
            found.append(facts(base, ptx, order))
        finally:
            processes.WORTH_COMPARING = usual
    return tuple(found)


def count_calls(seen: Counter) -> None:
    """Counts how clusters and launches end."""
    repeats, doubtful = runner.Runner._repeats, runner.Doubtful.__init__

    def noted(self, index: int) -> bool:
        same = repeats(self, index)
        seen["clusters compared" if same else "clusters run again"] += 1
        return same

    def doubt(self, *args) -> None:
        seen["launches run again"] += 1
        doubtful(self, *args)

    runner.Runner._repeats, runner.Doubtful.__init__ = noted, doubt


def _base(seed: int, number: int, tables: list[Base], rng: random.Random) -> Base:
    if number % 8 == 7:
        return course_step(rng.choice(list(STEPS)))
    return rng.choice(tables) if number % 2 else random_kernel(seed * 1_000_000 + number)


def main() -> int:
    given = by_seed.parser(__doc__).parse_args()
    rng, seen, bad = random.Random(given.seed), Counter(), 0
    count_calls(seen)
    tables = rules()
    for number in by_seed.in_time(range(given.count), given.minutes):
        base = _base(given.seed, number, tables, rng)
        ptx, order = changed(base.ptx, rng), rng.choice(("program", "adverse"))
        try:
            one, two = both(base, ptx or base.ptx, order)
        except ptxsim.PtxError:
            seen["refused"] += 1
            continue
        seen[f"launches of a {base.name.split()[0]}"] += 1
        seen[f"verdict {two[0]}"] += 1
        if one != two:
            bad += 1
            print(f"{number} {base.name}, order {order}: {one[:3]}\n   all checked: {two[:3]}", flush=True)
    print(", ".join(f"{name}: {n}" for name, n in sorted(seen.items())), f"; {bad} differ")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
