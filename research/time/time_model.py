"""Compares the time model with measurements: `python -m research.time.time_model b200|h200|predict|unseen
[N]`.

b200     predicted / published for the course's times, leave-one-step-out errors, and other public ladders
predict  an H200: predictions for the sets of round N in research/time, before anybody times them [the last]
h200     an H200: predicted / measured for the rows of the calibration: all of rounds 1 and 2, and the ladders
unseen   an H200: the saved predictions of round N and its times [the newest timed]; builds nothing

Everything is built, recorded and replayed again; this needs no GPU. b200.toml explains what "fitted" means.
"""

from __future__ import annotations

import argparse
import csv
import functools
import hashlib
import itertools
import json
import re
import statistics
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from ptxsim.timing.chip import chip
from ptxsim.timing.power import settled_clock, start_clock
from research.time import rounds
from research.time.ladders import rung
from research.time.round import ROUNDS, sets
from research.time.rounds import Timed
from research.time.run import load
from research.time.time_groups import groups
from tirxlab.artifact import Artifact
from tirxlab.builders import builder
from tirxlab.forecast import NoForecast, replayed
from tirxlab.toolchain.build import build

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "instructor" / "solutions"
RESULTS = ROOT / "research" / "chip" / "results"
HW = ROOT / "research" / "time"
SEEN = [HW / "kernels.tar.xz" / name for name in ("first", "first-ladders")]  # of rounds 1 and 2
FITTED = {  # constants of b200.toml, and the values that leave-one-out may choose from
    "wgmma_energy": [e * 1e-12 for e in (0.65, 0.75, 0.85, 0.95, 1.05)],
    "l2_energy": [e * 1e-12 for e in (5, 10, 15, 20, 28)],
    "launch": [e * 1e-6 for e in (4, 5, 6, 7, 8)],
}
LARGE = 2048  # from this K on, steps 4 to 10 count for the goals


@dataclass
class Row:
    """A kernel whose time is known, or will be."""

    name: str
    size: tuple[int, int, int]
    ms: float | None
    source: str
    predicted: float = 0.0  # ms
    cycles: float = 0.0
    work: object = None
    step: int = 0
    ghz: float = 0.0
    bound: str = ""

    @property
    def ratio(self) -> float:
        return self.predicted / self.ms


def fill(row: Row, artifact: Artifact, name: str) -> Row:
    """The row with the model's prediction for the artifact."""
    return told(row, replayed(artifact, name)[0])


@functools.cache
def of_step(step: int, size: tuple[int, int, int]):
    """The prediction for a step on a B200, cached, since several rows of other ladders use the same one."""
    return replayed(build(builder(SOLUTIONS / "gemm_kernels.py", step)(*size)), "b200")[0]


def told(row: Row, found) -> Row:
    """The row with a prediction."""
    row.predicted, row.cycles, row.work, row.ghz = found.seconds * 1e3, found.cycles, found.work, found.ghz
    row.bound = next(iter(found.spent), "")
    return row


def say(row: Row) -> None:
    known = f"{row.ms:9.4f} ms, ratio {row.ratio:5.2f}" if row.ms else "not timed"
    size = "x".join(map(str, row.size))
    print(f"{row.name:44} {size:16} {row.predicted:9.4f} ms, known {known}  ({row.bound})", flush=True)


# ---- B200 ----


def course() -> list[Row]:
    """Steps 1 to 10 at the sizes of the published times; step 4 at 4096 from the book of the course."""
    lines = (ROOT / "packages/tirxlab/src/tirxlab/data/b200_reference_ms.csv").read_text().splitlines()
    rows = []
    for line in csv.DictReader(text for text in lines if not text.startswith("#")):
        size = int(line["M"]), int(line["N"]), int(line["K"])
        rows.append(Row(f"step {line['step']}", size, float(line["ms"]), "course", step=int(line["step"])))
    return rows


