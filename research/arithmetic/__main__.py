"""Random products on a GPU, compared with ptxsim and with the model of how a chip adds.

    python -m research.arithmetic run      on a GPU: all forms, --rounds of --tiles tiles; results.json.xz
    python -m research.arithmetic check    no GPU: the rounds of results.json.xz again, from their seeds
    python -m research.arithmetic table    the table of README.md

Inputs come from seeds on both sides, so only hashes are kept: one of each round's inputs and the chip's
result, and one of SLICE tiles of seed 0, which the tests use. A row omits fields that are zero.
"""

from __future__ import annotations

import argparse
import base64
import concurrent.futures
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from research import packed
from research.arithmetic import model, ours
from research.arithmetic.forms import Form, forms, registers
from research.arithmetic.vectors import MODES, matrices

HERE = Path(__file__).parent
RESULTS = HERE / "results.json.xz"
SLICE, FITTED = 8, 64  # tiles that the tests use; tiles on which adders are tried
HASH = 4  # bytes of a hash
ZERO: dict[str, object] = {"ptxsim": {}, "number or not": 0, "worst": 0.0, "model": 0}
_PLACE = re.compile(r"(<!-- table: begin -->\n).*(<!-- table: end -->)", re.S)


def digest(*arrays: np.ndarray) -> str:
    """Hash of bit patterns; all f64 NaNs hash alike, since their payload is not compared."""
    parts = []
    for array in arrays:
        if array.dtype == np.uint64:
            array = np.where(np.isnan(array.view(np.float64)), np.uint64(0x7FFF << 48), array)
        parts.append(np.ascontiguousarray(array).tobytes())
    return hashlib.sha256(b"".join(parts)).digest()[:HASH].hex()


def round_digest(codes: tuple, left: np.ndarray) -> bytes:
    """Hash of the inputs of a round and of its results."""
    return hashlib.sha256((digest(*codes) + digest(left)).encode()).digest()[:HASH]


def results(file: Path = RESULTS) -> list[dict]:
    """The rows of results.json.xz, with `rounds` as one hash for each round."""
    rows = [row | ZERO | row for row in json.loads(packed.read(file))]
    for row in rows:
        joined = base64.b64decode(row["rounds"])
        row["rounds"] = [joined[i : i + HASH] for i in range(0, len(joined), HASH)]
    return rows


def written(rows: list[dict]) -> str:
    """The text of results.json.xz."""
    short = [{k: v for k, v in row.items() if k not in ZERO or v != ZERO[k]} for row in rows]
    for row in short:
        row["rounds"] = base64.b64encode(b"".join(row["rounds"])).decode()
    return "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in short) + "\n]\n"


def tiles_of(form: Form, tiles: int) -> int:
    """Tiles of a round: the same number of elements for each float form, a quarter of that for integers."""
    return tiles // (1 if form.unit == "mma" else 8) // (1 if form.is_float else 4)


def distance(form: Form, codes: tuple, chip: np.ndarray, mine: np.ndarray) -> tuple[int, float]:
    """(elements where one is a number and the other not, the largest difference of two numbers, as a share of
    the largest product or C).
    """
    a, b, c = (model.doubles(x, kind) for x, kind in zip(codes, (form.a, form.b, form.d), strict=True))
    first, second = model.doubles(chip, form.d), model.doubles(mine, form.d)
    both = np.isfinite(first) & np.isfinite(second)
    same = both | (np.isnan(first) & np.isnan(second)) | (first == second)
    with np.errstate(all="ignore"):
        largest = np.abs(c)
        for l in range(form.k):
            largest = np.fmax(largest, np.abs(a[:, :, None, l] * b[:, None, :, l]))
        share = np.where(both & (first != second), np.abs(first - second) / largest, 0.0)
    return int((~same).sum()), float(np.max(share, initial=0.0, where=np.isfinite(share)))


def differing(form: Form, chip: np.ndarray, other: np.ndarray) -> Counter:
    """The number of elements that differ, by mode."""
    wrong = (chip != other).reshape(len(chip), -1).sum(1)
    if not form.is_float:
        return Counter(all=int(wrong.sum()))
    return Counter(dict(zip(MODES, wrong.reshape(len(MODES), -1).sum(1).tolist(), strict=True)))


