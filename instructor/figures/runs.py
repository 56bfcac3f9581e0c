"""Figures from simulated runs: the order of tiles, and findings about mistakes."""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import instructor
import ptxsim
from ptxsim.observing import Observer, run_clusters
from tirxlab.devices import sim
from tirxlab.explain.picture.svg import Part, document, labels, mosaic, rect, text
from tirxlab.toolchain.build import build

SOLUTIONS = Path(instructor.__file__).parent / "solutions" / "gemm_kernels.py"
MISTAKES = {  # name -> step, size, text of the kernel and its replacement
    "phase": (2, (128, 128, 192), "phase_mma = phase_mma ^ 1", "pass"),
    "fence": (
        4, (128, 128, 128),
        'fence.proxy_async("shared::cta")\n            # TODO[end]', "fence.mbarrier_init()",
    ),
    "deadlock":
        (7, (19072, 128, 64), "ld2mma.arrive(0)", "if lane_id == 0:\n" + " " * 24 + "ld2mma.arrive(0)"),
    "bytes": (4, (128, 128, 128), "(BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES", "BLK_M * BLK_K * F16_BYTES"),
    "race": (7, (128, 128, 64), "Tx.cuda.warpgroup_sync(1)  # Dsmem may be overwritten", "pass"),
    "init": (7, (128, 128, 128), "tma2mma.init(1)", "if wg_id == 1:\n" + 16 * " " + "tma2mma.init(1)"),
}  # fmt: skip


@functools.cache
def artifact(step: int, size: tuple[int, int, int]):
    """The compiled reference kernel of a step."""
    return compiled(SOLUTIONS.read_text(encoding="utf-8"), step, size)


def compiled(source: str, step: int, size: tuple[int, int, int]):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gemm_kernels.py"
        file.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"figure_kernels_{step}", file)
        assert spec is not None and spec.loader is not None  # the file is there
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return build(getattr(module, f"hgemm_v{step}")(*size))


def arrays(size: tuple[int, int, int]) -> dict[str, np.ndarray]:
    m, n, k = size
    random = np.random.default_rng(0)
    A, B = (random.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return {"A": A, "B": B, "D": np.full((m, n), np.nan, np.float16)}


@functools.cache
def simulate(step: int, size: tuple[int, int, int]):
    """One checked run of a step."""
    return sim.run(artifact(step, size), arrays(size))


class Recorder(Observer):
    """Notes when each piece of work of one CTA begins and ends; the clock counts these events."""

    wanted: tuple | None = None  # %ctaid, or None for every CTA
    log: list  # [row, label, begin, end]

    def __init__(self, launch, reporter):
        self.clock, self.mmas = 0, {}

    def begin(self, cluster, split, row: str, label) -> list | None:
        if self.wanted is not None and cluster.cta_ids[split.cta] != self.wanted:
            return None
        self.clock += 1
        entry = [row, label, self.clock, self.clock, cluster.cta_ids[split.cta]]
        self.log.append(entry)
        return entry

    def end(self, entry: list | None) -> None:
        if entry is not None:
            self.clock += 1
            entry[3] = self.clock

    def copy_issue(self, cluster, split, copy):
        return self.begin(cluster, split, f"TMA {copy.kind}", (copy.tensor.name, tuple(map(int, copy.start))))

    def copy_write(self, cluster, token, copy):
        self.end(token)

    def tensor_issue(self, cluster, split, work):
        self.mmas[id(work)] = self.begin(cluster, split, "MMA", "")

    def tensor_execute(self, cluster, works):
        for work in works:
            self.end(self.mmas.pop(id(work), None))

    def tmem_access(self, cluster, split, cells, write):
        self.begin(cluster, split, "read TMEM", split.warp % cluster.warps_per_cta)


def record(step: int, size, order, wanted=None) -> list:
    """The log of a run of all clusters in one process."""
    log: list = []
    built, data = artifact(step, size), arrays(size)
    args = [sim._argument(p, data) for p in built.params]
    shape = built.grid, built.block, built.cluster, built.shared_bytes
    launch = ptxsim.load(built.ptx).prepare(built.entry, *shape, args)
    recorder = type("OneRun", (Recorder,), {"wanted": wanted, "log": log})(launch, None)
    run_clusters(launch, launch.chosen(0, None), True, order, [], 1, (recorder,))
    return log


def tile_order(size=(2048, 1920, 64)) -> str:
    """Which tiles the 148 CTAs of step 6 take first and second."""
    m, n, _ = size
    log = record(6, size, "program")  # D's tensor map counts (column % 64, row, column // 64)
    stores = [(entry[1][1], entry[4][0]) for entry in log if entry[0] == "TMA store"]
    side, left, top = 17, 30, 24
    seen: dict[int, int] = {}
    looks: dict[tuple[str, float], list] = {("tma", 0.45): [], ("mma", 0.45): []}
    said: dict[tuple[int, int], int] = {}
    for (_, row, half), cta in stores:
        turn = seen[cta] = seen.get(cta, 0) + 1
        looks["tma" if turn == 1 else "mma", 0.45].append((row // 128, half // 2))
        said[row // 128, half // 2] = cta
    parts: list[Part] = mosaic(left, top, side, m // 128, n // 128, looks)
    parts += labels(left, top, side, said, 7)
    parts.append(text(left, 14, f"D of {m}x{n}: CTA of each 128x128 tile", 9, bold=True))
    x = left + n // 128 * side + 14
    for i, (name, fill) in enumerate((("first tile of a CTA", "tma"), ("second tile", "mma"))):
        parts += [rect(x, top + 20 * i, 12, 12, fill, opacity=0.45), text(x + 17, top + 20 * i + 10, name, 8)]
    return document(430, top + m // 128 * side + 8, parts)


def said_about(name: str) -> str:
    """The first finding of a run of the reference kernel with one mistake in it."""
    step, size, old, new = MISTAKES[name]
    whole = SOLUTIONS.read_text(encoding="utf-8")
    start = whole.index(f"def hgemm_v{step}(")
    if old not in whole[start:]:
        raise ValueError(f"mistake {name!r}: {old!r} is not in step {step}")
    run = sim.run(compiled(whole[:start] + whole[start:].replace(old, new, 1), step, size), arrays(size))
    if not run.findings:
        raise ValueError(f"mistake {name!r} was not found")
    first = run.findings[0]
    shown = first.message.partition("\n  seen of ")[0]  # a slide has room for the sentence and the hint
    return str(replace(first, message=shown)) + "\n"


FIGURES: dict[str, Callable[[], str]] = {
    "tiles.svg": tile_order,
    **{f"finding-{name}.txt": functools.partial(said_about, name) for name in MISTAKES},
}