CUBE = (4096,) * 3
BOOK = "mlc-ai modern-gpu-programming, chapter gemm_advanced (locked clock)"
OTHERS = [  # (name, our step, size, ms, source): kernels of the same structure; other boxes, other clocks
    ("book step 4", 4, CUBE, 0.49, BOOK),
    ("book step 7", 7, CUBE, 0.227, BOOK),
    ("book step 8 = ours 9", 9, CUBE, 0.1035, BOOK),
    ("book step 9 = ours 10", 10, CUBE, 0.0941, BOOK),
    ("tcgen05 + TMA", 4, CUBE, 2 * 4096**3 / 293e9, "ThunderKittens educational, level 6"),
    ("2-CTA", 9, CUBE, 2 * 4096**3 / 1285e9, "ThunderKittens educational, level 9"),
    ("TMA store", 4, CUBE, 2 * 4096**3 / 293.6e9, "Modular, Blackwell matmul part 3"),
    ("2-SM, first date", 9, CUBE, 2 * 4096**3 / 1302e9, "gau-nernst learn-cuda 02e"),
    ("2-SM, second date", 9, CUBE, 2 * 4096**3 / 1170e9, "gau-nernst learn-cuda 02e"),
    ("persistent, first date", 10, CUBE, 2 * 4096**3 / 1476e9, "gau-nernst learn-cuda 02e"),
    ("persistent, second date", 10, CUBE, 2 * 4096**3 / 1273e9, "gau-nernst learn-cuda 02e"),
]
# Microseconds of a K step of one 128x128 CTA by stages (CUTLASS main loop, microbench-blackwell results.csv)
STAGES = {2: 0.568, 3: 0.384, 4: 0.293, 5: 0.240, 6: 0.210}