def fitted(form: Form, unit) -> list:
    """The adders that come nearest to the chip, best first: (elements that differ, adder)."""
    codes = matrices(form, FITTED, 1)
    chip, tried = unit.run(registers(form, *codes)), []
    for bits in (13, 14, 22, 23, 24, 25, 26, 27):
        for step in dict.fromkeys((form.k, form.k // 2, max(form.k // 4, 1))):
            for rounding in (model.F32, model.F32_SHORT) if form.d == "f32" else (model.F16,):
                for pairs, after in ((False, False), (True, True), (False, True), (True, False)):
                    adder = model.Adder(bits, step, rounding, pairs, after)
                    tried.append((int((model.product(form, *codes, adder) != chip).sum()), str(adder)))
    return sorted(tried)[:3]


def on_chip(form: Form, tiles: int, rounds: int, fit: bool) -> dict:
    """A row of results.json.xz, measured on the GPU."""
    from research.arithmetic.chip import Unit

    given = registers(form, *matrices(form, SLICE, 0))
    counts, tiles = [len(x) for x in given], tiles_of(form, tiles)
    row = {"form": form.name, "slice": digest(Unit(form, SLICE, counts).run(given))}
    if fit and form.is_float and form.d != "f64":
        row["fit"] = fitted(form, Unit(form, FITTED, counts))
    unit, seen, mine, modelled = Unit(form, tiles, counts), [], Counter(), 0
    elements, odd, worst = 0, 0, 0.0
    for seed in range(1, rounds + 1):
        codes = matrices(form, tiles, seed)
        given = registers(form, *codes)
        chip, found = unit.run(given), ours.product(form, given, codes)
        seen.append(round_digest(codes, chip))
        elements += chip.size
        mine += differing(form, chip, found)
        if form.is_float:
            more, far = distance(form, codes, chip, found)
            odd, worst = odd + more, max(worst, far)
            expected = model.product(form, *codes, model.adder_of(form))
            modelled += sum(differing(form, chip, expected).values())
    told = {
        "elements": elements,
        "ptxsim": dict(+mine),
        "number or not": odd,
        "worst": float(f"{worst:.4g}"),
        "model": modelled,
    }
    return row | {"tiles": tiles, "rounds": seen, **told}


def again(row: dict, rounds: int) -> list[int]:
    """Seeds of a row's rounds whose inputs, or whose results by the model, have another hash."""
    form = next(form for form in forms() if form.name == row["form"])
    wrong = []
    for seed, kept in enumerate(row["rounds"][:rounds], 1):
        codes = matrices(form, row["tiles"], seed)
        if form.is_float:
            found = model.product(form, *codes, model.adder_of(form))
        else:
            found = ours.product(form, registers(form, *codes), codes)
        wrong += [seed] * (round_digest(codes, found) != kept)
    return wrong


def table(rows: list[dict]) -> str:
    """Per family: how many elements there are, and in how many the model and ptxsim differ from the chip."""
    lines = [
        "| unit and type | forms | elements of D | model differs | ptxsim differs | number, infinity or NaN "
        "differs | worst difference, of the largest term |",
        "|" + "---|" * 7,
    ]
    families: dict[str, list[dict]] = {}
    for form, row in zip(forms(), rows, strict=True):
        families.setdefault(f"{form.family}, D {form.d}", []).append(row)
    for name, found in families.items():
        elements, worst = sum(row["elements"] for row in found), max(row["worst"] for row in found)
        mine, odd = (
            sum(sum(row["ptxsim"].values()) for row in found),
            sum(r["number or not"] for r in found),
        )
        far = f"2^{np.log2(worst):.1f}" if worst else "-"
        exact = "integers" if name.endswith("s32") else sum(row["model"] for row in found)
        share = f"{mine / elements:.1%}" if mine else "0"
        lines.append(
            f"| {name} | {len(found)} | {elements:,} | {exact} | {share} | {odd / elements:.2%} | {far} |"
        )
    return "\n".join(lines)


def run(given) -> int:
    chosen = [form for form in forms() if given.only in form.name]
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        work = [pool.submit(on_chip, form, given.tiles, given.rounds, given.fit) for form in chosen]
        rows = [job.result() for job in work]
    packed.write(given.out, written(rows))
    return 0


def check(given) -> int:
    bad = 0
    for row in results(given.out):
        if given.only in row["form"]:
            wrong = again(row, given.rounds)
            bad += len(wrong)
            print(
                f"{row['form']}: {f'rounds {wrong} differ' if wrong else 'as the chip left it'}", flush=True
            )
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "check", "table"])
    parser.add_argument("--tiles", type=int, default=8192, help="tiles of a round of one-warp forms")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--only", default="", help="forms whose names contain this")
    parser.add_argument("--fit", action="store_true", help="search for the adders again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.what == "table":
        page = HERE / "README.md"
        text = table(results(given.out))
        page.write_text(_PLACE.sub(lambda m: f"{m[1]}{text}\n{m[2]}", page.read_text()))
        return 0
    return {"run": run, "check": check}[given.what](given)


if __name__ == "__main__":
    sys.exit(main())