def staged(depth: int, k: int) -> Artifact:
    """Step 7 on one tile with another number of stages."""
    text = (SOLUTIONS / "gemm_kernels.py").read_text()
    first, last = text.index("def hgemm_v7"), text.index("def hgemm_v8")
    body = text[first:last].replace("PIPE_DEPTH = 2", f"PIPE_DEPTH = {depth}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stages_{depth}.py"
        path.write_text(text[:first] + body + text[last:])
        return build(builder(path, 7)(128, 128, k))


def stage_rows() -> list[Row]:
    """The slope over K of one CTA, per 64 columns, for each number of stages."""
    rows = []
    for depth, us in STAGES.items():
        times = []
        for k in (2048, 4096):
            found = fill(Row("", (128, 128, k), None, ""), staged(depth, k), "b200")
            times.append(found.cycles / found.ghz / 1e6)
        slope = (times[1] - times[0]) / 32
        name = f"K step at {depth} stages"
        source = "microbench-blackwell, CUTLASS main loop"
        rows.append(Row(name, (128, 128, 64), us / 1e3, source, predicted=slope))
    return rows


def b200() -> dict:
    rows = course()
    for row in rows:
        say(told(row, of_step(row.step, row.size)))
    others = []
    for name, step, size, ms, source in OTHERS:
        others.append(told(Row(name, size, ms, source, step=step), of_step(step, size)))
        say(others[-1])
    for row in stage_rows():
        others.append(row)
        say(row)
    constants = first_steps(rows)
    large = [r for r in rows if r.step >= 4 and r.size[2] >= LARGE]
    left_out = leave_one_step_out(large)
    print("fitted          ", summary([r.ratio for r in large]))
    print("step left out   ", summary(list(left_out.values())))
    print("other ladders   ", summary([r.ratio for r in others]))
    print("order at 4096   ", order(rows))
    plain_rows = [plain(r) | {"left_out": left_out.get((r.step, r.size))} for r in rows]
    found = {"chip": "NVIDIA B200", "course": plain_rows, "others": [plain(r) for r in others]}
    return found | {"steps 1 to 3, us for 64 columns of K and a wave": constants}


def first_steps(rows: list[Row]) -> dict:
    """Step -> its constant: the published kernels of steps 1 to 3 copied element by element, ours do not."""
    found = {}
    for step in (1, 2, 3):
        some = [r for r in rows if r.step == step]
        units = [r.size[2] / 64 * -(-r.size[0] * r.size[1] // 128**2 // 148) for r in some]
        us = statistics.median(r.ms * 1e3 / u for r, u in zip(some, units, strict=True))
        for row, unit in zip(some, units, strict=True):
            size = "x".join(map(str, row.size))
            by_it = us * unit / row.ms / 1e3
            print(
                f"step {step} {size:16} {row.ms:7.3f} ms: {us:.1f} us for 64 columns of K, ratio {by_it:.2f}"
            )
        found[step] = round(us, 1)
    return found


def leave_one_step_out(rows: list[Row]) -> dict:
    """(step, size) -> ratio with the fitted constants chosen on the other steps."""
    found = {}
    for step in sorted({r.step for r in rows}):
        chosen = best([r for r in rows if r.step != step])
        found |= {(r.step, r.size): again(r, chosen) / r.ms for r in rows if r.step == step}
    return found


def best(rows: list[Row]) -> dict:
    """The fitted constants that give the least mean error on these rows."""
    names = list(FITTED)
    choices = [dict(zip(names, values, strict=True)) for values in itertools.product(*FITTED.values())]
    return min(choices, key=lambda c: sum(abs(again(r, c) / r.ms - 1) for r in rows))


def again(row: Row, constants: dict) -> float:
    """Milliseconds of a replayed row with other energies and launch: the cycles stay, the clock changes."""
    other = replace(chip("b200"), **constants)
    start = start_clock(row.work, other)
    ghz = settled_clock(row.work, row.cycles / start / 1e9, start, other)
    return max(row.cycles / ghz / 1e6 + other.launch * 1e3, other.launch_floor * 1e3)


def order(rows: list[Row]) -> str:
    """Whether predicted times order the steps as the published ones do, where these differ by 3 %."""
    wrong, pairs = [], 0
    for a, b in itertools.combinations([r for r in rows if r.step >= 4 and r.size == CUBE], 2):
        if abs(a.ms / b.ms - 1) > 0.03:
            pairs += 1
            wrong += [f"{a.name} / {b.name}"] * ((a.ms < b.ms) != (a.predicted < b.predicted))
    return f"{pairs - len(wrong)} of {pairs} pairs" + (f", wrong: {', '.join(wrong)}" if wrong else "")


# ---- H200 ----


def saved(sets):
    """(name, Artifact) of the saved kernels of some sets."""
    for path in sets:
        yield from ((one.name, one.artifact) for one in load(path))


def predictions(number: int | None) -> dict:
    """Predictions for the kernels of a round; for those that are refused, the reason."""
    rows = []
    for name, artifact in saved(sets(number or max(ROUNDS))):
        try:
            row = fill(Row(name, (0, 0, 0), None, ""), artifact, "h200")
        except NoForecast as error:
            rows.append({"kernel": name, "refused": str(error)})
            print(name, error, flush=True)
            continue
        rows.append({"kernel": name, "ms": round(row.predicted, 5), "clock_mhz": round(row.ghz * 1e3)})
        say(row)
    return {"gpu": "NVIDIA H200", "what": "predicted, not measured", "h200.toml": constants(), "rows": rows}


def constants() -> str:
    """The fingerprint of the table that the predictions were made with."""
    return hashlib.sha256((ROOT / "packages/ptxsim/src/ptxsim/timing/h200.toml").read_bytes()).hexdigest()[
        :16
    ]


def known_rungs() -> list[tuple]:
    """(track, rung, size, dtype, ms) of every rung that is built again here."""
    found = []
    for path in sorted(RESULTS.glob("track-*-nvidia-h200.json")):
        record = json.loads(path.read_text())
        for row in record["rows"]:
            if row["rung"]:
                dtype = "float32" if "float32" in path.name else row["dtype"]
                found.append((record["track"], row["rung"], (int(row["size"]),) * 3, dtype, row["ms"]))
    for row in timed(1).values():
        if named := re.fullmatch(r"(hopper|ampere)(\d)_(\d+)_(\w+)", row.kernel):
            found.append((named[1], int(named[2]), (int(named[3]),) * 3, named[4], row.measured))
    return found


def timed(*numbers: int) -> dict[str, Timed]:
    """The rows of some rounds that have a time, by kernel."""
    return {row.kernel: row for number in numbers for row in rounds.rows(number) if row.measured}


def h200() -> dict:
    """Predicted / measured on the rows that constants were calibrated on."""
    rows = []
    measured = timed(rounds.CALIBRATION, 1, 2)
    for name, artifact in saved(SEEN):
        if name in measured:
            known = measured[name].measured
            rows.append(fill(Row(name, (0, 0, 0), known, "saved"), artifact, "h200"))
            say(rows[-1])
    for track, number, size, dtype, ms in known_rungs():
        name = f"{track} {number} {dtype}"
        rows.append(fill(Row(name, size, ms, "ladder"), rung(track, number, size, dtype), "h200"))
        say(rows[-1])
    print("calibration     ", summary([r.ratio for r in rows]))
    return {"gpu": "NVIDIA H200", "rows": [plain(r) for r in rows]}


CLOSE = 0.02  # kernels whose times differ by less than this, or than their spreads, have no order


def unseen(number: int | None) -> dict:
    """The saved predictions of a round and the later measurements; smallest ratio first."""
    number = number or rounds.newest()
    measured = {name: row for name, row in sorted(timed(number).items()) if row.predicted}
    written = {name: row.predicted for name, row in measured.items()}
    ratios = {name: written[name] / row.measured for name, row in measured.items()}
    for name in sorted(ratios, key=ratios.get):
        ms, spread = measured[name].measured, measured[name].spread
        known = f"measured {ms:9.4f}, spread {spread:.3f}"
        print(f"{name:52} {written[name]:9.4f} ms, {known}, ratio {ratios[name]:5.2f}")
    print(f"round {number}")
    for title, start in groups(number).items():
        if some := [r for name, r in ratios.items() if re.match(start, name)]:
            print(f"{title:36}", summary(some))
    pairs, wrong = rung_order(written, measured)
    print(f"order of the rungs at a size: {pairs - len(wrong)} of {pairs} pairs, wrong: {wrong}")
    return ratios


def rung_order(written: dict[str, float], measured: dict[str, Timed]) -> tuple[int, list[str]]:
    """(number of pairs of rungs of one track and size whose times differ, the pairs predicted in the wrong
    order).
    """
    pairs, wrong = 0, []
    for a, b in itertools.combinations(sorted(measured), 2):
        first, second = (re.fullmatch(r"(hopper|ampere)\d_(\w+)", name) for name in (a, b))
        one, other = measured[a], measured[b]
        apart = abs(one.measured / other.measured - 1) > max(CLOSE, one.spread, other.spread)
        if first and second and first.groups() == second.groups() and apart:
            pairs += 1
            wrong += [f"{a} / {b}"] * ((written[a] < written[b]) != (one.measured < other.measured))
    return pairs, wrong


# ---- both ----


def summary(ratios: list[float]) -> str:
    errors = [abs(r - 1) for r in ratios]
    close = sum(e <= 0.15 for e in errors)
    mean, middle = statistics.mean(errors), statistics.median(errors)
    text = f"{len(errors)} rows: mean error {mean:.3f}, median {middle:.3f}, worst {max(errors):.3f}"
    return f"{text}, {close} within 15 %"


def plain(row: Row) -> dict:
    return {
        "name": row.name,
        "size": "x".join(map(str, row.size)),
        "known_ms": row.ms,
        "predicted_ms": round(row.predicted, 5),
        "ratio": round(row.ratio, 3) if row.ms else None,
        "bound": row.bound,
        "source": row.source,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("b200", "h200", "predict", "unseen"))
    parser.add_argument("round", type=int, nargs="?", help="for predict and unseen")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.what in ("predict", "unseen"):
        record = {"predict": predictions, "unseen": unseen}[given.what](given.round)
    else:
        record = {"b200": b200, "h200": h200}[given.what]()
    if given.out:
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
